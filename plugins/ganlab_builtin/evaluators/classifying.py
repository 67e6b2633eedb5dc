"""Scores samples by a classifier: with an Inception network's classes, the inception score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab_builtin.evaluators import comparing
from ganlab_builtin.evaluators.comparing import FROM_ONE, OverFeatures, Possible, Sample

if TYPE_CHECKING:
    from ganlab import Run


class ClassifierScore(OverFeatures):
    """How sure a classifier is of each sample, and over how many classes the samples spread.

    Salimans et al., "Improved techniques for training GANs" (2016), section 4: `exp(mean over x of KL(p(y|x) || p(y)))`
    with p(y) the mean over samples, between 1 and the number of classes. They call it inception score if the
    classifier is Inception. It uses no real examples: how the samples of one class differ does not count.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "score": (
            "The exponential of the mean divergence of a sample's class probabilities from their mean: between 1 "
            "and the number of classes, larger is better. Of Inception, the inception score."
        ),
        "real_score": "The score of as many real examples: the score to reach.",
    }

    possible: ClassVar[Possible] = dict.fromkeys(("score", "real_score"), FROM_ONE)
    better: ClassVar = {"score": "max"}

    def __init__(
        self,
        *,
        features: ganlab.Features,
        samples: Annotated[int, Ge(2), Le(10**7)] = 5000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
    ) -> None:
        """Keeps the classifier.

        Args:
            features: A feature network with class probabilities, for example `@features.classifier()`.
            samples: The number of examples of either kind; at most half of a finite dataset.
            seed: Decides the noise that samples are drawn from, and the real examples.
        """
        self.samples, self.seed = samples, seed
        self.features: ganlab.Features = features

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The scores.

        Returns:
            `score`, of generated examples, and `real_score`, of as many real ones: the score to reach.

        Raises:
            IncompatibleError: The feature network has no class probabilities, or there are too few real examples.
        """
        self.features.prepare(dataset)
        numbers, _ = comparing.real_numbers("classifier_score", dataset, samples=self.samples, seed=self.seed)
        drawn = sample(len(numbers), self.seed), comparing.real_examples(dataset, numbers, self.seed)
        made, real = (score(comparing.class_probabilities("classifier_score", self.features, x)) for x in drawn)
        return {"score": made, "real_score": real}


def score(probabilities: np.ndarray) -> float:
    """`exp(mean KL(p(y|x) || p(y)))` of rows `(n, classes)` that sum to 1; NaN where one is not finite."""
    marginal = probabilities.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where p(y|x) is 0, its part of the divergence is 0; p(y) may be 0 there too.
        parts = np.where(probabilities == 0.0, 0.0, probabilities * np.log(probabilities / marginal))
    return float(np.exp(parts.sum(axis=1).mean()))
