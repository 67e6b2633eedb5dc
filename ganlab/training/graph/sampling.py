"""Draws samples from a generator and computes scores of a critic, outside the training loop, on one device."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment, Rows
from ganlab.errors import ContractError, IncompatibleError
from ganlab.interfaces import Architecture, Dataset
from ganlab.plugins import optional
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph import noise
from ganlab.training.graph.calls import Wrapped
from ganlab.training.graph.examples import check_finite_examples
from ganlab.training.graph.inputs import called, numbers_at
from ganlab.training.graph.latents import is_normal, latents_of_samples
from ganlab.training.graph.networks import Network
from ganlab.training.graph.parts import in_turn
from ganlab.training.graph.refusals import graph_of
from ganlab.training.graph.roles import CRITIC, GENERATOR
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.values import Tensors
from ganlab.training.graph.variables import read, values_of

_BATCH = 1024  # a divisor of the 128 x 128 points of a picture, so that one graph scores them all
_COUNTED = 100_000
# The numbers of samples, latent vectors or classes that a generator makes at once: 512 MiB.
_AT_ONCE = 1 << 27
# The sequence of example numbers whose conditions and sources samples have, after those of training.
_OF_SAMPLES = 4


class Sampler:
    """Draws from a generator: sample i of seed s is the same however many are drawn.

    Attributes:
        classes: How many classes a conditional generator distinguishes; None for an unconditional one.
        rows: Where the conditions and sources of samples come from, by name, as far as the generator takes them.
        normal: Whether latent vectors are standard normal: the architecture makes no others.
        networks: Makes the further networks of the generator's side by name: for each its Keras model, and a function
            from rows to its output as numpy arrays, with the weights that samples are drawn with.
    """

    def __init__(
        self,
        generator: Network,
        weights: Mapping[str, Any] | Callable[[], Tensors],
        architecture: Architecture,
        frequencies: Sequence[float] | None = None,
        *,
        buffers: Callable[[], Tensors] | None = None,
        rows: Mapping[str, Rows] = MappingProxyType({}),
        seed: int = 0,
        networks: Callable[[], Mapping[str, tuple[keras.Model, Callable[..., Any]]]] = dict,
    ) -> None:
        """Takes the generator, and the variables of its weights or a function of their values.

        `frequencies` is how often each class of a conditional generator is drawn; `buffers` returns the values of its
        buffers, where these are not its variables' own. `rows` is what the data has for each row, drawn by `seed`.
        """
        self._generator, self._weights, self._architecture = generator, weights, architecture
        self._buffers = buffers or functools.partial(read, generator.buffers)
        self._frequencies = frequencies if generator.conditional else None
        needed = [*["labels"] * generator.conditional, *generator.given] if generator.given else []
        if missing := [name for name in needed if name not in rows]:
            raise IncompatibleError(f"The generator takes {missing[0]}, and the run's data has none.")
        self.rows = {name: rows[name] for name in needed}
        self._seed, self.normal, self.networks = seed, is_normal(architecture), networks
        self.classes = None if self._frequencies is None else len(self._frequencies)
        outputs = (math.prod(filter(None, y.shape)) for y in tf.nest.flatten(graph_of(generator.model).output))
        self._batch_size = max(
            1, min(_BATCH, _AT_ONCE // max(int(architecture.latent_dim), self.classes or 1, *outputs))
        )
        # TensorFlow counts the traces of a method over all objects, and would warn of several samplers.
        self._run = tf.function(functools.partial(self._batch), autograph=False, reduce_retracing=True)

    def __call__(
        self, n: int, seed: int, labels: Sequence[int] | np.ndarray | None = None, *, start: int = 0, **given: Any
    ) -> np.ndarray:
        """Samples, `(n, *sample_shape)` float32; the layers behave as in inference.

        Args:
            n: How many.
            seed: The seed.
            labels: The class of each, `(n,)`, for a conditional generator; None for classes as the data has them.
            start: The number of the first one.
            **given: Their `conditions` or `source`, `(n, ...)`, in the place of those of examples.
        """
        asked = given if labels is None else {**given, "labels": labels}
        return self.from_latents(self.latents(n, seed, start), **self.given(n, seed, start, asked))

    def given(self, n: int, seed: int, start: int = 0, asked: Mapping[str, Any] = MappingProxyType({})) -> Any:
        """What the generator is given for those samples beside latent vectors, by name: what is asked, or as in data.

        A sample has conditions, source and label of one example; where it takes labels alone, they are drawn.
        """
        numbers = tf.range(start, start + n, dtype=tf.int64)
        rows = {"labels": self.labels(n, seed, start)} if self.classes is not None and not self.rows else {}
        for name, (dataset, *_) in self.rows.items():
            if name not in asked:
                # Far beyond what training sees, or the whole set in an order of this seed.
                at = numbers + (seed * 2**31 if dataset.size is None else 0)
                at = numbers_at(at, dataset.size, seed, _OF_SAMPLES).numpy()
                rows[name] = rows_of(self.rows[name], at, self._seed)
        known = (*self.rows, *["labels"] * self._generator.conditional)
        if unknown := [name for name in asked if name not in known]:
            raise ContractError(f"The generator takes no {unknown[0]}: leave it out, or use one that does.")
        rows |= asked
        return {name: rows[name] for name in dict.fromkeys(("labels", *self.rows)) if name in rows}

    def latents(self, n: int, seed: int, start: int = 0) -> tf.Tensor:
        """The latent vectors of those samples, `(n, latent_dim)` float32; in a graph n and seed may be tensors."""
        return latents_of_samples(self._architecture, n, seed, start)

    def labels(self, n: int, seed: int, start: int = 0) -> np.ndarray | None:
        """The classes of those samples, `(n,)` int64, as frequent as in the data; None if unconditional."""
        if self._frequencies is None:
            return None
        uniform = noise.whole("uniform", (n, 1), seed=seed, stream=noise.LABELS, start=start).numpy()[:, 0]
        edges = np.cumsum(np.asarray(self._frequencies, np.float64))
        return np.minimum(np.searchsorted(edges / edges[-1], uniform, side="right"), len(edges) - 1).astype(np.int64)

    def from_latents(
        self, latents: tf.Tensor | np.ndarray, labels: Sequence[int] | np.ndarray | None = None, **given: Any
    ) -> np.ndarray:
        """Samples of latent vectors `(n, latent_dim)`: `(n, *sample_shape)` float32.

        Args:
            latents: The latent vectors.
            labels: Their classes, `(n,)`, for a conditional generator; for one that takes them, also the weights of
                classes, `(n, classes)`.
            **given: Their `conditions` and `source`, `(n, ...)`, for a generator that takes them.
        """
        if labels is not None and not self._generator.conditional:
            raise ContractError("The generator is unconditional: leave out the labels.")
        rows = {"labels": self._checked(labels, len(latents))} if self._generator.conditional else {}
        for name in self._generator.given:
            rows[name], shape = np.asarray(given.get(name, ()), np.float32), (len(latents), *self.rows[name].shape)
            if rows[name].shape != shape:
                raise ContractError(f"The generator takes {name} of shape {shape}; it was given {rows[name].shape}.")
        batches = [
            self._run(
                tf.convert_to_tensor(latents[i : i + self._batch_size]),
                {name: tf.constant(x[i : i + self._batch_size]) for name, x in rows.items()},
            )
            for i in range(0, len(latents), self._batch_size)
        ]
        return tf.nest.map_structure(lambda *parts: np.concatenate(parts), *batches)

    @property
    def function(self) -> tuple[keras.Model, Callable[..., Any]]:
        """The network of a sampler as `networks` gives it."""
        return graph_of(self._generator.model), self.from_latents

    def _checked(self, labels: Any, n: int) -> np.ndarray:
        given = np.asarray(labels)
        if given.ndim == 2 and given.shape == (n, self._generator.classes):
            return given.astype(np.float32)
        if labels is None or given.shape != (n,) or given.dtype.kind not in "iu":
            raise ContractError(
                f"A conditional generator needs a label for each of {n} latent vectors; it was given "
                f"{'none' if labels is None else f'{given.dtype} of shape {given.shape}'}."
            )
        if self.classes is not None and given.size and not (given.min() >= 0 and given.max() < self.classes):
            wrong = given.min() if given.min() < 0 else given.max()
            raise ContractError(f"Labels are from 0 to {self.classes - 1}; the generator was given {wrong}.")
        return given.astype(np.int64)

    def _batch(self, latent: tf.Tensor, given: Tensors) -> tf.Tensor:
        weights = self._weights() if callable(self._weights) else read(self._weights)
        return self._generator(latent, weights, self._buffers(), given=given, training=False)[0]


class Scorer:
    """The critic as constrained, `(n, *sample_shape) -> (n,)` float32, the layers as in inference.

    Attributes:
        rows: How many points its graph scores at once.
    """

    rows: ClassVar[int] = _BATCH

    def __init__(self, state: TrainingState, classes: int | None = None) -> None:
        """Takes the critic's variables, and how many classes the data has.

        Points without labels are scored as every class in turn, and the scores of a conditional critic averaged.
        """
        self._state, self._player = state, state.in_turn[0]
        self._classes = classes if self.of_examples and self._player.network.conditional else None
        self._run = tf.function(functools.partial(self._scores), autograph=False, reduce_retracing=True)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Scores of these points."""
        # In parts: a picture has sixteen thousand points, which together would take more memory than the rest of a run.
        parts = [self._run(tf.convert_to_tensor(x[i : i + _BATCH], tf.float32)) for i in range(0, len(x), _BATCH)]
        return np.concatenate([part.numpy() for part in parts])

    @property
    def of_examples(self) -> bool:
        """Whether the critic is a function of examples alone; one that is not cannot be called here."""
        return self._player.role.name == CRITIC and self._player.network.input_shape is not None

    def bounds(self) -> dict[str, float]:
        """Certified Lipschitz bounds by constraint, of those that give one, for a critic of examples alone."""
        if not self.of_examples:
            return {}
        with self._state.timed():
            return self._player.bounds()

    def effective(self, weights: Tensors | None = None) -> Tensors:
        """The weights that the critic computes with, made from these or from its own; differentiable."""
        values = self._player.nest if weights is None else self._player.nest._replace(weights=weights)
        with self._state.timed():
            return self._player.stack.effective(values_of(values))

    def critic(self, effective: Tensors, labels: tf.Tensor | None = None, weights: Tensors | None = None) -> Wrapped:
        """The critic with these weights as a wrapped function of tensors, `(n, *sample_shape) -> (n,)`.

        Args:
            effective: The weights.
            labels: The class of each row of a conditional critic's input, `(n,)` int64.
            weights: The weights that these were made from, for plugins that compute with others.
        """
        if not self.of_examples:
            raise IncompatibleError(
                f"The critic {self._state.critic.network.model.name!r} takes more than examples, or other inputs: "
                "certificates, and diagnostics that score examples, need a critic of examples alone."
            )
        with self._state.timed():
            data = {} if labels is None else {"labels": labels}
            plain, wrapped = self._player.function(effective, read(self._player.buffers), data)

        def scores(x: tf.Tensor) -> tf.Tensor:
            with self._state.timed():
                return wrapped(x)

        return Wrapped(plain, scores, lambda other: self.critic(self.effective(other), labels, other), weights or {})

    def _scores(self, x: tf.Tensor) -> tf.Tensor:
        effective, classes = self.effective(), self._classes
        if classes is None:
            return self.critic(effective)(x)

        def body(c: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            labels = tf.fill([tf.shape(x)[0]], tf.cast(c, tf.int64))
            return c + 1, tf.ensure_shape(total + self.critic(effective, labels)(x), total.shape)

        # In turn: there may be thousands of classes, and all critics at once would need their memory together.
        (total,) = in_turn(classes, body, (tf.zeros(tf.shape(x)[:1]),))
        return total / classes


def sampler(experiment: Experiment, state: TrainingState) -> Sampler:
    """Draws from the generator with the weights that samples are drawn with."""
    conditional = state.generator.network.conditional
    frequencies = label_frequencies(experiment.dataset, experiment.seed) if conditional else None
    further = [name for name, player in state.players.items() if name != GENERATOR and player.role.side == GENERATOR]

    def of(name: str, *others: Any, **given: Any) -> Sampler:
        weights, buffers = (functools.partial(f, name) for f in (state.sampling_weights, state.sampling_buffers))
        network = state.players[name].network
        return Sampler(network, weights, experiment.architecture, *others, buffers=buffers, **given)

    given = {"rows": experiment.given, "seed": experiment.seed}
    return of(GENERATOR, frequencies, **given, networks=lambda: {name: of(name).function for name in further})


def label_frequencies(dataset: Dataset, seed: int) -> list[float] | None:
    """How often each class occurs in a dataset, of at most 100,000 of its examples; None for one without labels."""
    if dataset.classes is None:
        return None
    count = _COUNTED if dataset.size is None else min(_COUNTED, dataset.size)
    with plugin_code(selector_of(dataset), "labels"):
        labels = np.asarray(optional.call(dataset.labels, tf.range(count, dtype=tf.int64), seed=seed))
    if labels.size and not (labels.min() >= 0 and labels.max() < dataset.classes):
        raise ContractError(
            f"{selector_of(dataset)} has labels from {labels.min()} to {labels.max()}; with classes = "
            f"{dataset.classes} they must be from 0 to {dataset.classes - 1}."
        )
    return (np.bincount(labels, minlength=dataset.classes) / count).tolist()


def shown(dataset: Dataset, samples: np.ndarray) -> np.ndarray | list[str] | None:
    """Samples as their dataset shows them: images, or a text each; None where it does not say."""
    with plugin_code(selector_of(dataset), "show"):
        given = dataset.show(samples)
        if given is None or (isinstance(given, list) and len(given) == len(samples) and {*map(type, given)} == {str}):
            return given
        images = np.asarray(given)
    if images.ndim != 4 or len(images) != len(samples) or images.shape[-1] not in (1, 3) or images.dtype.kind != "f":
        raise ContractError(
            f"Dataset {type(dataset).__name__} returned {images.dtype} of shape {images.shape} from show for "
            f"{len(samples)} samples; it must be images, (n, height, width, 1 or 3) of floats, or a list of n texts."
        )
    return images


def first_examples(dataset: Dataset, n: int, seed: int) -> np.ndarray:
    """The first examples of a dataset, at most n: `(<= n, *sample_shape)` float32.

    Raises:
        ContractError: One of them has a value that is not a finite number.
    """
    return examples_of(dataset, np.arange(n if dataset.size is None else min(n, dataset.size)), seed)


def examples_of(dataset: Dataset, numbers: np.ndarray, seed: int) -> np.ndarray:
    """The examples of a dataset with these numbers, int64 `(n,)`: `(n, *sample_shape)` float32.

    Raises:
        ContractError: One of them has a value that is not a finite number.
    """
    return rows_of(Rows(dataset, "examples", tuple(dataset.sample_shape)), numbers, seed)


def rows_of(rows: Rows, numbers: np.ndarray, seed: int) -> np.ndarray:
    """The rows with these numbers, int64 `(n,)`, of a method of a dataset, checked as `examples_of` does."""
    with plugin_code(selector_of(rows.dataset), rows.method):
        parts = (tf.constant(numbers[i : i + _BATCH], tf.int64) for i in range(0, len(numbers), _BATCH))
        values = np.concatenate([np.asarray(called(rows, part, seed)) for part in parts])
    check_finite_examples(rows.dataset, numbers, values)
    return values
