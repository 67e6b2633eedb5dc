"""The constraints of a run as one: applied in order, held to their contract, named when they break it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.roles import Batch, Constraint
from ganlab.training.networks import CriticFunction, Tensors
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
            parameters.append(_tensors(constraint.parameters(weights)))
            states.append(_tensors(constraint.initial_state(weights)))
            shared = set(parameters[-1]) & set(states[-1])
            if shared:
                raise ContractError(f"Constraint {name} has {sorted(shared)} both in parameters and in initial_state.")
            weights = self._reparameterize(name, constraint, weights, {**states[-1], **parameters[-1]})
        return parameters, states

    def advance(
        self, weights: Tensors, parameters: Sequence[Tensors], states: Sequence[Tensors], batch: Batch, draws: Draws
    ) -> list[Tensors]:
        """The states for this update."""
        advanced = []
        for i, (name, constraint) in enumerate(zip(self.names, self.constraints, strict=True)):
            view = ReplicaView(name, CONSTRAINTS + i, draws, None)
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
            view = ReplicaView(name, CONSTRAINTS + i, draws, log)
            value = constraint.penalty(critic, batch, {**states[i], **parameters[i]}, view)
            if value is None:
                continue
            if tuple(value.shape) != tuple(batch.real.shape[:1]):
                raise ContractError(
                    f"Constraint {name} returned a penalty of shape {tuple(value.shape)}; it must be one value per "
                    f"example, {tuple(batch.real.shape[:1])}. Do not reduce over the batch: the core divides by the "
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
            if tuple(value.shape) != ():
                raise ContractError(
                    f"Constraint {name} returned a weight penalty of shape {tuple(value.shape)}; it must be a scalar."
                )
            value = tf.cast(value, tf.float32)
            total = value if total is None else total + value
        return total

    def project(self, weights: Tensors) -> Tensors:
        """The weights moved to where every constraint allows them, in order."""
        for name, constraint in zip(self.names, self.constraints, strict=True):
            weights = _same_keys(name, "project", weights, constraint.project(dict(weights)))
        return weights

    def bounds(self, effective: Tensors) -> dict[str, float]:
        """Certified Lipschitz bounds by constraint name, of those that give one."""
        pairs = zip(self.names, self.constraints, strict=True)
        bounds = {name: constraint.lipschitz_bound(effective) for name, constraint in pairs}
        return {name: float(bound) for name, bound in bounds.items() if bound is not None}

    @property
    def overrides_projection(self) -> bool:
        """Whether any constraint projects."""
        return any(type(constraint).project is not Constraint.project for constraint in self.constraints)

    def _reparameterize(self, name: str, constraint: Constraint, weights: Tensors, state: Tensors) -> Tensors:
        return _same_keys(name, "reparameterize", weights, constraint.reparameterize(dict(weights), state))

    def _checked_state(self, name: str, given: Mapping[str, tf.Tensor], state: Tensors, parameters: Tensors) -> Tensors:
        missing, unknown = set(state) - set(given), set(given) - set(state) - set(parameters)
        if missing or unknown:
            raise ContractError(
                f"Constraint {name} returned a state with {sorted(given)} from advance; it must have the keys of "
                f"initial_state, {sorted(state)}."
            )
        for key, before in state.items():
            after = tf.convert_to_tensor(given[key], before.dtype)
            if after.shape != before.shape:
                raise ContractError(
                    f"Constraint {name} advanced {key!r} to shape {tuple(after.shape)}; it was {tuple(before.shape)}, "
                    "and a state keeps its shape."
                )
        return {key: tf.convert_to_tensor(given[key], before.dtype) for key, before in state.items()}


def _tensors(values: Mapping[str, tf.Tensor]) -> Tensors:
    return {key: tf.convert_to_tensor(value) for key, value in values.items()}


def _same_keys(name: str, method: str, before: Mapping[str, tf.Tensor], after: Mapping[str, tf.Tensor]) -> Tensors:
    if set(after) != set(before):
        raise ContractError(
            f"Constraint {name} changed the names of the weights in {method}: {sorted(set(before) ^ set(after))}. It "
            "must return a value for every name that it was given, and no other."
        )
    return {key: after[key] for key in before}
