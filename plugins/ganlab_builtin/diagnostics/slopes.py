"""How steep the critic is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Gt

# The constraints promise a slope of at most about one; a slope beyond it by this factor is not a rounding error.
_STEEP, _FLAT = 2.0, 0.1


class Slopes(ganlab.Diagnostic):
    """The norm of the critic's gradient at real, generated and interpolated examples.

    Interpolated ones lie uniformly between a real and a generated example: where Gulrajani et al., "Improved
    training of Wasserstein GANs" (2017), show an optimal critic to have slope one.

    Figures, for each of `real`, `fake` and `interpolated`: `mean` (each replica's too), `low` and `high`, which leave
    5% of the examples below and above, and `max`.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "<points>/mean": (
            "The mean norm of the critic's gradient at real, fake or interpolated examples. Sound near the target "
            "(1) where the constraint aims at it."
        ),
        "<points>/low": "The slope that 5% of these examples stay below.",
        "<points>/high": "The slope that 5% of these examples exceed.",
        "<points>/max": "The largest slope at these examples.",
    }

    def __init__(self, *, every: int = 0, target: Annotated[float, Gt(0)] | None = 1.0) -> None:
        """Chooses the slope to check for.

        Args:
            every: Generator updates between looks; 0 for each evaluation.
            target: The slope that the critic should have. Means between real and generated examples of twice it or
                more, or less than a tenth, are complained of; None complains of none.
        """
        self.every, self.target = every, target

    def look(self, critic: ganlab.CriticView) -> ganlab.Findings:
        """The slopes over the batch that comes next."""
        weight = critic.random().random([len(critic.real)] + [1] * (critic.real.ndim - 1), np.float32)
        points = {
            "real": critic.real,
            "fake": critic.fake,
            "interpolated": weight * critic.real + (1 - weight) * critic.fake,
        }
        figures: dict[str, float] = {}
        replicas: dict[str, list[float]] = {}
        for name, x in points.items():
            slopes = critic.slopes(x)
            figures[f"{name}/mean"] = float(slopes.mean())
            figures[f"{name}/low"], figures[f"{name}/high"] = map(float, np.quantile(slopes, [0.05, 0.95]))
            figures[f"{name}/max"] = float(slopes.max())
            replicas[f"{name}/mean"] = [float(slopes[critic.share(i)].mean()) for i in range(critic.replicas)]
        return ganlab.Findings(figures, replicas)

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Warns of slopes far from the target."""
        slope = figures["interpolated/mean"]
        if self.target is None or _FLAT * self.target <= slope < _STEEP * self.target:
            return None
        if slope > self.target:
            problem = "it is not held Lipschitz"
            remedy = (
                "a larger weight of its penalty, for example constraints.gradient_penalty.weight, or a constraint if "
                "there is none: experiment.constraints = [@constraints.gradient_penalty()]"
            )
        else:
            problem = "it is held back too much, and tells the generator little"
            remedy = (
                "a larger limit, for example constraints.weight_clipping.limit, a larger weight of a penalty that "
                "draws slopes to a target, a smaller one of a penalty that only lowers them, or a larger "
                "experiment.critic_steps"
            )
        return (
            f"The critic's mean slope between real and generated examples is {slope:.3g} where {self.target:g} is "
            f"meant: {problem}. Try {remedy}."
        )
