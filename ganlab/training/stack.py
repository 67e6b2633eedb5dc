"""The constraints of a run as one: applied in order, held to their contract, named when they break it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.roles import Batch, Constraint
from ganlab.training.networks import CriticFunction, Tensors, static_shape
from ganlab.training.noise import CONSTRAINTS
from ganlab.training.replica import Draws, Log, ReplicaView


class ConstraintStack:
    """Constraints in order, each with the name that its metrics and errors carry.

    `states` and `parameters` below hold one mapping a constraint. What a constraint is handed as its `state` is the two
    together.
    """

    def __init__(self, constraints: Sequence[Constraint], names: Sequence[str]) -> None:
        self.constraints, self.names = tuple(constraints), tuple(names)

    def prepare(self, critic: keras.Model) -> None:
        """Shows every constraint the built critic."""
        for constraint in self.constraints:
            constraint.prepare(critic)

    def initialize(self, weights: Tensors) -> tuple[list[Tensors], list[Tensors]]:
        """Parameters and states to start from; a later constraint sees the weights as the earlier ones make them."""
        parameters: list[Tensors] = []
        states: list[Tensors] = []
        for name, constraint in zip(self.names, self.constraints, strict=True):
            parameters.append(_tensors(name, "parameters", constraint.parameters(weights)))
            states.append(_tensors(name, "initial_state", constraint.initial_state(weights)))
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
        """The states for this update."""
        advanced = []
        for i, (name, constraint) in enumerate(zip(self.names, self.constraints, strict=True)):
            view = ReplicaView(name, CONSTRAINTS + 2 * i, draws, log)
            given = constraint.advance(weights, {**states[i], **parameters[i]}, batch, view)
            advanced.append(self._checked_state(name, given, states[i], parameters[i]))
            if i + 1 < len(self.constraints):
                weights = self._reparameterize(name, constraint, weights, {**advanced[i], **parameters[i]})
        return advanced

    def effective(self, weights: Tensors, parameters: Sequence[Tensors], states: Sequence[Tensors]) -> Tensors:
        """The weights that the critic computes with."""
        for i, (name, constraint) in enumerate(zip(self.names, self.constraints, strict=True)):
            weights = self._reparameterize(name, constraint, weights, {**states[i], **parameters[i]})
        return weights

    def transform(self, critic: CriticFunction) -> CriticFunction:
        """The critic function as every constraint wraps it."""
        for constraint in self.constraints:
            critic = constraint.transform(critic)
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
        """The sum of the per-example penalties, `(local_batch,)` float32; None where there is none."""
        total = None
        for i, (name, constraint) in enumerate(zip(self.names, self.constraints, strict=True)):
            view = ReplicaView(name, CONSTRAINTS + 2 * i + 1, draws, log)
            value = constraint.penalty(critic, batch, {**states[i], **parameters[i]}, view)
            if value is None:
                continue
            if static_shape(value) != static_shape(batch.real)[:1]:
                raise ContractError(
                    f"Constraint {name} returned a penalty of shape {static_shape(value)}; it must be one value per "
                    f"example, {static_shape(batch.real)[:1]}. Do not reduce over the batch: the core divides by the "
                    "global batch size."
                )
            value = tf.cast(value, tf.float32)
            total = value if total is None else total + value
        return total

    def weight_penalty(self, effective: Tensors) -> tf.Tensor | None:
        """The sum of the weight penalties, a float32 scalar; None where there is none."""
        total = None
        for name, constraint in zip(self.names, self.constraints, strict=True):
            value = constraint.weight_penalty(effective)
            if value is None:
                continue
            if static_shape(value) != ():
                raise ContractError(
                    f"Constraint {name} returned a weight penalty of shape {static_shape(value)}; it must be a scalar."
                )
            value = tf.cast(value, tf.float32)
            total = value if total is None else total + value
        return total

    def project(self, weights: Tensors) -> Tensors:
        """The weights moved to where every constraint allows them, in order."""
        for name, constraint in zip(self.names, self.constraints, strict=True):
            weights = _same_weights(name, "project", weights, constraint.project(dict(weights)))
        return weights

    def bounds(self, effective: Tensors) -> dict[str, float]:
        """Certified Lipschitz bounds by constraint name, of those that give one."""
        pairs = zip(self.names, self.constraints, strict=True)
        bounds = {name: constraint.lipschitz_bound(effective) for name, constraint in pairs}
        for name, bound in bounds.items():
            if bound is not None and static_shape(bound) != ():
                raise ContractError(f"Constraint {name} returned the Lipschitz bound {bound!r}; it must be one number.")
        return {name: float(bound) for name, bound in bounds.items() if bound is not None}

    @property
    def overrides_projection(self) -> bool:
        """Whether any constraint projects."""
        return any(type(constraint).project is not Constraint.project for constraint in self.constraints)

    def _reparameterize(self, name: str, constraint: Constraint, weights: Tensors, state: Tensors) -> Tensors:
        return _same_weights(name, "reparameterize", weights, constraint.reparameterize(dict(weights), state))

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
                    f"{static_shape(before)}, {before.dtype.name}, and a state keeps its shape and dtype."
                )
        return {key: given[key] for key in state}


def _tensors(name: str, method: str, values: Mapping[str, tf.Tensor]) -> Tensors:
    return {key: tf.convert_to_tensor(value) for key, value in _mapping(name, method, values).items()}


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
    for key, weight in before.items():
        if static_shape(after[key]) != static_shape(weight):
            raise ContractError(
                f"Constraint {name} gave {key!r} in {method} the shape {static_shape(after[key])}; it was "
                f"{static_shape(weight)}, and a weight keeps its shape."
            )
    return {key: after[key] for key in before}
