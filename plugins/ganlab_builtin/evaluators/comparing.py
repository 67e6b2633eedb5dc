"""Shared parts of evaluators that compare samples: equally many generated and real examples, as feature vectors."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    from ganlab import Run

_BLOCK = 500
_KEPT = 1 << 28  # bytes of feature vectors that are kept for the next evaluator and the next evaluation
_vectors: dict[tuple[str, bytes], np.ndarray] = {}  # by features and examples, the last used last

Sample = Callable[[int, int], np.ndarray]

# The least and the largest value of figures, by name; such as a share of examples, a distance and a score of classes.
Possible = Mapping[str, tuple[float, float]]
SHARE, FROM_ZERO, FROM_ONE = (0.0, 1.0), (0.0, math.inf), (1.0, math.inf)

# Explains the figure `real_against_real`.
AGAINST_REAL = "The same measure between two disjoint samples of real examples: what a perfect generator would get."


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


class Distance(OverFeatures):
    """Base class of evaluators that are a distance between two samples of one size.

    Attributes:
        name: The evaluator's name.
    """

    name: ClassVar[str]
    possible: ClassVar[Possible] = dict.fromkeys(("distance", "real_against_real"), FROM_ZERO)
    better: ClassVar = {"distance": "min"}

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Le(10**7)] = 5000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels.
        """
        self.samples, self.seed, self.features = samples, seed, features

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The distances.

        Returns:
            `distance`, of generated examples from real ones, and `real_against_real`, between two real samples.

        Raises:
            IncompatibleError: There are too few real examples, or samples are of another shape.
        """
        return self.distances(self.drawn(sample, dataset), self.measure)

    def drawn(self, sample: Sample, dataset: ganlab.Dataset) -> Compared:
        """The samples to compare."""
        return compared(self.name, sample, dataset, samples=self.samples, seed=self.seed, features=self.features)

    def measure(self, x: np.ndarray, y: np.ndarray) -> float:
        """The distance of two samples, `(n, d)` float64."""
        raise NotImplementedError


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
    rows = [generated_examples(evaluator, sample, dataset, len(real), seed)]
    rows += [real_examples(dataset, numbers, seed) for numbers in (real, other)]
    return Compared(*(embedded(features, x) for x in rows))


def generated_examples(evaluator: str, sample: Sample, dataset: ganlab.Dataset, count: int, seed: int) -> np.ndarray:
    """Samples, `(count, *sample_shape)`; an IncompatibleError if they are of another shape than examples."""
    shape, generated = tuple(dataset.sample_shape), np.asarray(sample(count, seed))
    if generated.shape != (count, *shape):
        raise ganlab.IncompatibleError(
            f"evaluators.{evaluator} drew samples of shape {generated.shape[1:]}, and the examples of "
            f"{type(dataset).__name__} are of shape {shape}: they cannot be compared."
        )
    return generated


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


def class_probabilities(evaluator: str, features: ganlab.Features, x: np.ndarray) -> np.ndarray:
    """The class probabilities of examples, as `of_finite`, `(n, classes)`; an IncompatibleError if there are none."""
    probabilities = features.probabilities(x)
    if probabilities is None:
        raise ganlab.IncompatibleError(
            f"evaluators.{evaluator} needs class probabilities, and {type(features).__name__} gives none. Set "
            f"evaluators.{evaluator}.features = @features.classifier()."
        )
    return of_finite(x, probabilities)


def _digest(*samples: np.ndarray) -> bytes:
    digest = hashlib.blake2b()
    for points in samples:
        digest.update(repr(points.shape).encode())
        digest.update(np.ascontiguousarray(points).data)
    return digest.digest()


def embedded(features: ganlab.Features | None, x: np.ndarray) -> np.ndarray:
    """Examples as feature vectors, float64, `(n, d)`.

    Vectors of features that can tell themselves from others are kept, by blocks of examples: evaluators of one
    evaluation share them, and those of real examples are made once.
    """
    if features is None:
        return np.asarray(x.reshape(len(x), -1), np.float64)
    told = getattr(features, "weights_digest", None) or features.fingerprint()
    if not told:
        return of_finite(x, features.embed(x))
    name = f"{type(features).__qualname__} {json.dumps(told, sort_keys=True, default=str)}"
    parts = []
    for start in range(0, len(x), _BLOCK):
        block = x[start : start + _BLOCK]
        key = name, _digest(block)
        parts.append(_vectors.pop(key) if key in _vectors else np.asarray(features.embed(block)))
        _vectors[key] = parts[-1]
    while sum(kept.nbytes for kept in _vectors.values()) > _KEPT:
        del _vectors[next(iter(_vectors))]
    return of_finite(x, np.concatenate(parts))


def of_finite(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Features of examples, float64, with NaN in the rows of examples that are not finite: networks may clip these."""
    rows, finite = np.asarray(rows, np.float64), np.isfinite(x.reshape(len(x), -1)).all(axis=1)
    return rows if finite.all() else np.where(finite[:, None], rows, np.nan)
