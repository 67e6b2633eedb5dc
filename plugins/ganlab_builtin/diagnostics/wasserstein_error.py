"""How far the critic's Wasserstein estimate is from the truth."""

from __future__ import annotations

from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.transport import exact_w1


class WassersteinError(ganlab.Diagnostic):
    """The critic's estimate of the Wasserstein-1 distance beside the exact one, between the very same points.

    The estimate, mean critic(real) - mean critic(fake), is the value of a candidate in the dual problem (Arjovsky,
    Chintala and Bottou, "Wasserstein GAN", 2017, eq. 2); the exact distance is the primal's, by optimal transport. A
    critic that is 1-Lipschitz cannot exceed it: a positive error means that this one is not, a negative one that it is
    not the best. An optimum between so few points may be one that only memorizes them.

    Figures: `estimate`, `exact`, and `relative_error`, estimate over exact less one, if the distance is not zero.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "estimate": "Mean critic(real) - mean critic(fake) over the points that are compared.",
        "exact": "The Wasserstein-1 distance between the same points, by optimal transport.",
        "relative_error": (
            "Estimate over exact less one. Above 0 the critic is steeper than 1 somewhere; below, it is not the "
            "best critic that is as steep as 1."
        ),
    }

    def __init__(self, *, every: int = 0, points: Annotated[int, Ge(1)] = 512) -> None:
        """Chooses how many points to compare.

        Args:
            every: Generator updates between looks; 0 for each evaluation.
            points: The number of real and of generated points. Time grows as the cube.
        """
        self.every, self.points = every, points

    def look(self, critic: ganlab.CriticView) -> ganlab.Findings:
        """The two values now."""
        real, fake = critic.more(self.points)
        labels = critic.more_labels(self.points)
        fake = fake[: len(real)]
        estimate = float(critic.scores(real, labels).mean(dtype=float) - critic.scores(fake, labels).mean(dtype=float))
        exact = exact_w1(real, fake)
        figures = {"estimate": estimate, "exact": exact}
        if exact > 0:
            figures["relative_error"] = estimate / exact - 1.0
        return ganlab.Findings(figures)
