"""How many modes of a known mixture a generator finds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Gt, Le, Lt

if TYPE_CHECKING:
    from ganlab import Run

# Samples that are spread evenly over half of the modes have a divergence of log 2.
_HALF, _RARE = math.log(2.0), 0.1


class ModeCoverage(ganlab.Evaluator):
    """Counts the modes of a mixture of Gaussians that samples land near.

    The protocol of Lin et al., "PacGAN: The power of two samples in generative adversarial networks" (2018): a sample
    is of high quality if it lies within three standard deviations of its nearest mode. A perfect sampler of a mixture
    in the plane reaches `1 - exp(-9/2)` = 98.9% high quality. For datasets with `modes`, `(k, d)`, and `std`.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "modes": "The number of modes of the mixture that have a sample of high quality. All of them is best.",
        "high_quality": (
            "The fraction of samples within three standard deviations of a mode: 0.989 is perfect in the plane."
        ),
        "reverse_kl": (
            "How unevenly samples are spread over the modes, in nats: 0 is even, log 2 as if over half of the "
            "modes, log k over one or none of k."
        ),
    }
    better: ClassVar = {"modes": "max", "high_quality": "max", "reverse_kl": "min"}

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(1), Le(10**7)] = 2500,
        sigmas: Annotated[float, Gt(0)] = 3.0,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
    ) -> None:
        """Keeps the protocol.

        Args:
            samples: The number of samples to draw.
            sigmas: The largest distance of a high-quality sample from a mode, in the mixture's standard deviations.
            seed: Decides the noise that samples are drawn from.
        """
        self.samples, self.sigmas, self.seed = samples, sigmas, seed

    def evaluate(
        self, sample: Callable[[int, int], np.ndarray], dataset: ganlab.Dataset, run: Run | None
    ) -> dict[str, float]:
        """The figures of one generator.

        Returns:
            `modes`: the number of modes that have a sample of high quality. `high_quality`: the fraction of such
            samples. `reverse_kl`: the Kullback-Leibler divergence, in nats, of the modes that samples of high quality
            landed in from the uniform distribution over modes; its largest value, `log k`, without any such sample.

        Raises:
            IncompatibleError: The dataset has no known modes, or samples are not points of their space.
        """
        modes, std = _mixture(dataset)
        points = np.asarray(sample(self.samples, self.seed), np.float64)
        if points.ndim != 2 or points.shape[1] != modes.shape[1]:
            raise ganlab.IncompatibleError(
                f"evaluators.mode_coverage drew samples of shape {points.shape[1:]}; the modes of "
                f"{type(dataset).__name__} are points of shape {modes.shape[1:]}. Both must be vectors of one length."
            )
        distances = np.linalg.norm(points[:, None, :] - modes[None, :, :], axis=2)
        # A sample that is not finite has no distance and compares as False: it is of low quality.
        high_quality = distances.min(axis=1) < self.sigmas * std
        counts = np.bincount(distances.argmin(axis=1)[high_quality], minlength=len(modes))
        return {
            "modes": float(np.count_nonzero(counts)),
            "high_quality": float(np.mean(high_quality)),
            "reverse_kl": divergence_from_uniform(counts),
        }

    def limits(self, dataset: ganlab.Dataset) -> Mapping[str, tuple[float, float]]:
        """At most all modes, all samples, and the divergence of one mode."""
        count = len(_mixture(dataset)[0])
        return {"modes": (0.0, float(count)), "high_quality": (0.0, 1.0), "reverse_kl": (0.0, math.log(count))}

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Reports that no mode was found, that samples miss the modes, or that modes are nearly lost."""
        if not figures["modes"]:
            return (
                "No sample is near any mode: the generator has learned nothing, or has lost it. See whether the "
                "critic's loss grew or vanished, and docs/divergence.md."
            )
        if figures["high_quality"] < _RARE:
            return (
                f"{figures['high_quality']:.1%} of the samples are near a mode: the others are nowhere near the data. "
                "Train longer, or see in critic/loss and the constraint's metrics whether the critic holds."
            )
        return uneven(figures["reverse_kl"])


def _mixture(dataset: ganlab.Dataset) -> tuple[np.ndarray, float]:
    modes, std = getattr(dataset, "modes", None), getattr(dataset, "std", None)
    if modes is None or std is None:
        missing = "modes" if modes is None else "std"
        raise ganlab.IncompatibleError(
            f"evaluators.mode_coverage cannot measure {type(dataset).__name__}, which has no {missing}: it needs "
            "a mixture whose modes are known. Drop it from experiment.evaluators, or use a dataset with modes and std."
        )
    return np.asarray(modes, np.float64), float(std)


def uneven(reverse_kl: float) -> str | None:
    """A complaint of samples that are spread as if over less than half of the modes."""
    if reverse_kl <= _HALF:
        return None
    return (
        f"The samples are spread as if over {math.exp(-reverse_kl):.0%} of the modes: others are lost or rare "
        f"(reverse_kl {reverse_kl:.2g}). Try a larger experiment.critic_steps or batch."
    )


def divergence_from_uniform(counts: np.ndarray) -> float:
    """The Kullback-Leibler divergence of frequencies `(k,)` from even ones, in nats; `log k` of none."""
    total = counts.sum()
    if total == 0:
        return math.log(len(counts))
    present = counts[counts > 0] / total
    return float(np.sum(present * np.log(present * len(counts))))
