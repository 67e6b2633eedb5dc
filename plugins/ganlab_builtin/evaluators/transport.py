"""Distances of optimal transport between generated and real examples."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab.transport import exact_w1, sliced_wasserstein
from ganlab_builtin.evaluators.comparing import FROM_ZERO, OverFeatures, Possible, Sample, compared

if TYPE_CHECKING:
    from ganlab import Run


class ExactW1(OverFeatures):
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
        "real_against_real": (
            "The same measure between two disjoint samples of real examples: what a perfect generator would get."
        ),
    }

    possible: ClassVar[Possible] = dict.fromkeys(("distance", "real_against_real"), FROM_ZERO)

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Lt(2**31)] = 1000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset. Time grows as the cube.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels, where the critic's own constraint holds.
        """
        self.samples, self.seed, self.features = samples, seed, features

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The distances.

        Args:
            sample: `sample(n, seed)` draws n samples.
            dataset: The source of real examples.
            run: Not used.

        Returns:
            `distance`, of generated examples from real ones, and `real_against_real`, between two real samples.

        Raises:
            IncompatibleError: There are too few real examples, or samples are of another shape.
        """
        drawn = compared("exact_w1", sample, dataset, samples=self.samples, seed=self.seed, features=self.features)
        return self.distances(drawn, exact_w1)


class SlicedWasserstein(OverFeatures):
    """The mean Wasserstein distance of one-dimensional projections: fast in any dimension.

    Bonneel, Rabin, Peyre and Pfister, "Sliced and Radon Wasserstein barycenters of measures" (2015): directions u are
    uniform on the sphere, and the figure is `(mean over u of W_p(<x, u>, <y, u>)^p)^(1/p)`.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": (
            "The mean Wasserstein distance of samples from real examples over random directions: smaller is better."
        ),
        "real_against_real": (
            "The same measure between two disjoint samples of real examples: what a perfect generator would get."
        ),
    }

    possible: ClassVar[Possible] = dict.fromkeys(("distance", "real_against_real"), FROM_ZERO)

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Lt(2**31)] = 5000,
        projections: Annotated[int, Ge(1), Lt(2**31)] = 256,
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
        self.samples, self.projections, self.order = samples, projections, order
        self.seed, self.features = seed, features

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The distances.

        Args:
            sample: `sample(n, seed)` draws n samples.
            dataset: The source of real examples.
            run: Not used.

        Returns:
            `distance`, of generated examples from real ones, and `real_against_real`, between two real samples.

        Raises:
            IncompatibleError: There are too few real examples, or samples are of another shape.
        """
        drawn = compared(
            "sliced_wasserstein", sample, dataset, samples=self.samples, seed=self.seed, features=self.features
        )
        measure = functools.partial(sliced_wasserstein, projections=self.projections, order=self.order, seed=self.seed)
        return self.distances(drawn, measure)
