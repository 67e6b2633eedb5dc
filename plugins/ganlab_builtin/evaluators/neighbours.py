"""The fidelity and the diversity of samples, measured separately by nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab_builtin.evaluators.comparing import FROM_ZERO, SHARE, Compared, OverFeatures, Possible, Sample, compared

if TYPE_CHECKING:
    from ganlab import Run

_BLOCK = 500


def _with_ends(help: Mapping[str, str]) -> dict[str, str]:
    ends = {"low": "The lower end of the 95% interval of {}, by the bootstrap.", "high": "The upper end for {}."}
    return {**help, **{f"{name}_{end}": text.format(name) for name in help for end, text in ends.items()}}


class _ByNeighbours(OverFeatures):
    """Base class: figures are means over points, and their intervals those of such means."""

    name: ClassVar[str]

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Le(10**7)] = 2000,
        neighbours: Annotated[int, Ge(1), Lt(2**31)] = 3,
        resamples: Annotated[int, Ge(0), Lt(2**31)] = 0,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset.
            neighbours: k; the default is the paper's.
            resamples: How often points are drawn anew for 95% intervals, of the points that are counted, given the
                balls: 1000, for example. 0 is for none.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels.

        Raises:
            ConfigError: A number is too small, or there would be too few samples for k.
        """
        if samples <= neighbours:
            raise ganlab.ConfigError(
                f"evaluators.{self.name}.samples = {samples!r} must be above evaluators.{self.name}.neighbours, which "
                f"is {neighbours!r}."
            )
        self.samples, self.neighbours, self.resamples = samples, neighbours, resamples
        self.seed, self.features = seed, features

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures of the class's description, and with `resamples` the ends of their intervals; NaN if not finite.

        Raises:
            IncompatibleError: There are too few real examples, or samples are of another shape.
        """
        drawn = compared(self.name, sample, dataset, samples=self.samples, seed=self.seed, features=self.features)
        if len(drawn.real) <= self.neighbours:
            raise ganlab.IncompatibleError(
                f"evaluators.{self.name} looks for {self.neighbours} neighbours among {len(drawn.real)} examples, "
                f"which is half of {type(dataset).__name__}. Set evaluators.{self.name}.neighbours lower, or use a "
                "larger dataset."
            )
        points = self._points(drawn, neighbour_radii(drawn.real, self.neighbours))
        for name in points:
            # An infinite sample's ball would hold everything, and NaN lies nowhere, as do samples far from the data.
            pair = drawn.other if name.startswith("real_") else drawn.generated, drawn.real
            if not all(np.isfinite(x).all() for x in pair):
                points[name] = np.full(1, np.nan)
        # Densities are counts of balls, over k.
        units = {name: self.neighbours if "density" in name else 1 for name in points}
        figures = {name: float(values.sum() / (units[name] * len(values))) for name, values in points.items()}
        random = np.random.default_rng(self.seed)
        for name, values in points.items() if self.resamples else ():
            means = [values[random.integers(len(values), size=len(values))].mean() for _ in range(self.resamples)]
            ends = np.quantile(means, (0.025, 0.975)) / units[name]
            figures |= {f"{name}_low": float(ends[0]), f"{name}_high": float(ends[1])}
        return figures

    def _points(self, drawn: Compared, radii: np.ndarray) -> dict[str, np.ndarray]:
        """The values of points whose means are the figures."""
        raise NotImplementedError


class PrecisionRecall(_ByNeighbours):
    """Precision, how much of what is generated lies among real examples, and recall, the other way round.

    Kynkaanniemi, Karras, Laine, Lehtinen and Aila, "Improved precision and recall metric for assessing generative
    models" (2019), eqs. 1 and 2: each sample spans a manifold, the union of balls around its points that reach to
    their k-th nearest neighbour. A perfect generator scores what two real samples do, which is below 1.
    """

    metric_help: ClassVar[dict[str, str]] = _with_ends(
        {
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
    )

    name: ClassVar[str] = "precision_recall"
    possible: ClassVar[Possible] = dict.fromkeys(("precision", "recall", "real_precision"), SHARE)
    better: ClassVar = {"precision": "max", "recall": "max"}

    def _points(self, drawn: Compared, radii: np.ndarray) -> dict[str, np.ndarray]:
        return {
            "precision": inside(drawn.generated, drawn.real, radii),
            "recall": inside(drawn.real, drawn.generated, neighbour_radii(drawn.generated, self.neighbours)),
            "real_precision": inside(drawn.other, drawn.real, radii),
        }


class DensityCoverage(_ByNeighbours):
    """Density, how crowded with real examples the place of a sample is, and coverage, how many real ones have company.

    Naeem, Oh, Uh, Choi and Yoo, "Reliable fidelity and diversity metrics for generative models" (2020), eqs. 3 and 4,
    with balls around real examples alone, so that outliers of the generator do not count as manifold. For a perfect
    generator density is 1 on average and coverage `1 - prod over i < k of (n - 1 - i) / (2n - 1 - i)`, nearly
    `1 - 2^-k` (their section 4).
    """

    metric_help: ClassVar[dict[str, str]] = _with_ends(
        {
            "density": (
                "The number of real examples' neighbourhoods that a sample lies in, over the expected number: about 1 "
                "for a perfect generator."
            ),
            "coverage": "The fraction of real examples with a sample in their neighbourhood. Larger is better.",
            "real_density": "The density of a second real sample.",
            "real_coverage": "The coverage of a second real sample: the score to reach.",
        }
    )

    name: ClassVar[str] = "density_coverage"
    better: ClassVar = {"coverage": "max"}
    possible: ClassVar[Possible] = {
        **dict.fromkeys(("density", "real_density"), FROM_ZERO),
        **dict.fromkeys(("coverage", "real_coverage"), SHARE),
    }

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Le(10**7)] = 2000,
        neighbours: Annotated[int, Ge(1), Lt(2**31)] = 5,
        resamples: Annotated[int, Ge(0), Lt(2**31)] = 0,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset.
            neighbours: k; the paper's is 5.
            resamples: How often points are drawn anew for 95% intervals, of the points that are counted, given the
                balls: 1000, for example. 0 is for none.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels.
        """
        super().__init__(samples=samples, neighbours=neighbours, resamples=resamples, seed=seed, features=features)

    def _points(self, drawn: Compared, radii: np.ndarray) -> dict[str, np.ndarray]:
        names = ("density", "coverage", "real_density", "real_coverage")
        values = (*crowding(drawn.generated, drawn.real, radii), *crowding(drawn.other, drawn.real, radii))
        return dict(zip(names, values, strict=True))


def neighbour_radii(points: np.ndarray, k: int) -> np.ndarray:
    """The squared distance of each point to its k-th nearest among the others, `(n,)` from `(n, d)`."""
    # The nearest of all is the point itself.
    return np.concatenate([np.partition(squared, k, axis=1)[:, k] for squared in squared_distances(points, points)])


def inside(queries: np.ndarray, centres: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Which queries `(m, d)` lie in a ball around a centre `(n, d)` of squared radius `(n,)`."""
    return np.concatenate([(squared <= radii).any(axis=1) for squared in squared_distances(queries, centres)])


def covered(queries: np.ndarray, centres: np.ndarray, radii: np.ndarray) -> float:
    """The fraction of queries that lie in a ball."""
    return float(np.mean(inside(queries, centres, radii)))


def crowding(samples: np.ndarray, real: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many balls around real points each sample lies in; and which balls hold a sample."""
    hits, reached = [], np.zeros(len(real), bool)
    for squared in squared_distances(samples, real):
        within = squared <= radii
        hits.append(within.sum(axis=1))
        reached |= within.any(axis=0)
    return np.concatenate(hits), reached


def density_and_coverage(samples: np.ndarray, real: np.ndarray, radii: np.ndarray, k: int) -> tuple[float, float]:
    """How many balls around real points a sample lies in, over k; and the fraction of balls that hold a sample."""
    counts, reached = crowding(samples, real, radii)
    return float(counts.sum() / (k * len(samples))), float(reached.mean())


def squared_distances(queries: np.ndarray, points: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of `(rows, n)`: memory grows with the samples and not with their square."""
    from scipy.spatial.distance import cdist

    for start in range(0, len(queries), _BLOCK):
        yield cdist(queries[start : start + _BLOCK], points, "sqeuclidean")
