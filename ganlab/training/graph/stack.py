"""The constraints of one network as one: applies them in order, checks their contract, names the one that breaks it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from ganlab.errors import ContractError, IncompatibleError, nearest
from ganlab.interfaces import Batch, Constraint
from ganlab.plugins import optional
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph import noise
from ganlab.training.graph.lazy_penalty import lazily
from ganlab.training.graph.networks import NetworkFunction, static_shape
from ganlab.training.graph.plugin_state import next_state, no_variables, tensors
from ganlab.training.graph.replica import Draws, Log, ReplicaView
from ganlab.training.graph.roles import CRITIC, written
from ganlab.training.graph.values import PlayerValues, Tensors


class ConstraintStack:
    """Constraints in order, each with the name that its metrics and errors carry.

    Parameters and states hold one mapping for each constraint. The `state` that a constraint receives is the two
    together.

    Attributes:
        constraints: The constraints.
        names: Their names.
        kind: The setting that they stand in: "constraints" for those of the critic, "generator_constraints" for those
            of the generator, "network_constraints/" and its name for those of a further network.
    """

    def __init__(
        self, constraints: Sequence[Constraint], names: Sequence[str], kind: str = "constraints", side: str = CRITIC
    ) -> None:
        self.constraints, self.names, self.kind = tuple(constraints), tuple(names), kind
        self._of_critic = side == CRITIC
        # Those of further networks go on in the streams of their side's: numbers are counted within a stream.
        streams = "constraints" if self._of_critic else "generator_constraints"
        self._stream = noise.CONSTRAINTS if self._of_critic else noise.GENERATOR_CONSTRAINTS
        check_count(kind, len(self.constraints), streams)
        for name, constraint in self._named():
            _check_spelling(name, constraint)
            _check_network(name, constraint, kind, self._of_critic)
            if not (isinstance(constraint.every, int) and constraint.every >= 1):
                raise ContractError(
                    f"Constraint {name} has every = {constraint.every!r}; it must be a whole number of at least 1: its "
                    "penalty is computed once in that many critic updates."
                )

    def prepare(self, model: keras.Model) -> None:
        """Shows every constraint the built network."""
        for name, constraint in self._named():
            with _code(name, "prepare"), tf.variable_creator_scope(no_variables):
                constraint.prepare(model)

    def initialize(self, weights: Tensors) -> tuple[list[Tensors], list[Tensors]]:
        """Initial parameters and states; each constraint sees the weights as the earlier ones make them."""
        parameters: list[Tensors] = []
        states: list[Tensors] = []
        for name, constraint in self._named():
            with _code(name, "parameters"):
                parameters.append(tensors(f"Constraint {name}", "parameters", constraint.parameters(weights)))
            with _code(name, "initial_state"):
                states.append(tensors(f"Constraint {name}", "initial_state", constraint.initial_state(weights)))
            shared = set(parameters[-1]) & set(states[-1])
            if shared:
                raise ContractError(f"Constraint {name} has {sorted(shared)} both in parameters and in initial_state.")
            weights = self._reparameterize(name, constraint, weights, {**states[-1], **parameters[-1]})
        return parameters, states

    def advance(
        self, values: PlayerValues, batch: Batch, draws: Draws, log: Log, **optional_ones: Any
    ) -> list[Tensors]:
        """The states for this update: constants in its gradient, no matter what they were computed from.

        `optional_ones` are functions of networks, for those constraints that take them.
        """
        weights, parameters, states = values.weights, values.parameters, values.states
        advanced = []
        for i, (name, constraint) in enumerate(self._named()):
            view = ReplicaView(name, self._stream + 2 * i, draws, log, kind=self.kind)
            with _code(name, "advance"):
                given = optional.call(
                    constraint.advance, weights, {**states[i], **parameters[i]}, batch, view, **optional_ones
                )
                advanced.append(next_state(f"Constraint {name}", given, states[i], parameters[i]))
            if i + 1 < len(self.constraints):
                weights = self._reparameterize(name, constraint, weights, {**advanced[i], **parameters[i]})
        return advanced

    def effective(self, values: PlayerValues) -> Tensors:
        """The weights that the network computes with."""
        weights = values.weights
        for i, (name, constraint) in enumerate(self._named()):
            weights = self._reparameterize(name, constraint, weights, _state(values, i))
        return weights

    def transform(
        self, function: NetworkFunction, draws: Draws | None = None, *, scores: bool = True, **others: NetworkFunction
    ) -> NetworkFunction:
        """The network's function wrapped by every constraint; outside of training without draws and `replica`."""
        for i, (name, constraint) in enumerate(self._named()):
            view = None
            if draws is not None and optional.takes(constraint.transform, "replica"):
                view = ReplicaView(name, self._stream + 2 * i + 1, draws, None, kind=self.kind)
            with _code(name, "transform"):
                function = optional.call(constraint.transform, function, replica=view, **others)
            function = _blaming(name, function, scores)
        return function

    def penalties(
        self,
        batch: Batch,
        values: PlayerValues,
        draws: Draws,
        log: Log,
        *functions: NetworkFunction,
        **optional_ones: Any,
    ) -> tf.Tensor | None:
        """The sum of the penalties of each example, `(local_batch,)` float32; None if there are none.

        `functions` are the networks that a penalty takes first: its own, and on the generator's side the critic.
        `optional_ones` are further ones, for those constraints that take them.
        """
        total, rows = None, draws.local_batch
        method = "penalty" if self._of_critic else "generator_penalty"
        for i, constraint in enumerate(self.constraints):
            if getattr(getattr(constraint, method), "__func__", None) is getattr(Constraint, method):
                continue
            given = [*functions, batch, _state(values, i)]
            penalty = partial(self._penalty, i, constraint, method, given, draws=draws, optional_ones=optional_ones)
            every = constraint.every
            value = penalty(log) if every == 1 else lazily(penalty, every, batch.step, rows, log)
            if value is not None:
                total = value if total is None else total + value
        return total

    def _penalty(
        self,
        i: int,
        constraint: Constraint,
        method: str,
        given: Sequence[Any],
        log: Log,
        *,
        draws: Draws,
        optional_ones: Mapping[str, Any],
    ) -> tf.Tensor | None:
        name = self.names[i]
        view = ReplicaView(name, self._stream + 2 * i + 1, draws, log, every=constraint.every, kind=self.kind)
        with _code(name, method):
            value = optional.call(getattr(constraint, method), *given, view, **optional_ones)
            if value is None:
                return None
            value = tf.convert_to_tensor(value)
        if static_shape(value) != (draws.local_batch,):
            raise ContractError(
                f"Constraint {name} returned a penalty of shape {static_shape(value)}; it must be one value per "
                f"example, ({draws.local_batch},). Do not reduce over the batch: the core divides by the global batch "
                "size."
            )
        return _as_float32(f"Constraint {name} returned a penalty", value)

    def check_not_lazy(self) -> None:
        """Refuses lazy penalties where updates may be left out: it could be those with the penalty each time."""
        for constraint in self.constraints:
            if constraint.every > 1 and type(constraint).generator_penalty is not Constraint.generator_penalty:
                raise IncompatibleError(
                    f"{selector_of(constraint)} in {self.kind} computes its penalty in one of {constraint.every} "
                    "updates of the generator, and under this loss, which has `ready`, the generator may wait in all "
                    f"of these. Set {selector_of(constraint)}.every = 1."
                )

    def takes(self, name: str) -> bool:
        """Whether an `advance` has an optional parameter."""
        return any(optional.takes(constraint.advance, name) for constraint in self.constraints)

    def weight_penalty(self, effective: Tensors, values: PlayerValues) -> tf.Tensor | None:
        """The sum of the weight penalties, a float32 scalar; None if there are none."""
        total = None
        for i, (name, constraint) in enumerate(self._named()):
            with _code(name, "weight_penalty"):
                value = optional.call(constraint.weight_penalty, effective, state=_state(values, i))
                if value is None:
                    continue
                value = tf.convert_to_tensor(value)
            if static_shape(value) != ():
                raise ContractError(
                    f"Constraint {name} returned a weight penalty of shape {static_shape(value)}; it must be a scalar."
                )
            value = _as_float32(f"Constraint {name} returned a weight penalty", value)
            total = value if total is None else total + value
        return total

    def project(self, weights: Tensors) -> Tensors:
        """The weights moved to where every constraint allows them, in order."""
        for name, constraint in self._named():
            with _code(name, "project"):
                projected = constraint.project(dict(weights))
                weights = same_weights(f"Constraint {name}", "project", weights, projected)
        return weights

    def bounds(self, effective: Tensors) -> dict[str, float]:
        """Certified Lipschitz bounds by constraint name, of those that give one.

        If another constraint wraps the critic function, a bound from the weights does not hold for it: no bound.
        """
        bounds: dict[str, float] = {}
        wrapping = set(self.wrapping)
        for name, constraint in self._named():
            if wrapping - {name}:
                continue
            with _code(name, "lipschitz_bound"):
                bound = constraint.lipschitz_bound(effective)
            if bound is None:
                continue
            number = None
            with contextlib.suppress(TypeError, ValueError):
                number = float(bound) if static_shape(bound) == () else None
            if number is None:
                raise ContractError(f"Constraint {name} returned the Lipschitz bound {bound!r}; it must be one number.")
            bounds[name] = number
        return bounds

    @property
    def wrapping(self) -> list[str]:
        """The names of the constraints that wrap the network's function, for which bounds from weights do not hold."""
        return [name for name, constraint in self._named() if type(constraint).transform is not Constraint.transform]

    @property
    def overrides_projection(self) -> bool:
        """Whether any constraint projects."""
        return any(type(constraint).project is not Constraint.project for constraint in self.constraints)

    def _named(self) -> Iterator[tuple[str, Constraint]]:
        return zip(self.names, self.constraints, strict=True)

    def _reparameterize(self, name: str, constraint: Constraint, weights: Tensors, state: Tensors) -> Tensors:
        with _code(name, "reparameterize"):
            effective = constraint.reparameterize(dict(weights), state)
            return same_weights(f"Constraint {name}", "reparameterize", weights, effective)


def check_count(kind: str, count: int, streams: str = "") -> None:
    """Refuses more components of a setting than it, or `streams`, has streams of random numbers for."""
    if count > (most := noise.MOST.get(streams or kind, 0)):
        raise ContractError(f"{written(kind)} has {count} components; there may be at most {most}.")


def _state(values: PlayerValues, i: int) -> Tensors:
    """The state of the i-th constraint, as its methods receive it: with its trained parameters."""
    return {**values.states[i], **values.parameters[i]}


_ON_EITHER = ("reparameterize", "transform", "weight_penalty", "project")


def _check_spelling(selector: str, constraint: Constraint) -> None:
    """Refuses a constraint that does nothing, and has a method whose name is nearly that of one that would."""
    methods = {name for name, value in vars(Constraint).items() if callable(value) and not name.startswith("_")}
    if any(getattr(getattr(constraint, name), "__func__", None) is not getattr(Constraint, name) for name in methods):
        return
    for name in dir(type(constraint)):
        if not hasattr(Constraint, name) and (meant := nearest(name, methods)):
            raise ContractError(
                f"Constraint {selector} has a method {name!r}, which nothing calls, and none of a constraint's.{meant} "
                f"They are {', '.join(sorted(methods))}."
            )


def _check_network(name: str, constraint: Constraint, kind: str, of_critic: bool) -> None:
    """Refuses a constraint that acts on the other network alone: here it would have no effect."""

    def overrides(method: str) -> bool:
        return getattr(type(constraint), method) is not getattr(Constraint, method)

    here, there = ("penalty", "generator_penalty") if of_critic else ("generator_penalty", "penalty")
    of_generator = here == "penalty" and _needs_critic(constraint)
    if of_generator or (overrides(there) and not any(map(overrides, (here, *_ON_EITHER)))):
        other, right = ("generator", "generator_constraints") if here == "penalty" else ("critic", "constraints")
        raise IncompatibleError(
            f"Constraint {name} acts on the {other} alone, and has no effect in {written(kind)}. Put it in "
            f"experiment.{right}."
        )


def _needs_critic(constraint: Constraint) -> bool:
    """Whether its `transform` cannot do without the critic, which it is given for a generator alone."""
    further = list(inspect.signature(constraint.transform).parameters.values())[1:]
    return any(parameter.name == "critic" and parameter.default is parameter.empty for parameter in further)


def _code(name: str, method: str) -> AbstractContextManager[None]:
    return plugin_code(f"constraints.{name}", method)


def _blaming(name: str, function: NetworkFunction, scores: bool) -> NetworkFunction:
    """The function of a transform; its errors name the plugin like all others."""
    if not callable(function):
        raise ContractError(
            f"Constraint {name} returned {function!r:.60} in transform; it must return a function of examples."
        )

    def transformed(x: Any) -> Any:
        with _code(name, "transform"):
            values = tf.nest.map_structure(tf.convert_to_tensor, function(x))
        if scores and values.shape.rank not in (None, 1):
            raise ContractError(
                f"The function that constraint {name} returned in transform gives the shape {static_shape(values)} for "
                f"{static_shape(x)}; it must give one score per example."
            )
        return values

    return transformed


def _as_float32(what: str, value: tf.Tensor) -> tf.Tensor:
    if not value.dtype.is_floating:
        raise ContractError(f"{what} of dtype {value.dtype.name}; it must be float32. Whole numbers have no gradient.")
    return tf.cast(value, tf.float32)


def same_weights(called: str, method: str, before: Tensors, after: Mapping[str, tf.Tensor]) -> Tensors:
    """Weights in the place of others; refuses other names, shapes or dtypes, by who gave them in which method."""
    after = tensors(called, method, after)
    if set(after) != set(before):
        raise ContractError(
            f"{called} changed the names of the weights in {method}: {sorted(set(before) ^ set(after))}. It must give "
            "a value for every name that there is, and no other."
        )
    for key, weight in before.items():
        given = after[key]
        if static_shape(given) != static_shape(weight) or given.dtype != weight.dtype:
            raise ContractError(
                f"{called} gave {key!r} in {method} the shape {static_shape(given)}, {given.dtype.name}; it was "
                f"{static_shape(weight)}, {weight.dtype.name}, and a weight must keep both."
            )
    return {key: after[key] for key in before}
