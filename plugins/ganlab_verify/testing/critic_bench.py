"""A bench for a constraint: calls its methods one by one, eagerly, with the arguments that the engine would pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab import Batch, Constraint, Critic, Experiment, functional
from ganlab.commands import plugin_code
from ganlab.engine import (
    Calls,
    Draws,
    Log,
    ReplicaView,
    Scorer,
    TrainingState,
    TrainingStep,
    batch_of,
    noise,
    optional,
    read,
)
from ganlab_verify.trace import norm

_ADVANCE, _PENALTY = noise.CONSTRAINTS, noise.CONSTRAINTS + 1
# The first update of plain gradient descent moves a network by this part of its weights: far above rounding, and so
# little that a steep penalty does not make the critic diverge.
_MOVE = 0.02


class Bench:
    """The first constraint of an experiment of one replica, in the middle of the first critic update.

    Attributes:
        experiment: The experiment.
        state: Its variables, with their initial values.
        constraint: The constraint, prepared.
        name: Its name in messages.
        weights: The critic's weights by name.
        parameters: The constraint's trained parameters.
        initial: Its state before the update.
        advanced: Its state in the update.
        effective: The weights that the critic computes with in the update.
        data: The examples of the update with their labels, latent vectors and samples.
        batch: The batch of the update.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.state = experiment, TrainingState(experiment)
        self._seed = experiment.seed
        self.constraint: Constraint = experiment.constraints[0]
        self.name = type(self.constraint).__name__
        self.weights = read(self.state.critic.weights)
        self.parameters, self.initial = read(self.state.critic.parameters[0]), read(self.state.critic.states[0])
        self._values = self.state.values()
        with self.state.timed():
            self.data = self._data()
            self.batch = batch_of(self.data, experiment.batch_size, self.draws())
            values = self._step.critic.advanced(self.draws(), self.state.values(), self.data, Log())
            advanced = values.players["critic"]
            self.effective = self.state.critic.stack.effective(advanced)
        self.advanced = advanced.states[0]

    @property
    def given(self) -> dict[str, tf.Tensor]:
        """The argument `state` of the constraint's methods in the update."""
        return {**self.advanced, **self.parameters}

    def draws(self, **parts: Any) -> Draws:
        """The random numbers of the first update, on the first replica."""
        made = {"seed": self._seed, "local_batch": self.experiment.local_batch, **parts}
        return Draws(step=tf.constant(0, tf.int64), replica=tf.constant(0, tf.int32), **made)

    def plain_critic(self, draws: Draws) -> Critic:
        """The critic after reparameterization and before any transform, in training mode."""
        buffers = read(self.state.critic.buffers)
        return Calls(self.state.critic.network, self.effective, buffers, self.data, draws, noise.CRITIC_LAYERS)

    def advance(self, draws: Draws) -> Any:
        """The constraint's `advance`."""
        view = ReplicaView(self.name, _ADVANCE, draws, Log())
        given = self.weights, {**self.initial, **self.parameters}, self.batch, view
        return self._call("advance", *given, critic=self._critic(draws), networks=self._networks(draws))

    def transform(self, draws: Draws, critic: Critic | None = None) -> Critic:
        """The constraint's `transform` of the plain critic, or of another."""
        view = ReplicaView(self.name, _PENALTY, draws, None)
        made: Critic = self._call("transform", critic or self.plain_critic(draws), replica=view)

        def transformed(x: tf.Tensor) -> tf.Tensor:
            with plugin_code(self.name, "transform"):
                return made(x)

        return transformed

    def penalty(
        self, draws: Draws, *, critic: Critic | None = None, batch: Batch | None = None, replicas: int = 1
    ) -> tf.Tensor | None:
        """The constraint's `penalty`, of the transformed critic unless another is given."""
        view = ReplicaView(self.name, _PENALTY, draws, Log())
        view.count = replicas
        given = critic or self.transform(draws), batch or self.batch, self.given, view
        value = self._call("penalty", *given, generator=self._generator(draws), networks=self._networks(draws))
        return None if value is None else tf.convert_to_tensor(value)

    def on_weights(self, method: str, constraint: Constraint | None = None) -> Any:
        """Calls any of the constraint's methods that take only weights and states."""
        arguments: dict[str, tuple[Any, ...]] = {
            "parameters": (dict(self.weights),),
            "initial_state": (dict(self.weights),),
            "reparameterize": (dict(self.weights), self.given),
            "weight_penalty": (dict(self.effective),),
            "project": (dict(self.weights),),
            "lipschitz_bound": (dict(self.effective),),
        }
        others = {"state": self.given} if method == "weight_penalty" else {}
        return self._call(method, *arguments[method], **others)

    def critic_gradients(self) -> dict[str, np.ndarray]:
        """The gradient of the critic's first update by each weight and parameter, as the engine computes it."""
        values = self.state.values().replaced("critic", states=[self.advanced])
        with self.state.timed():
            gradients, *_ = self._step.critic.part(self.draws(), Log(), values, self.data)
        names = [*self.weights, *(f"the parameter {name!r}" for name in self.parameters)]
        return {name: g.numpy() for name, g in zip(names, gradients, strict=False)}  # the critic's come first

    def generator_gradients(self) -> dict[str, np.ndarray]:
        """The gradient of the generator's first update by each of its weights, as the engine computes it."""
        values = self.state.values().replaced("critic", states=[self.advanced])
        weights = values.players["generator"].weights
        with self.state.timed():
            gradients, *_ = self._step.generator.part(self.draws(), Log(), values, self.data)
        return {name: g.numpy() for name, g in zip(weights, gradients, strict=False)}

    def rates(self) -> tuple[float, float]:
        """The learning rates of critic and generator at which the first update moves each by two hundredths."""
        trained = {**self.weights, **{f"the parameter {name!r}": value for name, value in self.parameters.items()}}
        generator = read(self.state.generator.weights)
        return _rate(trained, self.critic_gradients()), _rate(generator, self.generator_gradients())

    @property
    def _step(self) -> TrainingStep:
        return TrainingStep(self.experiment, self.state, compiled=False)

    def _data(self) -> dict[str, tf.Tensor]:
        dataset, numbers = self.experiment.dataset, tf.range(self.experiment.batch_size, dtype=tf.int64)
        data = {"real": tf.convert_to_tensor(dataset.examples(numbers, self._seed))}
        for name, (of, method, *_) in self.experiment.given.items():
            data[name] = tf.convert_to_tensor(optional.call(getattr(of, method), numbers, seed=self._seed))
            data[name] = tf.cast(data[name], tf.int64 if name == "labels" else tf.float32)
        return self._step.critic.completed(self.draws(), self.state.values(), data)[0]

    def _critic(self, draws: Draws) -> Critic:
        return self.state.deferred("critic", draws, self._values, self.data, noise.CRITIC_LAYERS)

    def _generator(self, draws: Draws) -> Critic:
        return self.state.deferred("generator", draws, self._values, self.data, noise.FAKE_LAYERS)

    def _networks(self, draws: Draws) -> Mapping[str, Critic]:
        return self.state.networks(draws, self._values, self.data, noise.FAKE_LAYERS)

    def _call(self, method: str, *arguments: Any, **others: Any) -> Any:
        with plugin_code(self.name, method), self.state.timed():
            return optional.call(getattr(self.constraint, method), *arguments, **others)


def _rate(weights: dict[str, Any], gradients: dict[str, np.ndarray]) -> float:
    size, slope = norm(map(np.asarray, weights.values())), norm(gradients.values())
    return _MOVE * size / slope if np.isfinite(slope) and slope > 0 else 1e-3


def scoring(state: TrainingState, classes: int | None = None) -> Critic:
    """The critic under a state's constraints, its layers in inference mode: `(n, *sample_shape) -> (n,)`."""
    scorer = Scorer(state, classes)
    return scorer.critic(scorer.effective())


def steepest(critic: Critic, data: np.ndarray, pairs: int = 1000) -> float:
    """The steepest slope of a critic between random pairs of points and at single points, near the data and far."""
    random = np.random.default_rng(0)
    base = data[random.integers(len(data), size=(2, pairs))]
    x, y = base + random.normal(size=base.shape) * random.choice([0.1, 1.0, 3.0], size=(pairs, *[1] * (data.ndim - 1)))
    x, y = x.astype(np.float32), y.astype(np.float32)
    rise = np.abs(critic(tf.constant(x)).numpy().astype(np.float64) - critic(tf.constant(y)).numpy())
    run = np.linalg.norm((x.astype(np.float64) - y).reshape(pairs, -1), axis=1)
    return max(float((rise / run).max()), float(tf.reduce_max(functional.slopes(critic, tf.constant(x)))))
