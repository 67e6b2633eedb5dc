"""The Fréchet distance of Gaussians fitted to features: with an Inception network's, the FID."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab_builtin.evaluators.comparing import FROM_ZERO, OverFeatures, Possible, Sample, compared

if TYPE_CHECKING:
    from ganlab import Run

_WIDEST = 4096  # a covariance of this many features takes 128 MiB, and its eigenvalues a minute


class FrechetDistance(OverFeatures):
    """The squared Fréchet distance between Gaussians fitted to generated and to real features.

    Heusel et al., "GANs trained by a two time-scale update rule converge to a local Nash equilibrium" (2017), eq. 6:
    `||m - m_r||^2 + tr(C + C_r - 2 (C C_r)^(1/2))`, which they call FID if features are those of Inception. It is
    the squared Wasserstein-2 distance of the two Gaussians. The estimate is biased upward by an amount that depends on
    the sample's size and on the generator (Binkowski et al., 2018): compare figures of one size only.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": (
            "The Fréchet distance between features of samples and of real examples: smaller is better. Biased "
            "upward by few samples: comparable between runs with the same features and as many samples."
        ),
        "real_against_real": (
            "The same measure between two disjoint samples of real examples: what a perfect generator would get. "
            "Not 0, since it is biased."
        ),
    }

    possible: ClassVar[Possible] = dict.fromkeys(("distance", "real_against_real"), FROM_ZERO)

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Lt(2**31)] = 5000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset. They should outnumber
                the features, or the covariances lack full rank.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels.
        """
        self.samples, self.seed, self.features = samples, seed, features

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The distances.

        Args:
            sample: `sample(n, seed)` draws n samples.
            dataset: The source of real examples.
            run: Not used.

        Returns:
            `distance`, of generated features from real ones, and `real_against_real`, between two real samples.

        Raises:
            IncompatibleError: There are too few real examples or too many features, or samples are of another shape.
        """
        drawn = compared(
            "frechet_distance", sample, dataset, samples=self.samples, seed=self.seed, features=self.features
        )
        if drawn.real.shape[1] > _WIDEST:
            raise ganlab.IncompatibleError(
                f"evaluators.frechet_distance fits Gaussians of {drawn.real.shape[1]} features, and takes {_WIDEST} at "
                "most. Set evaluators.frechet_distance.features, for example to @features.classifier()."
            )
        return self.distances(drawn, lambda x, y: gaussian_frechet(*moments(x), *moments(y)))


def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean, `(d,)`, and the unbiased covariance, `(d, d)`, of rows `(n, d)`."""
    return x.mean(axis=0), np.cov(x, rowvar=False).reshape(x.shape[1], x.shape[1])


def gaussian_frechet(mean: np.ndarray, covariance: np.ndarray, mean_r: np.ndarray, covariance_r: np.ndarray) -> float:
    """The squared Fréchet distance between two Gaussians (Dowson and Landau, 1982), at least 0.

    `C C_r` has the eigenvalues of the symmetric `C^(1/2) C_r C^(1/2)`, so that the trace of its root needs no root of
    a matrix that is not symmetric.
    """
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    cross = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ covariance_r @ root), 0.0)).sum()
    between_means = float(np.sum((mean - mean_r) ** 2))
    return max(0.0, between_means + float(np.trace(covariance) + np.trace(covariance_r) - 2.0 * cross))
