"""The fidelity and the diversity of samples, measured separately by nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab_builtin.evaluators.comparing import FROM_ZERO, SHARE, Compared, OverFeatures, Possible, Sample, compared

if TYPE_CHECKING:
    from ganlab import Run

_BLOCK = 500


class PrecisionRecall(OverFeatures):
    """Precision, how much of what is generated lies among real examples, and recall, the other way round.

    Kynkaanniemi, Karras, Laine, Lehtinen and Aila, "Improved precision and recall metric for assessing generative
    models" (2019), eqs. 1 and 2: each sample spans a manifold, the union of balls around its points that reach to
    their k-th nearest neighbour. A perfect generator scores what two real samples do, which is below 1.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "precision": (
            "The fraction of samples within the real examples' manifold, by nearest neighbours: how good samples "
            "are. Larger is better."
        ),
        "recall": (
            "The fraction of real examples within the samples' manifold: how much of the data is covered. Larger "
            "is better."
        ),
        "real_precision": "The precision of a second real sample: the score to reach.",
    }

    possible: ClassVar[Possible] = dict.fromkeys(("precision", "recall", "real_precision"), SHARE)

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Lt(2**31)] = 2000,
        neighbours: Annotated[int, Ge(1), Lt(2**31)] = 3,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset.
            neighbours: k; the paper's is 3.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels.

        Raises:
            ConfigError: A number is too small, or there would be too few samples for k.
        """
        _check("precision_recall", samples, neighbours)
        self.samples, self.neighbours, self.seed, self.features = samples, neighbours, seed, features

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The fractions.

        Args:
            sample: `sample(n, seed)` draws n samples.
            dataset: The source of real examples.
            run: Not used.

        Returns:
            `precision` and `recall`, and `real_precision`, the score of a second real sample.

        Raises:
            IncompatibleError: There are too few real examples, or samples are of another shape.
        """
        drawn = _drawn("precision_recall", sample, dataset, self.samples, self.neighbours, self.seed, self.features)
        radii = neighbour_radii(drawn.real, self.neighbours)
        return {
            "precision": covered(drawn.generated, drawn.real, radii),
            "recall": covered(drawn.real, drawn.generated, neighbour_radii(drawn.generated, self.neighbours)),
            "real_precision": covered(drawn.other, drawn.real, radii),
        }


class DensityCoverage(OverFeatures):
    """Density, how crowded with real examples the place of a sample is, and coverage, how many real ones have company.

    Naeem, Oh, Uh, Choi and Yoo, "Reliable fidelity and diversity metrics for generative models" (2020), eqs. 3 and 4,
    with balls around real examples alone, so that outliers of the generator do not count as manifold. For a perfect
    generator density is 1 on average and coverage `1 - prod over i < k of (n - 1 - i) / (2n - 1 - i)`, nearly
    `1 - 2^-k` (their section 4).
    """

    metric_help: ClassVar[dict[str, str]] = {
        "density": (
            "The number of real examples' neighbourhoods that a sample lies in, over the expected number: about 1 for "
            "a perfect generator."
        ),
        "coverage": "The fraction of real examples with a sample in their neighbourhood. Larger is better.",
        "real_density": "The density of a second real sample.",
        "real_coverage": "The coverage of a second real sample: the score to reach.",
    }

    possible: ClassVar[Possible] = {
        **dict.fromkeys(("density", "real_density"), FROM_ZERO),
        **dict.fromkeys(("coverage", "real_coverage"), SHARE),
    }

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Lt(2**31)] = 2000,
        neighbours: Annotated[int, Ge(1), Lt(2**31)] = 5,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset.
            neighbours: k; the paper's is 5.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels.

        Raises:
            ConfigError: A number is too small, or there would be too few samples for k.
        """
        _check("density_coverage", samples, neighbours)
        self.samples, self.neighbours, self.seed, self.features = samples, neighbours, seed, features

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures.

        Args:
            sample: `sample(n, seed)` draws n samples.
            dataset: The source of real examples.
            run: Not used.

        Returns:
            `density`, at least 0 and perhaps above 1, `coverage`, and both of a second real sample as `real_density`
            and `real_coverage`.

        Raises:
            IncompatibleError: There are too few real examples, or samples are of another shape.
        """
        drawn = _drawn("density_coverage", sample, dataset, self.samples, self.neighbours, self.seed, self.features)
        radii = neighbour_radii(drawn.real, self.neighbours)
        density, coverage = density_and_coverage(drawn.generated, drawn.real, radii, self.neighbours)
        real_density, real_coverage = density_and_coverage(drawn.other, drawn.real, radii, self.neighbours)
        return {
            "density": density,
            "coverage": coverage,
            "real_density": real_density,
            "real_coverage": real_coverage,
        }


def neighbour_radii(points: np.ndarray, k: int) -> np.ndarray:
    """The squared distance of each point to its k-th nearest among the others, `(n,)` from `(n, d)`."""
    # The nearest of all is the point itself.
    return np.concatenate([np.partition(squared, k, axis=1)[:, k] for squared in _squared_distances(points, points)])


def covered(queries: np.ndarray, centres: np.ndarray, radii: np.ndarray) -> float:
    """The fraction of queries `(m, d)` that lie in a ball around a centre `(n, d)` of squared radius `(n,)`."""
    return float(np.mean(np.concatenate([(sq <= radii).any(axis=1) for sq in _squared_distances(queries, centres)])))


def density_and_coverage(samples: np.ndarray, real: np.ndarray, radii: np.ndarray, k: int) -> tuple[float, float]:
    """How many balls around real points a sample lies in, over k; and the fraction of balls that hold a sample."""
    hits, reached = 0, np.zeros(len(real), bool)
    for squared in _squared_distances(samples, real):
        inside = squared <= radii
        hits += int(inside.sum())
        reached |= inside.any(axis=0)
    return hits / (k * len(samples)), float(reached.mean())


def _squared_distances(queries: np.ndarray, points: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of `(rows, n)`: memory grows with the samples and not with their square."""
    from scipy.spatial.distance import cdist

    for start in range(0, len(queries), _BLOCK):
        yield cdist(queries[start : start + _BLOCK], points, "sqeuclidean")


def _check(evaluator: str, samples: int, neighbours: int) -> None:
    if samples <= neighbours:
        raise ganlab.ConfigError(
            f"evaluators.{evaluator}.samples = {samples!r} must be above evaluators.{evaluator}.neighbours, which is "
            f"{neighbours!r}."
        )


def _drawn(
    evaluator: str,
    sample: Sample,
    dataset: ganlab.Dataset,
    samples: int,
    neighbours: int,
    seed: int,
    features: ganlab.Features | None,
) -> Compared:
    drawn = compared(evaluator, sample, dataset, samples=samples, seed=seed, features=features)
    if len(drawn.real) <= neighbours:
        raise ganlab.IncompatibleError(
            f"evaluators.{evaluator} looks for {neighbours} neighbours among {len(drawn.real)} examples, which is half "
            f"of {type(dataset).__name__}. Set evaluators.{evaluator}.neighbours lower, or use a larger dataset."
        )
    return drawn
