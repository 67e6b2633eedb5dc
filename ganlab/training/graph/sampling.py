"""Draws samples from a generator and computes scores of a critic, outside the training loop, on one device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.interfaces import Dataset
from ganlab.plugins.blame import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph import noise
from ganlab.training.graph.examples import check_finite_examples
from ganlab.training.graph.networks import CriticFunction, Network, Tensors, as_scores
from ganlab.training.graph.state import TrainingState, read

_BATCH = 1024  # a divisor of the 128 x 128 points of a picture, so that one graph scores them all


class Sampler:
    """Draws from a generator: sample i of seed s is the same however many are drawn."""

    def __init__(self, generator: Network, weights: Mapping[str, Any], latent_dim: int) -> None:
        self._generator, self._weights, self._latent_dim = generator, weights, latent_dim
        self._run = tf.function(self._batch, autograph=False, reduce_retracing=True)

    def __call__(self, n: int, seed: int) -> np.ndarray:
        """Samples, `(n, *sample_shape)` float32; the layers behave as in inference."""
        return self.from_latents(self.latents(n, seed))

    def latents(self, n: int, seed: int) -> tf.Tensor:
        """The latent vectors of those samples: standard normal, `(n, latent_dim)` float32."""
        return noise.whole("normal", (n, self._latent_dim), seed=seed, stream=noise.LATENT)

    def from_latents(self, latents: tf.Tensor | np.ndarray) -> np.ndarray:
        """Samples of latent vectors `(n, latent_dim)`: `(n, *sample_shape)` float32."""
        batches = [self._run(tf.convert_to_tensor(latents[i : i + _BATCH])) for i in range(0, len(latents), _BATCH)]
        return np.concatenate([batch.numpy() for batch in batches])

    def _batch(self, latent: tf.Tensor) -> tf.Tensor:
        weights, buffers = read(self._weights), read(self._generator.buffers)
        return self._generator(latent, weights, buffers, training=False)[0]


class Scorer:
    """The critic as constrained, `(n, *sample_shape) -> (n,)` float32, the layers as in inference."""

    def __init__(self, state: TrainingState) -> None:
        self._state = state
        self._run = tf.function(self._scores, autograph=False, reduce_retracing=True)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Scores of these points."""
        # In parts: a picture has sixteen thousand points, which together would take more memory than the rest of a run.
        parts = [self._run(tf.convert_to_tensor(x[i : i + _BATCH], tf.float32)) for i in range(0, len(x), _BATCH)]
        return np.concatenate([part.numpy() for part in parts])

    def bounds(self) -> dict[str, float]:
        """Certified Lipschitz bounds by constraint, of those that give one."""
        return self._state.stack.bounds(self.effective())

    def effective(self, weights: Tensors | None = None) -> Tensors:
        """The weights that the critic computes with, made from these or from its own; differentiable."""
        state = self._state
        parameters = [read(group) for group in state.parameters]
        states = [read(group) for group in state.constraint_states]
        return state.stack.effective(read(state.critic.weights) if weights is None else weights, parameters, states)

    def critic(self, effective: Tensors) -> CriticFunction:
        """The critic with these weights as a wrapped function of tensors, `(n, *sample_shape) -> (n,)`."""
        buffers = read(self._state.critic.buffers)
        return self._state.stack.transform(
            lambda points: as_scores(self._state.critic(points, effective, buffers, training=False)[0])
        )

    def _scores(self, x: tf.Tensor) -> tf.Tensor:
        return self.critic(self.effective())(x)


def real_examples(experiment: Experiment, n: int) -> np.ndarray:
    """The first examples of the experiment's dataset, at most n: `(<= n, *sample_shape)` float32."""
    return first_examples(experiment.dataset, n, experiment.seed)


def first_examples(dataset: Dataset, n: int, seed: int) -> np.ndarray:
    """The first examples of a dataset, at most n: `(<= n, *sample_shape)` float32.

    Raises:
        ContractError: One of them has a value that is not a finite number.
    """
    count = n if dataset.size is None else min(n, dataset.size)
    with plugin_code(selector_of(dataset), "examples"):
        examples = np.asarray(dataset.examples(tf.range(count, dtype=tf.int64), seed))
    check_finite_examples(dataset, np.arange(count), examples)
    return examples
