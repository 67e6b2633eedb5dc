"""Measures of a conditional generator: whether samples show the asked class, and how good those of each class are."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.evaluators import comparing
from ganlab_builtin.evaluators.comparing import FROM_ZERO, SHARE, OverFeatures, Possible, embedded, real_examples
from ganlab_builtin.evaluators.frechet import gaussian_frechet, moments

if TYPE_CHECKING:
    from ganlab import Run

# Labels are read for at most so many examples, and figures of single classes are given for at most so many classes.
_LABELLED, _LISTED = 100_000, 20


class LabelAccuracy(OverFeatures):
    """How often a classifier finds the asked label in a sample of a conditional generator.

    Equally many samples are drawn of each class. The figure is the classification accuracy of Shmelkov, Schmid and
    Alahari, "How good is my GAN?" (2018), section 3 (GAN-test), for a classifier that was trained on real examples.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "accuracy": "The share of samples in which the classifier finds the asked label: larger is better.",
        "worst_class": "The same share for the class where it is smallest.",
        "real_accuracy": (
            "The classifier's accuracy on as many real examples, of which it was trained on most: a mistake of its own "
            "cannot be told from one of the generator."
        ),
    }

    possible: ClassVar[Possible] = dict.fromkeys(("accuracy", "worst_class", "real_accuracy"), SHARE)
    better: ClassVar = {"accuracy": "max", "worst_class": "max"}

    def __init__(
        self,
        *,
        features: ganlab.Features,
        samples: Annotated[int, Ge(1), Le(10**7)] = 2000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
    ) -> None:
        """Keeps the classifier.

        Args:
            features: A feature network with class probabilities, for example `@features.classifier()`.
            samples: The number of samples over all classes, at least one of each; rounded down to equally many of each.
            seed: Decides the noise that samples are drawn from, and the real examples.
        """
        self.samples, self.seed = samples, seed
        self.features: ganlab.Features = features

    def evaluate(self, sample: Any, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The accuracies.

        Returns:
            `accuracy`, `worst_class` and `real_accuracy`, from 0 to 1.

        Raises:
            IncompatibleError: The generator is unconditional, or the features give no class probabilities.
            ConfigError: There are fewer samples than classes.
        """
        classes = asked_classes("label_accuracy", sample)
        if self.samples < classes:
            raise ganlab.ConfigError(
                f"evaluators.label_accuracy.samples = {self.samples} must be at least {classes}: equally many samples "
                f"are drawn of each of the {classes} classes."
            )
        self.features.prepare(dataset)
        labels = np.arange(self.samples - self.samples % classes) % classes
        correct = self._correct(np.asarray(sample(len(labels), self.seed, labels)), labels)
        numbers, real_labels = labelled(dataset, self.seed)
        chosen = np.random.default_rng(self.seed).permutation(len(numbers))[: len(labels)]
        real_correct = self._correct(real_examples(dataset, numbers[chosen], self.seed), real_labels[chosen])
        return {
            "accuracy": float(correct.mean()),
            "worst_class": float(correct.reshape(-1, classes).mean(axis=0).min()),
            "real_accuracy": float(real_correct.mean()),
        }

    def _correct(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        probabilities = comparing.class_probabilities("label_accuracy", self.features, x)
        return np.where(np.isfinite(probabilities).all(axis=1), np.argmax(probabilities, axis=1) == labels, np.nan)


class ClassFrechetDistance(OverFeatures):
    """The Fréchet distance between samples and real examples of one class, averaged over classes.

    Miyato and Koyama, "cGANs with projection discriminator" (2018), section 5 (intra FID): unlike the distance over all
    classes, it also counts how varied the samples of a class are. Each class is compared in as many samples as half of
    its examples; estimates are biased upward, the more the fewer there are.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": "The mean over classes of the Fréchet distance within a class: smaller is better.",
        "worst_class": "That distance for the class where it is largest.",
        "real_against_real": (
            "The mean over classes of the distance between two disjoint halves of a class's real examples: what a "
            "perfect generator would get."
        ),
        "class/<label>": "The distance within one class.",
    }

    possible: ClassVar[Possible] = dict.fromkeys(("distance", "worst_class", "real_against_real"), FROM_ZERO)
    better: ClassVar = {"distance": "min", "worst_class": "min"}

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Le(10**7)] = 1000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The most examples of either kind in one class; at most half of a class of a finite dataset.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels.
        """
        self.samples, self.seed, self.features = samples, seed, features

    def evaluate(self, sample: Any, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The distances.

        Returns:
            `distance`, `worst_class` and `real_against_real`; up to 20 classes also `class/<label>`.

        Raises:
            IncompatibleError: The generator is unconditional, or a class has fewer than four examples.
        """
        classes = asked_classes("class_frechet_distance", sample)
        if self.features is not None:
            self.features.prepare(dataset)
        numbers, labels = labelled(dataset, self.seed)
        random = np.random.default_rng(self.seed)
        distances, real = [], []
        for label in range(classes):
            own = random.permutation(numbers[labels == label])
            count = min(self.samples, len(own) // 2)
            if count < 2:
                raise ganlab.IncompatibleError(
                    f"evaluators.class_frechet_distance compares two halves of each class, and class {label} of "
                    f"{type(dataset).__name__} has {len(own)} examples. Drop it from experiment.evaluators."
                )
            fake = np.asarray(sample(count, self.seed, np.full(count, label)))
            rows = [real_examples(dataset, own[i * count : (i + 1) * count], self.seed) for i in range(2)]
            drawn, first, second = (moments(embedded(self.features, x)) for x in (fake, *rows))
            distances.append(gaussian_frechet(*drawn, *first))
            real.append(gaussian_frechet(*second, *first))
        figures = {"distance": float(np.mean(distances)), "worst_class": float(np.max(distances))}
        figures["real_against_real"] = float(np.mean(real))
        if classes <= _LISTED:
            figures |= {f"class/{label}": distance for label, distance in enumerate(distances)}
        return figures


def asked_classes(evaluator: str, sample: Any) -> int:
    """How many classes a generator can be asked for.

    Raises:
        IncompatibleError: None: it is unconditional.
    """
    classes = getattr(sample, "classes", None)
    if classes is None:
        raise ganlab.IncompatibleError(
            f"evaluators.{evaluator} asks for classes, and the generator is unconditional. Set the parameter labels of "
            "the experiment's architecture, for example to 'projection', or choose one that has this parameter; or "
            "drop the evaluator from experiment.evaluators."
        )
    return int(classes)


def labelled(dataset: ganlab.Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of at most 100,000 examples and their classes, int64 `(n,)` each."""
    numbers = np.arange(_LABELLED if dataset.size is None else min(_LABELLED, dataset.size))
    optional = {"seed": seed} if "seed" in inspect.signature(dataset.labels).parameters else {}
    return numbers, np.asarray(dataset.labels(tf.constant(numbers, tf.int64), **optional), np.int64)
