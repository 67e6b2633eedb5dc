"""The losses and gradients of one update as functions in float64, compared with each other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.functional import FIXED
from ganlab.interfaces import Batch, Loss
from ganlab.interfaces.diagnostic import CriticLayer
from ganlab.training.diagnostics.activations import Intermediates
from ganlab.training.graph import noise
from ganlab.training.graph.inputs import Inputs
from ganlab.training.graph.replica import Draws, Log, ReplicaView
from ganlab.training.graph.state import TrainingState, read
from ganlab.training.graph.step import TrainingStep
from ganlab.verification.differences import Slope, Values, slopes
from ganlab.verification.doubling import Double
from ganlab.verification.single_layer import Call, Wrong, called, wrong
from ganlab.verification.trace import norm

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
        self._step = TrainingStep(experiment, state, compiled=False)
        self._loss = _RecordingLoss(experiment.loss)
        self._step.experiment = replace(experiment, loss=self._loss)
        self._doubles: dict[str, Double] = {}
        self._layers: dict[str, Sequence[CriticLayer]] = {}
        self._calls: dict[str, Mapping[str, Call]] = {}
        self._arguments: dict[str, Mapping[str, Any]] = {}
        self._held: list[str] = []
        self._real: tf.Tensor | None = None

    def critic(self, values: Values) -> tuple[Truth, dict[str, np.ndarray]]:
        """Compares the critic's gradient.

        Args:
            values: Every variable before the update, by the names of `TrainingState.variables`.

        Returns:
            The comparison, and the new values of the constraints' states and the networks' buffers, which the
            generator's update uses. Weights stay the same.
        """
        fake, left = self._generated(values)
        arguments = {
            "weights": _group(values, "critic/weights/"),
            "parameters": self._constraints(values, "parameters"),
            "states": self._constraints(values, "state"),
            "buffers": _group(values, "critic/buffers/"),
            "real": self._examples(),
            "fake": fake.numpy(),
        }
        trained = [f"critic/weights/{name}" for name in arguments["weights"]]
        for name, group in zip(self._state.stack.names, arguments["parameters"], strict=True):
            trained += [f"constraints/{name}/parameters/{key}" for key in group]
        truth, found = self._compare("critic", self._critic, arguments, trained)
        after = {f"generator/buffers/{name}": value.numpy() for name, value in left.items()}
        after |= {f"critic/buffers/{name}": value for name, value in found["buffers"].items()}
        for name, group in zip(self._state.stack.names, found["states"], strict=True):
            after |= {f"constraints/{name}/state/{key}": value for key, value in group.items()}
        return truth, {name: value.astype(values[name].dtype) for name, value in after.items()}

    def generator(self, values: Values) -> Truth:
        """Compares the generator's gradient.

        Args:
            values: Every variable before the update.
        """
        arguments = {
            "weights": _group(values, "generator/weights/"),
            "buffers": _group(values, "generator/buffers/"),
            "critic_weights": _group(values, "critic/weights/"),
            "critic_buffers": _group(values, "critic/buffers/"),
            "parameters": self._constraints(values, "parameters"),
            "states": self._constraints(values, "state"),
            "latent": self._draws().take("normal", self._latent, noise.LATENT).numpy(),
        }
        trained = [f"generator/weights/{name}" for name in arguments["weights"]]
        return self._compare("generator", self._generator, arguments, trained)[0]

    def _compare(
        self, role: str, function: Any, arguments: dict[str, Any], trained: Sequence[str]
    ) -> tuple[Truth, dict[str, Any]]:
        """Compares, with everything held fixed that is not differentiated: constraints' states and marked tensors."""
        if role not in self._doubles:
            self._doubles[role] = Double(function, arguments)
        traced = self._doubles[role]
        self._arguments[role] = arguments
        found = traced(arguments)
        fixed, states = ({name: traced(arguments, fetches=name) for name in names} for names in self._names(role))
        gradient = dict(zip(trained, found["gradients"], strict=True))
        weights = dict(zip(trained, self._trained(arguments, role), strict=True))
        precision = _FLOAT32 if traced.kept else _FLOAT64

        def compared(given: Values) -> list[Slope]:
            def loss(moved: Values) -> float:
                changed = iter([moved[name] for name in trained])
                parts: dict[str, Any] = {"weights": {name: next(changed) for name in arguments["weights"]}}
                if role == "critic":
                    parts["parameters"] = [{key: next(changed) for key in group} for group in arguments["parameters"]]
                return float(traced({**arguments, **parts}, fetches=traced.outputs["loss"], given=given))

            return slopes(loss, weights, gradient, terms=float(found["terms"]), precision=precision)

        held = compared({**fixed, **states})
        leaks = bool(states) and any(s.departs for s in held) and not any(s.departs for s in compared(fixed))
        single = traced.single(tf.nest.map_structure(tf.convert_to_tensor, arguments))["gradients"]
        difference = norm(a.numpy() - gradient[name] for a, name in zip(single, trained, strict=True))
        rounding = difference / (norm(gradient.values()) or 1.0)
        layers = self._layers[role]
        return Truth(role, held, gradient, rounding, layers, leaks, sorted(traced.kept)), found

    def _names(self, role: str) -> tuple[list[str], list[str]]:
        """The tensors that are held fixed: those marked so, and constraints' states."""
        return self._doubles[role].named(FIXED), self._held if role == "critic" else []

    def wrong_layers(self, role: str) -> list[Wrong]:
        """The layers whose derivatives are wrong by themselves, in the order of their calls."""
        traced, arguments, found = self._doubles[role], self._arguments[role], []
        weights = {v.path: arguments["weights"][name] for name, v in getattr(self._state, role).weights.items()}
        for call in self._calls[role].values():
            inputs = [traced(arguments, fetches=x.name) for x in tf.nest.flatten(call.arguments)]
            view = ReplicaView(role, noise.CRITIC_LAYERS, self._draws(), None)
            found.append(wrong(call, inputs, weights, view))
        return [one for one in found if one is not None]

    def _trained(self, arguments: Mapping[str, Any], role: str) -> list[np.ndarray]:
        groups = [arguments["weights"], *(arguments["parameters"] if role == "critic" else [])]
        return [np.asarray(value, np.float64) for group in groups for value in group.values()]

    def _critic(self, given: Any) -> dict[str, Any]:
        draws, size, step = self._draws(), self._experiment.batch_size, tf.constant(0, tf.int64)
        batch = Batch(real=given["real"], fake=given["fake"], labels=None, size=size, step=step)
        weights = dict(given["weights"])  # a copy, in case a plugin changes it
        states = self._state.stack.advance(weights, given["parameters"], given["states"], batch, draws, Log())
        self._held = [tensor.name for group in states for tensor in group.values()]
        log = Log()
        with self._recorded("critic"):
            gradients, buffers = self._step._critic_part(
                self._draws(),
                log,
                given["weights"],
                given["parameters"],
                states,
                given["buffers"],
                batch.real,
                batch.fake,
            )
        return {"gradients": gradients, "buffers": buffers, "states": [dict(s) for s in states], **self._result(log)}

    def _generator(self, given: Any) -> dict[str, Any]:
        log = Log()
        with self._recorded("generator"):
            gradients, _ = self._step._generator_part(self._draws(), log, **given)
        return {"gradients": gradients, **self._result(log)}

    def _result(self, log: Log) -> dict[str, tf.Tensor]:
        values = {metric.tag: value for metric, value in zip(log.metrics, log.values, strict=True)}
        loss = values["critic/loss"] if "critic/loss" in values else values["generator/loss"]
        terms = [*self._loss.terms, tf.abs(values.get("critic/penalty", 0.0))]
        return {"loss": loss, "terms": tf.add_n(terms)}

    @property
    def _latent(self) -> tuple[int, int]:
        return self._experiment.local_batch, int(self._experiment.architecture.latent_dim)

    def _draws(self) -> Draws:
        return Draws(self._experiment.seed, self._experiment.local_batch, tf.constant(0, tf.int64), tf.constant(0))

    def _examples(self) -> np.ndarray:
        if self._real is None:
            self._real = Inputs(self._experiment).examples(tf.constant(0, tf.int64), 0)[0]
        return self._real.numpy()

    def _generated(self, values: Values) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """The generator's samples in float32, as the critic's update uses them; and its buffers afterwards."""
        draws = self._draws()
        latent = draws.take("normal", self._latent, noise.FAKE_LATENT)
        view = ReplicaView("generator", noise.FAKE_LAYERS, draws, None)
        weights, buffers = (read(_group(values, f"generator/{group}/")) for group in ("weights", "buffers"))
        return self._state.generator(latent, weights, buffers, noise=view)

    def _constraints(self, values: Values, kind: str) -> list[dict[str, np.ndarray]]:
        return [_group(values, f"constraints/{name}/{kind}/") for name in self._state.stack.names]

    @contextlib.contextmanager
    def _recorded(self, role: str) -> Iterator[None]:
        """Context manager: records the network's layers in the order of their calls."""
        network = getattr(self._state, role)
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
        self.terms: list[tf.Tensor] = []

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """The critic's loss, whose terms are recorded."""
        value = tf.convert_to_tensor(self._loss.critic(real_scores, fake_scores))
        self.terms = [tf.reduce_mean(tf.abs(x)) for x in (real_scores, fake_scores, value)]
        return value

    def generator(self, fake_scores: tf.Tensor) -> tf.Tensor:
        """The generator's loss, whose terms are recorded."""
        value = tf.convert_to_tensor(self._loss.generator(fake_scores))
        self.terms = [tf.reduce_mean(tf.abs(x)) for x in (fake_scores, value)]
        return value


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


def _group(values: Values, prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
