"""A critic at one step, as diagnostics see it: on one device, a replica's share at a time, computed on demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment, Rows
from ganlab.errors import ContractError
from ganlab.functional import input_gradient
from ganlab.interfaces import Batch
from ganlab.interfaces.diagnostic import CriticLayer, LossGradients
from ganlab.plugins import optional
from ganlab.training.diagnostics.activations import Intermediates
from ganlab.training.graph import noise
from ganlab.training.graph.calls import Calls
from ganlab.training.graph.inputs import Inputs
from ganlab.training.graph.latents import latents_of_samples, latents_of_update
from ganlab.training.graph.loss_calls import LossCalls
from ganlab.training.graph.networks import NetworkFunction
from ganlab.training.graph.replica import Draws, Log
from ganlab.training.graph.roles import CRITIC
from ganlab.training.graph.sampling import Scorer, first_examples, sampler
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.tf_errors import translated_errors
from ganlab.training.graph.values import Tensors
from ganlab.training.graph.variables import read, values_of

# Many points are computed in pieces of this many, or of fewer if each is large: at most this many input numbers.
_POINTS, _NUMBERS = 1024, 2**20


class CriticFunctions:
    """The functions that are computed of a critic; each is traced once or twice and reads the current variables.

    Batches have one of two sizes: a replica's share, and the size of the pieces that many points are computed in.

    Attributes:
        many: The second of these sizes.
        layers: The critic's layers in the order of their calls; empty until `outputs` or `gradients` is traced.
    """

    def __init__(self, experiment: Experiment, state: TrainingState) -> None:
        self._experiment, self._state, self._scorer = experiment, state, Scorer(state)
        self._loss, self._turn = LossCalls(experiment.loss), experiment.turn
        self._intermediates = Intermediates(state.critic.network.model, state.critic.weights)
        self._inputs = Inputs(experiment)
        self.layers: tuple[CriticLayer, ...] = ()
        numbers = math.prod(experiment.dataset.sample_shape)
        self.many = max(experiment.local_batch, min(_POINTS, _NUMBERS // numbers))
        function = partial(tf.function, autograph=False)
        self.effective: Callable[[], Tensors] = function(self._scorer.effective)
        self.scores = function(lambda x, labels, effective: self._scorer.critic(effective, labels)(x))
        self.slopes = function(self._slopes)
        self.input_gradients = function(
            lambda x, labels, effective: input_gradient(self._scorer.critic(effective, labels), x)[0]
        )
        self.outputs = function(self._outputs)
        self.gradients = function(self._gradients)
        self.real = function(lambda step, replica: self._inputs.examples(step, replica)[0])
        self.given = {
            name: function(partial(self._given, rows))
            for name, rows in experiment.given.items()
            if name in state.generator.network.given or (name == "labels" and state.critic.network.conditional)
        }
        self.latent = function(self._latent)
        self.generated = function(self._generated)

    def bounds(self) -> dict[str, float]:
        """Certified Lipschitz bounds by constraint, of those that give one."""
        return self._scorer.bounds()

    def _slopes(self, x: tf.Tensor, labels: tf.Tensor, effective: Tensors) -> tf.Tensor:
        gradient = tf.reshape(input_gradient(self._scorer.critic(effective, labels), x)[0], [x.shape[0], -1])
        # After many layers that shrink it, the gradient's squares would be zero in float32.
        largest = tf.reduce_max(tf.abs(gradient), axis=1)
        return largest * tf.norm(tf.math.divide_no_nan(gradient, largest[:, None]), axis=1)

    def _outputs(self, x: tf.Tensor, labels: tf.Tensor, effective: Tensors) -> Tensors:
        with self._intermediates.recorded() as outputs:
            self._scorer.critic(effective, labels)(x)
        self.layers = self._intermediates.described(outputs)
        return {name: tf.cast(y, tf.float32) for name, y in outputs.items()}

    def _gradients(
        self,
        real: tf.Tensor,
        fake: tf.Tensor,
        given: Tensors,
        latent: tf.Tensor,
        step: tf.Tensor,
        replica: tf.Tensor,
    ) -> tuple[Tensors, Tensors]:
        """Gradients of the share's mean loss by the raw weights, and of each example's loss by the layers' outputs."""
        experiment, local, labels = self._experiment, self._experiment.local_batch, given.get("labels")
        x, weights = tf.concat([real, fake], axis=0), read(self._state.critic.weights)
        with tf.GradientTape() as tape:
            # The examples too: a layer before the first weight has an output that depends on nothing else.
            tape.watch((weights, x))
            critic = self._scorer.critic(self._scorer.effective(weights), labels, weights)
            with self._intermediates.recorded() as outputs:
                scores = critic(x)
            outputs_of_rows = critic.plain.outputs(x, scores)
            of_real, of_fake = ({k: y[i : i + local] for k, y in outputs_of_rows.items()} for i in (0, local))
            update, _ = self._turn.updates(CRITIC, step)
            own = real, fake, labels, experiment.batch_size, update, latent, of_real, of_fake
            batch = Batch(*own, given.get("conditions"), given.get("source"))
            draws, state = Draws(experiment.seed, local, update, replica), read(self._state.nest.loss)
            with self._state.timed():
                by_kind = {"real": scores[:local], "fake": scores[local:]}
                networks: dict[str, NetworkFunction] = {}
                if optional.takes(experiment.loss.critic, "networks"):
                    networks = {**self._state.networks(draws, self._state.values(), given, noise.FAKE_LAYERS)}
                loss = self._loss.value(CRITIC, by_kind, batch, state, {**networks, CRITIC: critic}, draws, Log())
            total = tf.reduce_sum(loss)
        self.layers = self._intermediates.described(outputs)
        by_weights, by_outputs = tape.gradient(total, (weights, outputs), unconnected_gradients="zero")
        return (
            {name: gradient / local for name, gradient in by_weights.items()},
            {name: tf.cast(gradient, tf.float32) for name, gradient in by_outputs.items()},
        )

    def _given(self, rows: Rows, step: tf.Tensor, replica: tf.Tensor) -> tf.Tensor:
        return self._inputs.rows(rows, step, replica)[0]

    def _latent(self, step: tf.Tensor, replica: tf.Tensor) -> tf.Tensor:
        """The latent vectors of this replica in the first critic update of the iteration."""
        update, _ = self._turn.updates(CRITIC, step)
        draws = Draws(self._experiment.seed, self._experiment.local_batch, update, replica)
        return latents_of_update(self._experiment.architecture, draws, noise.FAKE_LATENT)

    def _generated(self, latent: tf.Tensor, given: Tensors) -> tf.Tensor:
        player = self._state.generator
        with self._state.timed():
            values = values_of(player.nest)
            weights = player.stack.effective(values)
        return Calls(player.network, weights, values.buffers, given)(latent)


class View:
    """The `ganlab.CriticView` of one step; it caches what it has computed."""

    def __init__(self, experiment: Experiment, state: TrainingState, functions: CriticFunctions, step: int) -> None:
        self.step, self.replicas, self.dataset = step, experiment.replicas, experiment.dataset
        self.constraints = dict(zip(state.critic.stack.names, state.critic.stack.constraints, strict=True))
        self._experiment, self._state, self._functions = experiment, state, functions
        self._gradients: dict[int, LossGradients] = {}

    @cached_property
    def layers(self) -> tuple[CriticLayer, ...]:
        """The critic's layers from input to output."""
        if not self._functions.layers:
            rows = self._experiment.local_batch
            x = tf.TensorSpec((rows, *self._experiment.dataset.sample_shape), tf.float32)
            labels = tf.TensorSpec((rows,), tf.int64) if self._conditional else None
            self._functions.outputs.get_concrete_function(x, labels, self._effective)
        return self._functions.layers

    @cached_property
    def real(self) -> np.ndarray:
        """The real examples of the critic update that comes next, `(batch_size, *sample_shape)`."""
        with translated_errors(self._experiment, self.step):
            return self._by_replica(self._functions.real)

    @cached_property
    def fake(self) -> np.ndarray:
        """The generated examples of that update."""
        return _read_only(self._in_pieces(self._functions.generated, self._latent, self._given))

    @cached_property
    def labels(self) -> np.ndarray | None:
        """The classes of the rows of `real` and `fake`, `(batch_size,)` int64; None for an unconditional critic."""
        return self._given.get("labels")

    @cached_property
    def _given(self) -> Mapping[str, np.ndarray]:
        return {name: self._by_replica(function) for name, function in self._functions.given.items()}

    @cached_property
    def weights(self) -> Mapping[str, np.ndarray]:
        """The critic's trainable weights by name."""
        return {name: _read_only(v.numpy()) for name, v in read(self._state.critic.weights).items()}

    @cached_property
    def effective(self) -> Mapping[str, np.ndarray]:
        """The weights that the critic computes with."""
        return {name: _read_only(self._effective[name].numpy()) for name in self._state.critic.weights}

    @cached_property
    def bounds(self) -> Mapping[str, float]:
        """Certified Lipschitz bounds by constraint."""
        return self._functions.bounds()

    def share(self, replica: int) -> slice:
        """The rows of one replica."""
        local = self._experiment.local_batch
        return slice(replica * local, (replica + 1) * local)

    def more(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """At most n real examples and n generated ones, the same choice at every step."""
        latent = latents_of_samples(self._experiment.architecture, n, self._experiment.seed).numpy()
        labels = self.more_labels(n)
        given = {} if labels is None else {"labels": np.resize(labels, n)}
        if self._state.generator.network.given:
            given = {**sampler(self._experiment, self._state).given(n, self._experiment.seed), **given}
        real = first_examples(self.dataset, n, self._experiment.seed)
        return real, self._in_pieces(self._functions.generated, latent, given)

    def more_labels(self, n: int) -> np.ndarray | None:
        """The classes of the rows of `more(n)`; None for an unconditional critic."""
        if not self._conditional:
            return None
        size = self.dataset.size
        count = n if size is None else min(n, size)
        labels = optional.call(self.dataset.labels, tf.range(count, dtype=tf.int64), seed=self._experiment.seed)
        return np.asarray(labels, np.int64)

    def random(self) -> np.random.Generator:
        """A new random generator, seeded by seed and step."""
        return np.random.default_rng([self._experiment.seed, self.step])

    def scores(self, x: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        """The scores of `(n, *sample_shape)`: `(n,)`."""
        return self._of_critic(self._functions.scores, x, labels)

    def slopes(self, x: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        """The norm of the critic's gradient at each of `(n, *sample_shape)`: `(n,)`."""
        return self._of_critic(self._functions.slopes, x, labels)

    def input_gradients(self, x: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        """The critic's gradient at each of `(n, *sample_shape)`, of this shape."""
        return self._of_critic(self._functions.input_gradients, x, labels)

    def activations(self, x: np.ndarray, labels: np.ndarray | None = None) -> Mapping[str, np.ndarray]:
        """The layers' outputs for `(n, *sample_shape)`."""
        return self._of_critic(self._functions.outputs, x, labels)

    def _of_critic(self, function: Callable[..., Any], x: Any, labels: np.ndarray | None) -> Any:
        x = self._checked(x)
        if self._conditional:
            labels = np.resize(np.asarray(self.labels if labels is None else labels, np.int64), len(x))
        return self._in_pieces(function, x, labels if self._conditional else None, self._effective)

    def gradients(self, replica: int) -> LossGradients:
        """Gradients of the critic's loss over the share of one replica."""
        if replica not in self._gradients:
            share = self.share(replica)
            gradients = self._functions.gradients(
                tf.constant(self.real[share]),
                tf.constant(self.fake[share]),
                {name: tf.constant(rows[share]) for name, rows in self._given.items()},
                tf.constant(self._latent[share]),
                tf.constant(self.step, tf.int64),
                tf.constant(replica, tf.int32),
            )
            by_weights, by_outputs = tf.nest.map_structure(lambda g: _read_only(g.numpy()), gradients)
            self._gradients[replica] = LossGradients(by_weights, by_outputs)
        return self._gradients[replica]

    @property
    def _conditional(self) -> bool:
        return self._state.critic.network.conditional

    @cached_property
    def _latent(self) -> np.ndarray:
        return self._by_replica(self._functions.latent)

    @cached_property
    def _effective(self) -> Tensors:
        return self._functions.effective()

    def _by_replica(self, function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]) -> np.ndarray:
        step = tf.constant(self.step, tf.int64)
        return _read_only(np.concatenate([function(step, tf.constant(i)).numpy() for i in range(self.replicas)]))

    def _checked(self, x: Any) -> np.ndarray:
        x, shape = np.asarray(x, np.float32), tuple(self._experiment.dataset.sample_shape)
        if x.shape[1:] != shape or not len(x):
            raise ContractError(f"The critic is asked about {x.shape}; it takes at least one example of shape {shape}.")
        return x

    def _in_pieces(self, function: Callable[..., Any], x: np.ndarray, given: Any, *arguments: Any) -> Any:
        """A function of rows and what belongs to them over any number, at one of the sizes that it is traced for."""
        functions = self._functions
        size = self._experiment.local_batch if len(x) <= self._experiment.batch_size else functions.many
        done = []
        for start in range(0, len(x), size):
            pieces = tf.nest.map_structure(partial(_piece, start, size), (x, given))
            done.append(tf.nest.map_structure(lambda y: y.numpy(), function(*pieces, *arguments)))
        return tf.nest.map_structure(lambda *ys: np.concatenate(ys)[: len(x)], *done)


def _piece(start: int, size: int, rows: np.ndarray | None) -> tf.Tensor | None:
    """The rows from a place on, the last one repeated up to a size."""
    if rows is None:
        return None
    rows = rows[start : start + size]
    return tf.constant(np.concatenate([rows, np.repeat(rows[-1:], size - len(rows), axis=0)]))


def _read_only(array: np.ndarray) -> np.ndarray:
    """Makes an array read-only, because it is handed out more than once."""
    array = np.asarray(array)  # a scalar weight's value is a numpy scalar, which has no flags to set
    array.flags.writeable = False
    return array
