"""The constraints of a run as one: applies them in order, checks their contract, names the one that breaks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.interfaces import Batch, Constraint
from ganlab.plugins.blame import plugin_code
from ganlab.training.graph.lazy_penalty import lazily
from ganlab.training.graph.networks import CriticFunction, Tensors, static_shape
from ganlab.training.graph.noise import CONSTRAINTS
from ganlab.training.graph.replica import Draws, Log, ReplicaView


class ConstraintStack:
    """Constraints in order, each with the name that its metrics and errors carry.

    `states` and `parameters` below hold one mapping for each constraint. The `state` that a constraint receives is the
    two together.
    """

    def __init__(self, constraints: Sequence[Constraint], names: Sequence[str]) -> None:
        self.constraints, self.names = tuple(constraints), tuple(names)
        for name, constraint in self._named():
            if not (isinstance(constraint.every, int) and constraint.every >= 1):
                raise ContractError(
                    f"Constraint {name} has every = {constraint.every!r}; it must be a whole number of at least 1: its "
                    "penalty is computed once in that many critic updates."
                )

    def prepare(self, critic: keras.Model) -> None:
        """Shows every constraint the built critic."""
        for name, constraint in self._named():
            with _code(name, "prepare"):
                constraint.prepare(critic)

    def initialize(self, weights: Tensors) -> tuple[list[Tensors], list[Tensors]]:
        """Initial parameters and states; each constraint sees the weights as the earlier ones make them."""
        parameters: list[Tensors] = []
        states: list[Tensors] = []
        for name, constraint in self._named():
            with _code(name, "parameters"):
                trained = constraint.parameters(weights)
            parameters.append(_tensors(name, "parameters", trained))
            with _code(name, "initial_state"):
                kept = constraint.initial_state(weights)
            states.append(_tensors(name, "initial_state", kept))
            shared = set(parameters[-1]) & set(states[-1])
            if shared:
                raise ContractError(f"Constraint {name} has {sorted(shared)} both in parameters and in initial_state.")
            weights = self._reparameterize(name, constraint, weights, {**states[-1], **parameters[-1]})
        return parameters, states

    def advance(
        self,
        weights: Tensors,
        parameters: Sequence[Tensors],
        states: Sequence[Tensors],
        batch: Batch,
        draws: Draws,
        log: Log,
    ) -> list[Tensors]:
        """The states for this update: constants in its gradient, no matter what they were computed from."""
        advanced = []
        for i, (name, constraint) in enumerate(self._named()):
            view = ReplicaView(name, CONSTRAINTS + 2 * i, draws, log)
            with _code(name, "advance"):
                given = constraint.advance(weights, {**states[i], **parameters[i]}, batch, view)
            advanced.append(self._checked_state(name, given, states[i], parameters[i]))
            if i + 1 < len(self.constraints):
                weights = self._reparameterize(name, constraint, weights, {**advanced[i], **parameters[i]})
        return advanced

    def effective(self, weights: Tensors, parameters: Sequence[Tensors], states: Sequence[Tensors]) -> Tensors:
        """The weights that the critic computes with."""
        for i, (name, constraint) in enumerate(self._named()):
            weights = self._reparameterize(name, constraint, weights, {**states[i], **parameters[i]})
        return weights

    def transform(self, critic: CriticFunction) -> CriticFunction:
        """The critic function, wrapped by every constraint."""
        for name, constraint in self._named():
            with _code(name, "transform"):
                critic = _blaming(name, constraint.transform(critic))
        return critic

    def penalties(
        self,
        critic: CriticFunction,
        batch: Batch,
        parameters: Sequence[Tensors],
        states: Sequence[Tensors],
        draws: Draws,
        log: Log,
    ) -> tf.Tensor | None:
        """The sum of the per-example penalties, `(local_batch,)` float32; None if there are none."""
        total = None
        for i, (name, constraint) in enumerate(self._named()):
            given = {**states[i], **parameters[i]}
            penalty = partial(_penalty, name, constraint, critic, batch, given, CONSTRAINTS + 2 * i + 1, draws)
            value = penalty(log) if constraint.every == 1 else lazily(penalty, constraint.every, batch, log)
            if value is not None:
                total = value if total is None else total + value
        return total

    def weight_penalty(self, effective: Tensors) -> tf.Tensor | None:
        """The sum of the weight penalties, a float32 scalar; None if there are none."""
        total = None
        for name, constraint in self._named():
            with _code(name, "weight_penalty"):
                value = constraint.weight_penalty(effective)
                if value is None:
                    continue
                value = tf.convert_to_tensor(value)
            if static_shape(value) != ():
                raise ContractError(
                    f"Constraint {name} returned a weight penalty of shape {static_shape(value)}; it must be a scalar."
                )
            value = tf.cast(value, tf.float32)
            total = value if total is None else total + value
        return total

    def project(self, weights: Tensors) -> Tensors:
        """The weights moved to where every constraint allows them, in order."""
        for name, constraint in self._named():
            with _code(name, "project"):
                projected = constraint.project(dict(weights))
            weights = _same_weights(name, "project", weights, projected)
        return weights

    def bounds(self, effective: Tensors) -> dict[str, float]:
        """Certified Lipschitz bounds by constraint name, of those that give one.

        If another constraint wraps the critic function, a bound from the weights does not hold for it: no bound.
        """
        bounds: dict[str, float] = {}
        wrapping = {
            name for name, constraint in self._named() if type(constraint).transform is not Constraint.transform
        }
        for name, constraint in self._named():
            if wrapping - {name}:
                continue
            with _code(name, "lipschitz_bound"):
                bound = constraint.lipschitz_bound(effective)
            if bound is None:
                continue
            if static_shape(bound) != ():
                raise ContractError(f"Constraint {name} returned the Lipschitz bound {bound!r}; it must be one number.")
            bounds[name] = float(bound)
        return bounds

    @property
    def overrides_projection(self) -> bool:
        """Whether any constraint projects."""
        return any(type(constraint).project is not Constraint.project for constraint in self.constraints)

    def _named(self) -> Iterator[tuple[str, Constraint]]:
        return zip(self.names, self.constraints, strict=True)

    def _reparameterize(self, name: str, constraint: Constraint, weights: Tensors, state: Tensors) -> Tensors:
        with _code(name, "reparameterize"):
            effective = constraint.reparameterize(dict(weights), state)
        return _same_weights(name, "reparameterize", weights, effective)

    def _checked_state(self, name: str, given: Mapping[str, tf.Tensor], state: Tensors, parameters: Tensors) -> Tensors:
        given = _tensors(name, "advance", given)
        missing, unknown = set(state) - set(given), set(given) - set(state) - set(parameters)
        if missing or unknown:
            raise ContractError(
                f"Constraint {name} returned a state with {sorted(given)} from advance; it must have the keys of "
                f"initial_state, {sorted(state)}."
            )
        for key, before in state.items():
            after = given[key]
            if static_shape(after) != static_shape(before) or after.dtype != before.dtype:
                raise ContractError(
                    f"Constraint {name} advanced {key!r} to shape {static_shape(after)}, {after.dtype.name}; it was "
                    f"{static_shape(before)}, {before.dtype.name}, and a state must keep both."
                )
        # A graph's gradient reaches everything computed from the weights, even before the loss; a tape's does not.
        return {key: tf.stop_gradient(given[key]) for key in state}


def _penalty(
    name: str,
    constraint: Constraint,
    critic: CriticFunction,
    batch: Batch,
    state: Tensors,
    stream: int,
    draws: Draws,
    log: Log,
) -> tf.Tensor | None:
    view = ReplicaView(name, stream, draws, log, every=constraint.every)
    with _code(name, "penalty"):
        value = constraint.penalty(critic, batch, state, view)
        if value is None:
            return None
        value = tf.convert_to_tensor(value)
    if static_shape(value) != static_shape(batch.real)[:1]:
        raise ContractError(
            f"Constraint {name} returned a penalty of shape {static_shape(value)}; it must be one value per example, "
            f"{static_shape(batch.real)[:1]}. Do not reduce over the batch: the core divides by the global batch size."
        )
    return tf.cast(value, tf.float32)


def _code(name: str, method: str) -> AbstractContextManager[None]:
    return plugin_code(f"constraints.{name}", method)


def _blaming(name: str, critic: CriticFunction) -> CriticFunction:
    """The critic function of a transform; its errors name the plugin like all others."""

    def transformed(x: tf.Tensor) -> tf.Tensor:
        with _code(name, "transform"):
            return critic(x)

    return transformed


def _tensors(name: str, method: str, values: Mapping[str, tf.Tensor]) -> Tensors:
    values = _mapping(name, method, values)
    with _code(name, method):
        return {key: tf.convert_to_tensor(value) for key, value in values.items()}


def _mapping(name: str, method: str, values: Any) -> Mapping[str, tf.Tensor]:
    if not isinstance(values, Mapping):
        raise ContractError(
            f"Constraint {name}'s {method} gave {type(values).__name__}; it must return a dict of names to tensors."
        )
    return values


def _same_weights(name: str, method: str, before: Tensors, after: Mapping[str, tf.Tensor]) -> Tensors:
    after = _mapping(name, method, after)
    if set(after) != set(before):
        raise ContractError(
            f"Constraint {name} changed the names of the weights in {method}: {sorted(set(before) ^ set(after))}. It "
            "must return a value for every name that it was given, and no other."
        )
    after = _tensors(name, method, after)
    for key, weight in before.items():
        given = after[key]
        if static_shape(given) != static_shape(weight) or given.dtype != weight.dtype:
            raise ContractError(
                f"Constraint {name} gave {key!r} in {method} the shape {static_shape(given)}, {given.dtype.name}; it "
                f"was {static_shape(weight)}, {weight.dtype.name}, and a weight must keep both."
            )
    return {key: after[key] for key in before}
