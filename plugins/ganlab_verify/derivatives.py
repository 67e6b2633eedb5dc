"""The losses and gradients of one update as functions in float64, compared with each other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab import CriticLayer, Experiment, Loss
from ganlab.engine import (
    OF_GENERATOR,
    Draws,
    Inputs,
    Intermediates,
    Log,
    ReplicaView,
    TrainingState,
    TrainingStep,
    noise,
    optional,
    scheduled,
)
from ganlab.functional import FIXED
from ganlab_verify.differences import Slope, Values, slopes
from ganlab_verify.doubling import Double
from ganlab_verify.single_layer import Call, Wrong, called, wrong
from ganlab_verify.trace import norm

_FLOAT32, _FLOAT64 = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)
# Weights are moved by this part of their size before the comparison: biases start at zero and scales at one, and a
# mistake in either may not show there.
_MOVED = 0.01


@dataclass(frozen=True)
class Truth:
    """One network's gradient compared with differences of its loss.

    Attributes:
        role: "critic" or "generator".
        slopes: Along directions of all trained variables, then along one of each variable.
        gradient: The gradient in float64, by the names of `TrainingState.variables`.
        rounding: How far the float32 gradient is from it, relative to its norm.
        layers: The network's layers in the order of their calls, their weights by the names above.
        leaks: Whether it is right if the constraints' states move with the weights, which they must not.
        kept: The operations without a float64 kernel.
    """

    role: str
    slopes: Sequence[Slope]
    gradient: Values
    rounding: float
    layers: Sequence[CriticLayer]
    leaks: bool
    kept: Sequence[str]

    @property
    def departs(self) -> bool:
        """Whether the gradient is wrong somewhere."""
        return any(slope.departs for slope in self.slopes)

    @property
    def constant(self) -> bool:
        """Whether it is a critic that nothing is to train: its loss is constant, and its gradient zero."""
        return self.role == "critic" and bool(self.slopes) and all(s.claimed == 0.0 == s.found for s in self.slopes)

    @property
    def vanishes(self) -> bool:
        """Whether most of the gradient is too small beside the loss to be distinguished from rounding."""
        each = [slope.vague for slope in self.slopes if slope.where]
        whole = [slope.vague for slope in self.slopes if not slope.where]
        return bool(whole) and (all(whole) or 2 * sum(each) > len(each))


class Derivatives:
    """The first update of an experiment on one device, traced: the critic's, then the generator's."""

    def __init__(self, experiment: Experiment, state: TrainingState) -> None:
        """Takes an experiment of one replica and its variables, of which only the names and shapes are used."""
        self._experiment, self._state = experiment, state
        self._loss = (_RecordingGame if experiment.has_critic else _RecordingLoss)(experiment.loss)
        self._step = TrainingStep(replace(experiment, loss=self._loss), state, compiled=False)
        self._doubles: dict[str, Double] = {}
        self._layers: dict[str, Sequence[CriticLayer]] = {}
        self._calls: dict[str, Mapping[str, Call]] = {}
        self._arguments: dict[str, Mapping[str, Any]] = {}
        self._held: dict[str, list[str]] = {}
        self._real: dict[str, np.ndarray] | None = None

    def truths(self, start: Values, later: Values) -> list[Truth]:
        """Compares the gradients of a step: the critic's, if there is one, and the generator's.

        Args:
            start: Every variable before the step, by the names of `TrainingState.variables`.
            later: Every variable after it.
        """
        # The generator's update sees the critic's side as the step left it, and its own side as the step found it.
        own = {name: start[name] for name in start if name.startswith(self._of_generator)}
        if not self._experiment.has_critic:
            return [self.generator({**later, **own})]
        critic, after = self.critic(start)
        return [critic, self.generator({**later, **own, **after})]

    def critic(self, values: Values) -> tuple[Truth, dict[str, np.ndarray]]:
        """Compares the critic's gradient.

        Args:
            values: Every variable before the update, by the names of `TrainingState.variables`.

        Returns:
            The comparison, and the new values of the constraints' states and the networks' buffers, which the
            generator's update uses. Weights stay the same.
        """
        with self._clock():
            data, left = self._data(values)
            arguments = {"values": self._state.collected(values), "data": data}
            truth, results = self._compare("critic", self._critic, arguments)
        after = {f"generator/buffers/{name}": value.numpy() for name, value in left.items()}
        for role, buffers in results["buffers"].items():
            after |= {f"{role}/buffers/{name}": value for name, value in buffers.items()}
        for player in self._side("critic"):
            states = results["states"][player.role.name]
            for name, group in zip(player.stack.names, states, strict=True):
                after |= {f"{player.stack.kind}/{name}/state/{key}": value for key, value in group.items()}
        return truth, {name: value.astype(values[name].dtype) for name, value in after.items()}

    def generator(self, values: Values) -> Truth:
        """Compares the generator's gradient.

        Args:
            values: Every variable before the update.
        """
        rows = self._experiment.local_generator_batch
        data = {name.removeprefix(OF_GENERATOR): x for name, x in self._examples().items() if OF_GENERATOR in name}
        data["latent"] = self._step.generator.latents(self._draws(rows), noise.LATENT).numpy()
        arguments = {"values": self._state.collected(values), "data": data}
        with self._clock():
            return self._compare("generator", self._generator, arguments)[0]

    @property
    def _of_generator(self) -> tuple[str, ...]:
        """The beginnings of the names of the variables that belong to the generator's side."""
        return tuple(
            f"{start}/" for player in self._side("generator") for start in (player.role.name, player.stack.kind)
        )

    def _clock(self) -> contextlib.AbstractContextManager[None]:
        """Context manager: scheduled parameters have their values of the first update."""
        return scheduled.at(0, self._experiment.steps)

    def _compare(self, role: str, function: Any, arguments: dict[str, Any]) -> tuple[Truth, dict[str, Any]]:
        """Compares, with everything held fixed that is not differentiated: constraints' states and marked tensors."""
        trained = self._trained_names(arguments["values"], role)
        if role not in self._doubles:
            self._doubles[role] = Double(function, arguments)
        traced = self._doubles[role]
        self._arguments[role] = arguments
        results = traced(arguments)
        fixed, states = ({name: traced(arguments, fetches=name) for name in names} for names in self._names(role))
        gradient = dict(zip(trained, results["gradients"], strict=True))
        weights = dict(zip(trained, self._trained(arguments, role), strict=True))
        precision = _FLOAT32 if traced.kept else _FLOAT64

        def compared(given: Values) -> list[Slope]:
            def loss(moved: Values) -> float:
                changed, values = iter([moved[name] for name in trained]), arguments["values"]
                for player in self._side(role):
                    before = values.players[player.role.name]
                    weights = {key: next(changed) for key in before.weights}
                    parameters = [{key: next(changed) for key in group} for group in before.parameters]
                    values = values.replaced(player.role.name, weights=weights, parameters=parameters)
                put = {**arguments, "values": values}
                return float(traced(put, fetches=traced.outputs["loss"], given=given))

            return slopes(loss, weights, gradient, terms=float(results["terms"]), precision=precision)

        held = compared({**fixed, **states})
        leaks = bool(states) and any(s.departs for s in held) and not any(s.departs for s in compared(fixed))
        single = traced.single(tf.nest.map_structure(tf.convert_to_tensor, arguments))["gradients"]
        difference = norm(a.numpy() - gradient[name] for a, name in zip(single, trained, strict=True))
        rounding = difference / (norm(gradient.values()) or 1.0)
        layers = self._layers[role]
        return Truth(role, held, gradient, rounding, layers, leaks, sorted(traced.kept)), results

    def _names(self, role: str) -> tuple[list[str], list[str]]:
        """The tensors that are held fixed: those marked so, and constraints' states."""
        return self._doubles[role].named(FIXED), self._held[role]

    def wrong_layers(self, role: str) -> list[Wrong]:
        """The layers whose derivatives are wrong by themselves, in the order of their calls."""
        traced, arguments, mistakes = self._doubles[role], self._arguments[role], []
        values = arguments["values"].players[role].weights
        weights = {v.path: values[name] for name, v in self._state.players[role].weights.items()}
        for call in self._calls[role].values():
            inputs = [traced(arguments, fetches=x.name) for x in tf.nest.flatten(call.arguments)]
            view = ReplicaView(role, noise.CRITIC_LAYERS, self._draws(self._experiment.local_batch), None)
            mistakes.append(wrong(call, inputs, weights, view))
        return [one for one in mistakes if one is not None]

    def _trained(self, arguments: Mapping[str, Any], role: str) -> list[np.ndarray]:
        players = [arguments["values"].players[player.role.name] for player in self._side(role)]
        return [np.asarray(value, np.float64) for values in players for value in values.trained]

    def _trained_names(self, values: Any, role: str) -> list[str]:
        named = [player.named(values.players[player.role.name]) for player in self._side(role)]
        return [name for of in named for group in (of.weights, *of.parameters) for name in group]

    def _side(self, role: str) -> list[Any]:
        """The networks that are trained in the update of the critic or the generator."""
        return [player for player in self._state.players.values() if player.role.side == role]

    def _advanced(self, role: str, given: Any, values: Any) -> tuple[Any, dict[str, Any]]:
        """The given values with the states of an update's constraints, which are held fixed; and these by network."""
        states = {player.role.name: values.players[player.role.name].states for player in self._side(role)}
        self._held[role] = [tensor.name for of in states.values() for group in of for tensor in group.values()]
        for name, advanced in states.items():
            given = given.replaced(name, states=advanced)
        return given, states

    def _critic(self, given: Any) -> dict[str, Any]:
        rows, data, log = self._experiment.local_batch, dict(given["data"]), Log()
        values = _copied(given["values"])
        values = self._step.critic.advanced(self._draws(rows), values, data, Log())
        values, states = self._advanced("critic", given["values"], values)
        with self._recorded("critic"):
            gradients, buffers, _ = self._step.critic.part(self._draws(rows), log, values, data)
        states = {name: [dict(state) for state in of] for name, of in states.items()}
        return {"gradients": gradients, "buffers": buffers, "states": states, **self._result(log)}

    def _generator(self, given: Any) -> dict[str, Any]:
        rows, data, log = self._experiment.local_generator_batch, dict(given["data"]), Log()
        values = self._step.generator.advanced(self._draws(rows), _copied(given["values"]), data, Log())
        values, _ = self._advanced("generator", given["values"], values)
        with self._recorded("generator"):
            gradients, *_ = self._step.generator.part(self._draws(rows), log, values, data)
        return {"gradients": gradients, **self._result(log)}

    def _result(self, log: Log) -> dict[str, tf.Tensor]:
        values = {metric.tag: value for metric, value in zip(log.metrics, log.values, strict=True)}
        loss = values["critic/loss"] if "critic/loss" in values else values["generator/loss"]
        penalty = values.get("critic/penalty", values.get("generator/penalty", 0.0))
        terms = [*self._loss.terms, tf.abs(penalty)]
        return {"loss": loss, "terms": sum(terms)}

    def _draws(self, rows: int) -> Draws:
        return Draws(self._experiment.seed, rows, tf.constant(0, tf.int64), tf.constant(0))

    def _examples(self) -> dict[str, np.ndarray]:
        if self._real is None:
            examples = Inputs(self._experiment).of(tf.constant(0, tf.int64), 0)
            self._real = {name: x.numpy() for name, x in examples.items()}
        return self._real

    def _data(self, values: Values) -> tuple[dict[str, np.ndarray], Mapping[str, tf.Tensor]]:
        """The data of the critic's update with samples in float32; and the generator's buffers afterwards."""
        data = {name: tf.constant(x[0]) for name, x in self._examples().items() if OF_GENERATOR not in name}
        draws = self._draws(self._experiment.local_batch)
        tensors = tf.nest.map_structure(tf.convert_to_tensor, self._state.collected(values))
        made, left = self._step.critic.completed(draws, tensors, data)
        return {name: x.numpy() for name, x in made.items()}, left

    @contextlib.contextmanager
    def _recorded(self, role: str) -> Iterator[None]:
        """Context manager: records the network's layers in the order of their calls."""
        network = self._state.players[role].network
        intermediates = Intermediates(network.model, network.weights)
        with intermediates.recorded() as outputs, called(network.model) as self._calls[role]:
            yield
        self._layers[role] = tuple(
            replace(layer, weights=tuple(f"{role}/weights/{name}" for name in layer.weights))
            for layer in intermediates.described(outputs)
        )


class _RecordingLoss(Loss):
    """A loss that records how large its terms are before they cancel."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss
        self.pairs, self.labels, self.outputs = loss.pairs, loss.labels, loss.outputs
        self.terms: list[tf.Tensor] = []

    def scores(self, batch: Any, networks: Any, replica: Any) -> Any:
        """The loss's own."""
        return optional.call(self._loss.scores, batch, networks, replica=replica)

    def judged(self, name: str, batch: Any, networks: Any, replica: Any) -> Any:
        """The loss's own."""
        return optional.call(self._loss.judged, name, batch, networks, replica=replica)

    def witness(self, batch: Any, replica: Any) -> Any:
        """The loss's own."""
        return optional.call(self._loss.witness, batch, replica=replica)

    def generator(self, *scores: tf.Tensor, batch: Any, replica: Any, state: Any, networks: Any) -> tf.Tensor:
        """The generator's loss, whose terms are recorded."""
        return self._recorded(
            self._loss.generator, scores, batch=batch, replica=replica, state=state, networks=networks
        )

    def _recorded(self, method: Any, scores: Sequence[tf.Tensor], **given: Any) -> tf.Tensor:
        value = tf.convert_to_tensor(optional.call(method, *scores, **given))
        self.terms = [tf.reduce_mean(tf.abs(x)) for x in (*scores, value)]
        return value


class _RecordingGame(_RecordingLoss):
    """The same of a loss with a critic."""

    def critic(self, *scores: tf.Tensor, batch: Any, replica: Any, state: Any, networks: Any) -> tf.Tensor:
        """The critic's loss, whose terms are recorded."""
        return self._recorded(self._loss.critic, scores, batch=batch, replica=replica, state=state, networks=networks)


def _copied(values: Any) -> Any:
    # In case a plugin changes what it is given.
    return tf.nest.map_structure(lambda x: x, values)


def moved(values: Values, names: Sequence[str], seed: int = 0) -> dict[str, np.ndarray]:
    """Variables moved a little, each entry by a hundredth of the variable's size, or of one where that is zero."""
    random = np.random.default_rng(seed)

    def changed(value: np.ndarray) -> np.ndarray:
        size = float(np.sqrt(np.mean(np.square(value, dtype=np.float64)))) or 1.0
        return (value + _MOVED * size * random.standard_normal(value.shape)).astype(value.dtype)

    return {name: changed(values[name]) for name in names}


def he(values: Values, names: Sequence[str], seed: int = 0) -> dict[str, np.ndarray]:
    """New kernels of the size that preserves a rectified signal's (He, Zhang, Ren and Sun, 2015, equation 10)."""
    random = np.random.default_rng(seed)
    kernels = {name: values[name] for name in names if values[name].ndim >= 2}
    return {
        name: (random.standard_normal(value.shape) * np.sqrt(2.0 / np.prod(value.shape[:-1]))).astype(value.dtype)
        for name, value in kernels.items()
    }
