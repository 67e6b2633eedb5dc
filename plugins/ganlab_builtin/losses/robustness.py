"""The losses of 1-Lipschitz classifiers that tell examples from samples by a margin."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.games import Wasserstein


class KR(Wasserstein):
    """The dual of Kantorovich and Rubinstein: `mean f(fake) - mean f(real)`, losses.wasserstein under another name.

    Serrurier, Mamalet, González-Sanz, Boissin, Loubes and del Barrio, "Achieving robustness in classification using
    optimal transport with hinge regularization" (2021), equation 1. Real examples are their class +1 and score higher;
    deel-lip's loss of this name is the estimate that is maximized, here minus it is minimized.
    """


class HKR(Wasserstein):
    """The dual of Kantorovich and Rubinstein with a hinge, which asks for scores on either side of zero.

    Serrurier, Mamalet, González-Sanz, Boissin, Loubes and del Barrio, "Achieving robustness in classification using
    optimal transport with hinge regularization" (2021): the critic minimizes
    `mean f(fake) - mean f(real) + alpha * mean max(0, min_margin / 2 - Y f)`, where Y is +1 for real examples and -1
    for samples, and the last mean is over both. The parameters are deel-lip's, and so is the half: `min_margin` is the
    distance of the two margins, each half of it from zero. It needs a constraint.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": (
            "Mean critic(fake) - mean critic(real), plus alpha times the mean shortfall of scores from their margin, "
            "plus the penalty."
        ),
        "generator/loss": "Minus the mean critic(fake), whose zero is the middle of the margin.",
    }

    def __init__(self, *, alpha: Annotated[float, Ge(0)] = 10.0, min_margin: Annotated[float, Ge(0)] = 1.0) -> None:
        """Chooses the hinge.

        Args:
            alpha: Its factor; 0 leaves losses.kr.
            min_margin: The distance between the margins of real examples and of samples.
        """
        self.alpha, self.min_margin = alpha, min_margin

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """`fake - real + alpha * (max(0, m / 2 - real) + max(0, m / 2 + fake)) / 2`, `(n,)`."""
        margin = 0.5 * self.min_margin
        hinge = 0.5 * (tf.nn.relu(margin - real_scores) + tf.nn.relu(margin + fake_scores))
        return super().critic(real_scores, fake_scores) + self.alpha * hinge
