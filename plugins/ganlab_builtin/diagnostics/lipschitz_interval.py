"""Bounds of the critic's Lipschitz constant, from below and from above."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge

# Float32 sums of the same terms in another order differ by less.
_ROUNDING = 1e-3


class LipschitzInterval(ganlab.Diagnostic):
    """Bounds of the critic's Lipschitz constant: from below by examples, from above by a certificate.

    From below: the largest slope at real, generated and interpolated points, and the largest
    `|critic(x) - critic(y)| / ||x - y||` over pairs of them, for a conditional critic under one label. From above: the
    least bound that a constraint certifies, if one does.

    Figures: `slopes` and `pairs`, those two; `lower`, the larger; `upper` and `ratio`, upper over lower, where there is
    a certificate.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "slopes": "The largest norm of the critic's gradient at real, fake and interpolated points.",
        "pairs": "The largest |critic(x) - critic(y)| / ||x - y|| over pairs of points.",
        "lower": "The larger of slopes and pairs: the critic's Lipschitz constant is at least this.",
        "upper": "The least bound that a constraint certifies: the constant is at most this.",
        "ratio": "Upper over lower: how loose the certificate may be. Below 1 the certificate is wrong.",
    }

    def __init__(self, *, every: int = 0, points: Annotated[int, Ge(2)] = 512) -> None:
        """Chooses how many points to try.

        Args:
            every: Generator updates between looks; 0 for each evaluation.
            points: The number of real, generated and interpolated points each; there are three times as many pairs.
        """
        self.every, self.points = every, points

    def look(self, critic: ganlab.CriticView) -> ganlab.Findings:
        """The interval now."""
        random, (real, fake) = critic.random(), critic.more(self.points)
        count = min(len(real), len(fake))
        weight = random.random([count] + [1] * (real.ndim - 1), np.float32)
        points = np.concatenate([real, fake, weight * real[:count] + (1 - weight) * fake[:count]])
        labels = critic.more_labels(self.points)
        if labels is not None:  # a sample and an interpolation have the label of their row
            labels = np.concatenate([np.resize(labels, size) for size in (len(real), len(fake), count)])
        others = random.permutation(len(points))
        scores = critic.scores(points, labels).astype(np.float64)
        # A conditional critic is one function for each label: both points of a pair are scored under the first's.
        paired = scores[others] if labels is None else critic.scores(points[others], labels).astype(np.float64)
        distances = np.linalg.norm((points - points[others]).reshape(len(points), -1).astype(np.float64), axis=1)
        distinct = distances > 0
        rises = np.abs(scores - paired)[distinct] / distances[distinct]
        figures = {"slopes": float(critic.slopes(points, labels).max()), "pairs": float(rises.max(initial=0.0))}
        figures["lower"] = max(figures.values())
        if critic.bounds:
            figures["upper"] = min(critic.bounds.values())
            figures["ratio"] = figures["upper"] / max(figures["lower"], np.finfo(float).tiny)
        return ganlab.Findings(figures)

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Warns of a certificate that an example contradicts."""
        upper = figures.get("upper")
        if upper is None or figures["lower"] <= upper * (1 + _ROUNDING):
            return None
        return (
            f"The critic rises by {figures['lower']:.4g} times a distance where a constraint certifies at most "
            f"{upper:.4g}: that certificate is wrong for this critic. Try without that constraint, and report it."
        )
