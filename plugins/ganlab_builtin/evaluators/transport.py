"""Distances of optimal transport between generated and real examples."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab.transport import exact_w1, sliced_wasserstein
from ganlab_builtin.evaluators.comparing import AGAINST_REAL, Distance


class ExactW1(Distance):
    """The exact Wasserstein-1 distance between samples: the reference for a critic's estimate.

    Kantorovich's problem in its primal form (Peyre and Cuturi, "Computational optimal transport", 2019, eq. 2.11),
    under the Euclidean distance of pixels or of features. Between samples the distance is biased upward, because two
    samples of one distribution are apart, the more so the higher the dimension (Weed and Bach, "Sharp asymptotic and
    finite-sample rates of convergence of empirical measures in Wasserstein distance", 2019): `real_against_real` shows
    by how much. POT computes it if it is installed (`pip install -e '.[eval]'`), scipy otherwise.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": (
            "The Wasserstein-1 distance between as many samples and real examples, by optimal transport: smaller "
            "is better. Biased upward by few samples: read it beside real_against_real."
        ),
        "real_against_real": AGAINST_REAL,
    }

    name: ClassVar[str] = "exact_w1"

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Le(10**7)] = 1000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset. Time grows as the cube.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels, where the critic's own constraint holds.
        """
        super().__init__(samples=samples, seed=seed, features=features)

    def measure(self, x: np.ndarray, y: np.ndarray) -> float:
        """The distance of two samples."""
        return exact_w1(x, y)


class SlicedWasserstein(Distance):
    """The mean Wasserstein distance of one-dimensional projections: fast in any dimension.

    Bonneel, Rabin, Peyre and Pfister, "Sliced and Radon Wasserstein barycenters of measures" (2015): directions u are
    uniform on the sphere, and the figure is `(mean over u of W_p(<x, u>, <y, u>)^p)^(1/p)`.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": (
            "The mean Wasserstein distance of samples from real examples over random directions: smaller is better."
        ),
        "real_against_real": AGAINST_REAL,
    }

    name: ClassVar[str] = "sliced_wasserstein"

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Le(10**7)] = 5000,
        projections: Annotated[int, Ge(1), Le(10**6)] = 256,
        order: Annotated[int, Ge(1), Lt(2**31)] = 2,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset.
            projections: The number of directions.
            order: p, 1 or more.
            seed: Decides the noise, the real examples and the directions.
            features: The space to measure in; None for pixels.
        """
        super().__init__(samples=samples, seed=seed, features=features)
        self.projections, self.order = projections, order

    def measure(self, x: np.ndarray, y: np.ndarray) -> float:
        """The distance of two samples."""
        return sliced_wasserstein(x, y, projections=self.projections, order=self.order, seed=self.seed)


class MongeInceptionDistance(Distance):
    """MIND: the squared sliced Wasserstein-2 distance of features, times three times their number.

    Berthet et al., "MIND: Monge Inception distance for generative models evaluation" (2026): `3 d / M` times the sum
    over M random directions u of the mean squared difference of the sorted `<x, u>` and `<y, u>`, for d features. Of
    5,000 samples it ranks generators much as the Fréchet distance of 50,000 does.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": (
            "The squared sliced Wasserstein distance of features, times 3 for each feature: smaller is better. "
            "Comparable between runs with the same features and as many samples."
        ),
        "real_against_real": AGAINST_REAL,
    }

    name: ClassVar[str] = "mind"

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Le(10**7)] = 5000,
        projections: Annotated[int, Ge(1), Le(10**6)] = 1000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset.
            projections: M, the number of directions.
            seed: Decides the noise, the real examples and the directions.
            features: The space to measure in, in the paper Inception's; None for pixels.
        """
        super().__init__(samples=samples, seed=seed, features=features)
        self.projections = projections

    def measure(self, x: np.ndarray, y: np.ndarray) -> float:
        """The distance of two samples."""
        return 3 * x.shape[1] * sliced_wasserstein(x, y, projections=self.projections, seed=self.seed) ** 2
