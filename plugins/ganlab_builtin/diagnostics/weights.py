"""How the critic's weights are spread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

import ganlab
from ganlab.pictures import histogram

_NEAR, _MOSTLY = 0.99, 0.5


class Weights(ganlab.Diagnostic):
    """Histograms of the critic's weights, and the fraction of them at the largest.

    Gulrajani, Ahmed, Arjovsky, Dumoulin and Courville, "Improved training of Wasserstein GANs" (2017), figure 1b right:
    clipped weights pile up at both limits. The limit is taken to be the largest absolute weight of the critic, which
    it is as soon as one weight has met it.

    Figures: `largest`, that value; `at_largest`, the fraction of all weights within 1% of it, and for each weight
    `at_largest/<weight>`. Histograms: each weight.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "largest": "The largest absolute weight of the critic: under clipping, the limit.",
        "at_largest": "The fraction of all weights within 1% of the largest. Above a half a limit has saturated.",
        "at_largest/<weight>": "The same fraction of one weight.",
    }

    def __init__(self, *, every: int = 0) -> None:
        """Chooses how often to look.

        Args:
            every: Generator updates between looks; 0 for each evaluation.
        """
        self.every = every

    def look(self, critic: ganlab.CriticView) -> ganlab.Findings:
        """The weights as the optimizer leaves them, before any reparameterization."""
        everything = np.concatenate([weight.ravel() for weight in critic.weights.values()])
        largest = float(np.abs(everything).max())
        figures = {"largest": largest, "at_largest": _near(everything, largest)}
        figures |= {f"at_largest/{name}": _near(weight, largest) for name, weight in critic.weights.items()}
        picture = histogram(everything, quantity="weight", title=f"step {critic.step}, all weights of the critic")
        return ganlab.Findings(figures, histograms=critic.weights, pictures={"all": picture})

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Warns if most weights are at the largest, as under a clipping limit."""
        if figures["at_largest"] <= _MOSTLY:
            return None
        return (
            f"{figures['at_largest']:.0%} of the critic's weights are within 1% of the largest, "
            f"{figures['largest']:.3g}: they have met a limit, and such a critic is biased to simple functions. Try "
            "experiment.constraints = [@constraints.gradient_penalty()], or another constraints.weight_clipping.limit."
        )


def _near(weight: np.ndarray, largest: float) -> float:
    return float(np.mean(np.abs(weight) >= _NEAR * largest))
