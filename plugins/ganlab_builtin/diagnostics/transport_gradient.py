"""How near the critic is to a known optimal one."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf


class TransportGradient(ganlab.Diagnostic):
    """The critic's gradient beside that of the optimal critic, which the dataset knows, and its estimate beside W1.

    Korotin, Kolesov and Burnaev, "Kantorovich strikes back! Wasserstein GANs are not optimal transport?" (2022),
    section 5: the mean cosine of the two gradients at real examples, and the mean square of their difference. What a
    generator learns from a critic is its gradient: an estimate may be right where the gradient is not. For datasets
    with `potential_gradient(x)` and `wasserstein`, against the counterpart as the generated distribution
    (`datasets.min_funnels`).

    Figures: `cosine`, `squared_error`, `estimate`, `exact` and `relative_error`, estimate over exact less one.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "cosine": "Mean cosine of the angle between the critic's gradient and the optimal critic's, at real examples.",
        "squared_error": "Mean squared length of the difference of the two gradients; the optimal one has length 1.",
        "estimate": "Mean critic(real) - mean critic(fake).",
        "exact": "The Wasserstein-1 distance of the two distributions.",
        "relative_error": "Estimate over exact less one.",
    }

    def __init__(self, *, every: int = 0, points: Annotated[int, Ge(1)] = 4096) -> None:
        """Chooses how many points to look at.

        Args:
            every: Generator updates between looks; 0 for each evaluation.
            points: The number of real and of generated points; the paper's 4,096.
        """
        self.every, self.points = every, points

    def look(self, critic: ganlab.CriticView) -> ganlab.Findings:
        """The figures now."""
        dataset: Any = critic.dataset
        if not hasattr(dataset, "potential_gradient"):
            raise ganlab.IncompatibleError(
                f"diagnostics.transport_gradient needs a dataset with potential_gradient(x), such as "
                f"datasets.min_funnels; {type(dataset).__name__} has none."
            )
        real, fake = critic.more(self.points)
        labels = critic.more_labels(self.points)
        gradients = critic.input_gradients(real, labels).reshape(len(real), -1).astype(float)
        best = np.asarray(dataset.potential_gradient(tf.constant(real))).reshape(len(real), -1).astype(float)
        lengths = np.linalg.norm(gradients, axis=1) * np.linalg.norm(best, axis=1)
        products = (gradients * best).sum(axis=1)
        cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        estimate = float(critic.scores(real, labels).mean(dtype=float) - critic.scores(fake, labels).mean(dtype=float))
        figures = {
            "cosine": float(cosines.mean()),
            "squared_error": float(np.square(gradients - best).sum(axis=1).mean()),
            "estimate": estimate,
            "exact": float(dataset.wasserstein),
        }
        if figures["exact"] > 0:
            figures["relative_error"] = estimate / figures["exact"] - 1.0
        return ganlab.Findings(figures)
