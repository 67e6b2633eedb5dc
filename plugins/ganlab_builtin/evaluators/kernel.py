"""The kernel distance between feature samples: unlike the Fréchet distance, without bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab_builtin.evaluators.comparing import OverFeatures, Sample, compared

if TYPE_CHECKING:
    from ganlab import Run

_BLOCK = 1000

# Between two samples of one distribution the estimate is zero on average, and far below one for usual features.
_APART = 1.0


class KernelDistance(OverFeatures):
    """The squared maximum mean discrepancy under a polynomial kernel, estimated without bias.

    Binkowski, Sutherland, Arbel and Gretton, "Demystifying MMD GANs" (2018), section 4: `k(x, y) = (<x, y> / d + 1)^3`
    over d features, which they call KID if features are those of Inception. Without bias means that it is zero on
    average between samples of one distribution, so that a figure may be negative.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": (
            "The squared maximum mean discrepancy between features of samples and of real examples; smaller is "
            "better, and it may be slightly negative. Comparable only between runs with the same features: with an "
            "untrained feature network it means nothing."
        ),
        "real_against_real": (
            "The same measure between two disjoint samples of real examples: what a perfect generator would get. "
            "About 0."
        ),
    }

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Lt(2**31)] = 5000,
        degree: Annotated[int, Ge(1), Lt(2**31)] = 3,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset.
            degree: The kernel's degree.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels.
        """
        self.samples, self.degree, self.seed, self.features = samples, degree, seed, features

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The distances.

        Args:
            sample: `sample(n, seed)` draws n samples.
            dataset: The source of real examples.
            run: Not used.

        Returns:
            `distance`, of generated features from real ones, and `real_against_real`, between two real samples.

        Raises:
            IncompatibleError: There are too few real examples, or samples are of another shape.
        """
        drawn = compared("kid", sample, dataset, samples=self.samples, seed=self.seed, features=self.features)
        return self.distances(drawn, lambda x, y: polynomial_mmd(x, y, self.degree))

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Reports features that are untrained, or so large that even two real samples are far apart."""
        complaint = super().diagnose(figures)
        gap = abs(figures.get("real_against_real", 0.0))
        if complaint is None and gap > _APART:
            complaint = (
                f"Two samples of real examples are {gap:.2g} apart, which should be about 0: these features have no "
                "usable scale, like those of an untrained network. Figures over them are not comparable with others. "
                "Set evaluators.kid.features to trained ones, for example @features.classifier()."
            )
        return complaint


def polynomial_mmd(x: np.ndarray, y: np.ndarray, degree: int = 3) -> float:
    """The unbiased estimate of MMD^2 (Gretton et al., "A kernel two-sample test", 2012, eq. 3).

    Args:
        x: `(n, d)`.
        y: `(m, d)`.
        degree: The degree of the kernel `(<x, y> / d + 1)^degree`.
    """

    def kernel(products: np.ndarray) -> np.ndarray:
        base = products / x.shape[1] + 1.0
        value = base.copy()
        for _ in range(degree - 1):  # several times faster than a power
            value *= base
        return value

    def total(a: np.ndarray, b: np.ndarray) -> float:
        # In blocks of rows, so that memory grows with the samples and not with their square.
        starts = range(0, len(a), _BLOCK)
        return sum(float(kernel(a[start : start + _BLOCK] @ b.T).sum()) for start in starts)

    def among(a: np.ndarray) -> float:
        diagonal = float(kernel(np.sum(a * a, axis=1)).sum())
        return (total(a, a) - diagonal) / (len(a) * (len(a) - 1))

    return among(x) + among(y) - 2.0 * total(x, y) / (len(x) * len(y))
