"""Measures by the similarity of features under a kernel: the kernel distance, and the Vendi score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

import ganlab
from ganlab.bounds import Ge, Gt, Le, Lt
from ganlab_builtin.evaluators.comparing import AGAINST_REAL, FROM_ONE, Distance, Possible, Sample

if TYPE_CHECKING:
    from ganlab import Run

_BLOCK = 1000

# Between two samples of one distribution the estimate is zero on average, and far below one for usual features.
_APART = 1.0


class KernelDistance(Distance):
    """The squared maximum mean discrepancy under a polynomial or a Gaussian kernel.

    Binkowski, Sutherland, Arbel and Gretton, "Demystifying MMD GANs" (2018), section 4: `k(x, y) = (<x, y> / d + 1)^3`
    over d features, which they call KID if features are those of Inception. Without bias means that it is zero on
    average between samples of one distribution, so that a figure may be negative.

    CMMD of Jayasumana et al., "Rethinking FID" (2024), is `kernel = 'gaussian'`, `unbiased = False` and `scale = 1000`
    over vectors of CLIP of length 1: `k(x, y) = exp(-|x - y|^2 / (2 sigma^2))` with sigma 10.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": (
            "The squared maximum mean discrepancy between features of samples and of real examples; smaller is "
            "better, and it may be slightly negative. Comparable only between runs with the same features: with an "
            "untrained feature network it means nothing."
        ),
        "real_against_real": f"{AGAINST_REAL} About 0.",
    }

    possible: ClassVar[Possible] = {}
    name: ClassVar[str] = "kid"

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Le(10**7)] = 5000,
        degree: Annotated[int, Ge(1), Lt(2**31)] = 3,
        kernel: Literal["polynomial", "gaussian"] = "polynomial",
        sigma: Annotated[float, Gt(0)] = 10.0,
        unbiased: bool = True,
        scale: Annotated[float, Gt(0)] = 1.0,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The number of examples of either kind; at most half of a finite dataset.
            degree: The degree of the polynomial kernel.
            kernel: Which kernel.
            sigma: The standard deviation of the Gaussian kernel.
            unbiased: Whether pairs of an example with itself are left out; with them the distance is never negative.
            scale: What the distance is multiplied by.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels.

        Raises:
            ConfigError: There is no such kernel.
        """
        super().__init__(samples=samples, seed=seed, features=features)
        if kernel not in ("polynomial", "gaussian"):
            raise ganlab.ConfigError(f"evaluators.kid.kernel = {kernel!r} must be one of 'polynomial', 'gaussian'.")
        self.degree, self.kernel, self.sigma, self.unbiased, self.scale = degree, kernel, sigma, unbiased, scale

    def measure(self, x: np.ndarray, y: np.ndarray) -> float:
        """The distance of two samples."""

        def gaussian(products: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return np.exp((products - (a + b) / 2.0) / self.sigma**2)

        kernel = gaussian if self.kernel == "gaussian" else _polynomial(x.shape[1], self.degree)
        return self.scale * _mmd(x, y, kernel, self.unbiased)

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Reports features that are untrained, or so large that even two real samples are far apart."""
        complaint = super().diagnose(figures)
        gap = abs(figures.get("real_against_real", 0.0)) / self.scale
        if complaint is None and gap > _APART:
            complaint = (
                f"Two samples of real examples are {gap:.2g} apart, which should be about 0: these features have no "
                "usable scale, like those of an untrained network. Figures over them are not comparable with others. "
                "Set evaluators.kid.features to trained ones, for example @features.classifier()."
            )
        return complaint


class VendiScore(Distance):
    """The effective number of different samples, by the similarity of their features.

    Friedman and Dieng, "The Vendi score" (2023), definition 3.1: the exponential of the entropy of the eigenvalues of
    `K / n`, K the cosines between the features of n samples. It is 1 if all are alike, and n if all are orthogonal.
    It does not look at real examples.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "score": "The effective number of different samples: 1 if all are alike, larger is more diverse.",
        "real_score": "The score of as many real examples: the score to reach.",
    }

    possible: ClassVar[Possible] = dict.fromkeys(("score", "real_score"), FROM_ONE)
    better: ClassVar = {"score": "max"}
    name: ClassVar[str] = "vendi_score"

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures, `score` of generated examples and `real_score`; NaN where features are not finite."""
        drawn = self.drawn(sample, dataset)
        return {"score": vendi_score(drawn.generated), "real_score": vendi_score(drawn.real)}


def polynomial_mmd(x: np.ndarray, y: np.ndarray, degree: int = 3) -> float:
    """The unbiased estimate of MMD^2 under the kernel `(<x, y> / d + 1)^degree`, of `(n, d)` and `(m, d)`."""
    return _mmd(x, y, _polynomial(x.shape[1], degree), unbiased=True)


def _polynomial(d: int, degree: int) -> Callable[..., np.ndarray]:
    def kernel(products: np.ndarray, *lengths: np.ndarray) -> np.ndarray:
        base = products / d + 1.0
        value = base.copy()
        for _ in range(degree - 1):  # several times faster than a power
            value *= base
        return value

    return kernel


def _mmd(x: np.ndarray, y: np.ndarray, kernel: Callable[..., np.ndarray], unbiased: bool) -> float:
    """MMD^2 (Gretton et al., "A kernel two-sample test", 2012): eq. 3 without bias, eq. 5 with it.

    The kernel takes inner products, and the squared lengths of rows and of columns.
    """

    def total(a: np.ndarray, b: np.ndarray) -> float:
        # In blocks of rows, so that memory grows with the samples and not with their square.
        starts, squares, across = range(0, len(a), _BLOCK), np.sum(a * a, axis=1)[:, None], np.sum(b * b, axis=1)
        blocks = (slice(start, start + _BLOCK) for start in starts)
        return sum(float(kernel(a[block] @ b.T, squares[block], across).sum()) for block in blocks)

    def among(a: np.ndarray) -> float:
        if not unbiased:
            return total(a, a) / len(a) ** 2
        squares = np.sum(a * a, axis=1)
        return (total(a, a) - float(kernel(squares, squares, squares).sum())) / (len(a) * (len(a) - 1))

    return among(x) + among(y) - 2.0 * total(x, y) / (len(x) * len(y))


def vendi_score(x: np.ndarray) -> float:
    """The score of rows, `(n, d)`; NaN if they are not finite."""
    if not np.isfinite(x).all():
        return float("nan")
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    x = x / np.where(lengths == 0.0, 1.0, lengths)
    # Both products have the same eigenvalues but for zeros.
    values = np.linalg.eigvalsh((x.T @ x if x.shape[1] < len(x) else x @ x.T) / len(x))
    shares = values[values > 0.0]
    return float(np.exp(-(shares * np.log(shares)).sum()))
