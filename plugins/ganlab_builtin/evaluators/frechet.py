"""The Fréchet distance of Gaussians fitted to features: with an Inception network's, the FID."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab_builtin.evaluators.comparing import AGAINST_REAL, Distance, Possible, Sample

if TYPE_CHECKING:
    from ganlab import Run

_WIDEST = 4096  # a covariance of this many features takes 128 MiB, and its eigenvalues a minute
_POINTS = 15  # of the line, as in the authors' program
_GROUPS = 10  # of the jackknife


class FrechetDistance(Distance):
    """The squared Fréchet distance between Gaussians fitted to generated and to real features.

    Heusel et al., "GANs trained by a two time-scale update rule converge to a local Nash equilibrium" (2017), eq. 6:
    `||m - m_r||^2 + tr(C + C_r - 2 (C C_r)^(1/2))`, which they call FID if features are those of Inception. It is
    the squared Wasserstein-2 distance of the two Gaussians. The estimate is biased upward by an amount that depends on
    the sample's size and on the generator (Binkowski et al., 2018): compare figures of one size only. Samples should
    outnumber the features, or the covariances lack full rank.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": (
            "The Fréchet distance between features of samples and of real examples: smaller is better. Biased "
            "upward by few samples: comparable between runs with the same features and as many samples."
        ),
        "real_against_real": f"{AGAINST_REAL} Not 0, since it is biased.",
    }

    name: ClassVar[str] = "frechet_distance"

    def measure(self, x: np.ndarray, y: np.ndarray) -> float:
        """The distance of two samples."""
        _check_width(self.name, x)
        return gaussian_frechet(*moments(x), *moments(y))


class FrechetInfinity(Distance):
    """The squared Fréchet distance that endlessly many samples would have: FD-infinity, with its interval.

    Chong and Forsyth, "Effectively unbiased FID and inception score and where to find them" (2020), section 4: the bias
    of a distance of N samples is nearly proportional to 1/N, so that the line fitted by least squares to distances of
    15 numbers N is unbiased where 1/N is 0. N goes in even steps from 5,000, or a tenth of the samples if that is less,
    to all. There are always as many real examples, whose bias stays, unless `both`. The interval is Tukey's jackknife
    (1958) over ten groups, so that it takes 165 Fréchet distances.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": "The Fréchet distance of endlessly many samples, by a line in 1/N; it may be slightly negative.",
        "real_against_real": AGAINST_REAL,
        "low": "The lower end of the 95% interval of the distance, by the jackknife over groups of examples.",
        "high": "The upper end.",
    }

    possible: ClassVar[Possible] = {}
    name: ClassVar[str] = "frechet_infinity"

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(20), Le(10**7)] = 5000,
        both: bool = False,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset.
            both: Whether there are N real examples, too, at each point, so that their bias goes as well.
            seed: Decides the noise that samples are drawn from, the real examples, and which are in a point.
            features: The space to measure in; None for pixels.
        """
        super().__init__(samples=samples, seed=seed, features=features)
        self.both = both

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The distances, as of every distance, and `low` and `high`."""
        from scipy.stats import t

        drawn = self.drawn(sample, dataset)
        figures = self.distances(drawn, self.measure)
        groups = np.random.default_rng(self.seed).permutation(len(drawn.real)) % _GROUPS
        if not np.isfinite(figures["distance"]):
            return figures | dict.fromkeys(("low", "high"), float("nan"))
        left_out = [self.measure(drawn.generated, drawn.real, groups != group) for group in range(_GROUPS)]
        half = float(t.ppf(0.975, _GROUPS - 1) * np.std(left_out) * np.sqrt(_GROUPS - 1))
        return figures | {"low": figures["distance"] - half, "high": figures["distance"] + half}

    def measure(self, x: np.ndarray, y: np.ndarray, kept: np.ndarray | None = None) -> float:
        """The extrapolated distance of rows, or of those that are kept; points are chosen before."""
        _check_width(self.name, x)
        kept, random = np.ones(len(x), bool) if kept is None else kept, np.random.default_rng(self.seed)
        counts, distances = [], []
        fixed = None if self.both else moments(y[kept])
        root = None if fixed is None else _root(fixed[1])
        for count in np.linspace(min(5000, max(len(x) // 10, 2)), len(x), _POINTS).astype(int):
            rows = random.choice(len(x), count, replace=False)
            rows = rows[kept[rows]]
            if len(rows) > 1:
                counts.append(len(rows))
                distances.append(gaussian_frechet(*(fixed or moments(y[rows])), *moments(x[rows]), root))
        inverse = 1.0 / np.array(counts)
        apart = inverse - inverse.mean()
        slope = float(apart @ np.array(distances)) / max(float(apart @ apart), 1e-300)
        return float(np.mean(distances) - slope * inverse.mean())


def _check_width(name: str, x: np.ndarray) -> None:
    if x.shape[1] > _WIDEST:
        raise ganlab.IncompatibleError(
            f"evaluators.{name} fits Gaussians of {x.shape[1]} features, and takes {_WIDEST} at most. Set "
            f"evaluators.{name}.features, for example to @features.classifier()."
        )


def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean, `(d,)`, and the unbiased covariance, `(d, d)`, of rows `(n, d)`."""
    return x.mean(axis=0), np.cov(x, rowvar=False).reshape(x.shape[1], x.shape[1])


def gaussian_frechet(
    mean: np.ndarray,
    covariance: np.ndarray,
    mean_r: np.ndarray,
    covariance_r: np.ndarray,
    root: np.ndarray | None = None,
) -> float:
    """The squared Fréchet distance between two Gaussians (Dowson and Landau, 1982), at least 0; NaN if not finite.

    `C C_r` has the eigenvalues of the symmetric `C^(1/2) C_r C^(1/2)`, so that the trace of its root needs no root of
    a matrix that is not symmetric. `root` is `C^(1/2)` if it is known.
    """
    if not all(np.isfinite(x).all() for x in (mean, covariance, mean_r, covariance_r)):
        return float("nan")
    root = _root(covariance) if root is None else root
    cross = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ covariance_r @ root), 0.0)).sum()
    between_means = float(np.sum((mean - mean_r) ** 2))
    return max(0.0, between_means + float(np.trace(covariance) + np.trace(covariance_r) - 2.0 * cross))


def _root(covariance: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
