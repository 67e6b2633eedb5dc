"""Shared parts of evaluators that compare samples: equally many generated and real examples, as feature vectors."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import ganlab
from ganlab.lazy import tensorflow as tf

_BLOCK = 500

Sample = Callable[[int, int], np.ndarray]

# The least and the largest value of figures, by name; such as a share of examples, a distance and a score of classes.
Possible = Mapping[str, tuple[float, float]]
SHARE, FROM_ZERO, FROM_ONE = (0.0, 1.0), (0.0, math.inf), (1.0, math.inf)


class OverFeatures(ganlab.Evaluator):
    """Base class of evaluators that measure in a feature space: they complain of useless features.

    Attributes:
        features: The space; None for pixels.
        possible: The least and the largest value of figures.
    """

    features: Any
    possible: ClassVar[Possible] = {}
    _between_real: tuple[bytes, float] | None = None

    def distances(self, drawn: Compared, measure: Callable[[np.ndarray, np.ndarray], float]) -> dict[str, float]:
        """The figures of an evaluator that is a distance between samples.

        A run is always evaluated on the same real examples, so `real_against_real` is computed only when they change.

        Args:
            drawn: The samples.
            measure: Takes two samples.

        Returns:
            `distance`, of generated examples from real ones, and `real_against_real`, between two real samples of that
            size. Either is NaN if its samples are not finite.
        """

        def between(x: np.ndarray, y: np.ndarray) -> float:
            return float(measure(x, y)) if np.isfinite(x).all() and np.isfinite(y).all() else float("nan")

        examples = _digest(drawn.other, drawn.real)
        if self._between_real is None or self._between_real[0] != examples:
            self._between_real = examples, between(drawn.other, drawn.real)
        return {"distance": between(drawn.generated, drawn.real), "real_against_real": self._between_real[1]}

    def limits(self, dataset: ganlab.Dataset) -> Possible:
        """The same for every dataset."""
        return self.possible

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Reports what the features report of themselves."""
        features: ganlab.Features | None = self.features
        return None if features is None else features.diagnose()


@dataclass(frozen=True)
class Compared:
    """Three samples of one size, float64, `(n, d)`.

    Attributes:
        generated: Drawn from the generator.
        real: Drawn from the dataset.
        other: Also from the dataset, without examples of `real` if it is finite: what a perfect generator would give.
    """

    generated: np.ndarray
    real: np.ndarray
    other: np.ndarray


def compared(
    evaluator: str,
    sample: Sample,
    dataset: ganlab.Dataset,
    *,
    samples: int,
    seed: int,
    features: ganlab.Features | None,
) -> Compared:
    """Draws the samples to compare.

    Args:
        evaluator: Its name, for messages.
        sample: Draws from the generator.
        dataset: The source of real examples. At most half of a finite one is compared with the other half.
        samples: The largest number of examples in each sample.
        seed: Decides the generator's noise and the real examples.
        features: The embedding of examples; None for the examples themselves, flattened.

    Raises:
        IncompatibleError: The dataset has fewer than four examples, or a sample is of another shape than its examples.
    """
    if features is not None:
        features.prepare(dataset)
    real, other = real_numbers(evaluator, dataset, samples=samples, seed=seed)
    shape = tuple(dataset.sample_shape)
    generated = np.asarray(sample(len(real), seed))
    if generated.shape != (len(real), *shape):
        raise ganlab.IncompatibleError(
            f"evaluators.{evaluator} drew samples of shape {generated.shape[1:]}, and the examples of "
            f"{type(dataset).__name__} are of shape {shape}: they cannot be compared."
        )
    rows = (generated, *(real_examples(dataset, numbers, seed) for numbers in (real, other)))
    return Compared(*(embedded(features, x) for x in rows))


def real_numbers(evaluator: str, dataset: ganlab.Dataset, *, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of two disjoint samples of real examples, int64, `(n,)` each.

    Raises:
        IncompatibleError: The dataset has fewer than four examples.
    """
    size = dataset.size
    if size is None:
        return np.arange(samples), np.arange(samples, 2 * samples)
    count = min(samples, size // 2)
    if count < 2:
        raise ganlab.IncompatibleError(
            f"evaluators.{evaluator} compares two halves of the real examples, and {type(dataset).__name__} has {size} "
            "in all. Drop it from experiment.evaluators, or use a dataset of four examples or more."
        )
    shuffled = np.random.default_rng(seed).permutation(size)
    return shuffled[:count], shuffled[count : 2 * count]


def real_examples(dataset: ganlab.Dataset, numbers: np.ndarray, seed: int) -> np.ndarray:
    """The examples with these numbers, float32, `(n, *sample_shape)`."""
    starts = range(0, len(numbers), _BLOCK)
    blocks = (tf.constant(numbers[start : start + _BLOCK], tf.int64) for start in starts)
    return np.concatenate([np.asarray(dataset.examples(block, seed)) for block in blocks])


def in_pieces(
    evaluator: str, sample: Callable[..., Any], shape: tuple[int, ...], *, samples: int, seed: int, most: int
) -> Iterator[np.ndarray]:
    """Samples, in parts of at most so many; a sampler that cannot begin with a later one is asked once.

    Raises:
        IncompatibleError: They are not of the examples' shape.
    """
    whole = None if "start" in inspect.signature(sample).parameters else np.asarray(sample(samples, seed))
    for start in range(0, samples, most):
        n = min(most, samples - start)
        x = np.asarray(sample(n, seed, start=start)) if whole is None else whole[start : start + n]
        if x.shape != (n, *shape):
            raise ganlab.IncompatibleError(
                f"evaluators.{evaluator} drew samples of shape {x.shape[1:]}, and the examples are of shape {shape}: "
                "they cannot be compared."
            )
        yield x


def _digest(*samples: np.ndarray) -> bytes:
    digest = hashlib.blake2b()
    for points in samples:
        digest.update(repr(points.shape).encode())
        digest.update(np.ascontiguousarray(points).data)
    return digest.digest()


def embedded(features: ganlab.Features | None, x: np.ndarray) -> np.ndarray:
    """Examples as feature vectors, float64, `(n, d)`."""
    return np.asarray(x.reshape(len(x), -1) if features is None else features.embed(x), np.float64)
