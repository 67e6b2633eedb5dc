"""How many of the thousand modes of stacked digits a generator finds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab_builtin.evaluators.comparing import OverFeatures, Sample, class_probabilities, in_pieces, real_examples
from ganlab_builtin.evaluators.modes import divergence_from_uniform, uneven
from ganlab_builtin.features.classifier import Classifier

if TYPE_CHECKING:
    from ganlab import Run

_PIECE = 1000  # samples at a time


class StackedModes(OverFeatures):
    """Counts the modes of stacked digits in samples, by a classifier that names the digit of each channel.

    The protocol of Lin et al., "PacGAN: The power of two samples in generative adversarial networks" (2018), section
    4.2, as fjxmlzn/PacGAN at 190853e counts (stacked_MNIST_experiments/VEEGAN_experiment/model.py:245-276): a mode is
    captured if one of 26,000 samples shows it, and the divergence is that of their frequencies from even ones. For
    datasets with `digits`, such as `stacked_mnist`. Whether a sample looks like digits does not count.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "modes": "The number of modes that a sample shows, of 1000 for MNIST: all of them is best.",
        "reverse_kl": (
            "How unevenly samples are spread over the modes, in nats: 0 is even, log 2 as if over half of the modes, "
            "log k over one or none of k. Even a perfect sampler is above 0: read it beside real_reverse_kl."
        ),
        "real_modes": "The number of modes that as many real examples show to the classifier.",
        "real_reverse_kl": "The same divergence of as many real examples: what a perfect generator would get.",
    }
    better: ClassVar = {"modes": "max", "reverse_kl": "min"}

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(1), Le(10**7)] = 26_000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
    ) -> None:
        """Keeps the protocol and the classifier.

        Args:
            samples: The number of examples of either kind: in the literature 26 for each mode.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: A feature network with class probabilities, which is prepared for the single digits; None for
                `@features.classifier()`, which is trained on them once and kept.
        """
        self.samples, self.seed = samples, seed
        self.features: ganlab.Features = Classifier() if features is None else features
        self._of_real: tuple[ganlab.Dataset, dict[str, float]] | None = None

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures of one generator.

        Returns:
            `modes` and `reverse_kl` of samples, and `real_modes` and `real_reverse_kl` of real examples. A sample that
            is not finite is of no mode; the divergence is the logarithm of the number of modes if none is finite.

        Raises:
            IncompatibleError: The dataset is not one of stacked images, samples are of another shape, or the features
                give no class probabilities.
        """
        digits = _digits(dataset)
        self.features.prepare(digits)
        if self._of_real is None or self._of_real[0] is not dataset:
            starts = range(0, self.samples, _PIECE)
            numbers = (np.arange(start, min(start + _PIECE, self.samples)) for start in starts)
            real = self._figures((real_examples(dataset, some, self.seed) for some in numbers), dataset)
            self._of_real = dataset, {f"real_{name}": figure for name, figure in real.items()}
        shape = tuple(dataset.sample_shape)
        drawn = in_pieces("stacked_modes", sample, shape, samples=self.samples, seed=self.seed, most=_PIECE)
        return {**self._figures(drawn, dataset), **self._of_real[1]}

    def limits(self, dataset: ganlab.Dataset) -> Mapping[str, tuple[float, float]]:
        """At most all modes, and the divergence of one mode."""
        count = _modes(dataset)
        own = {"modes": (0.0, float(count)), "reverse_kl": (0.0, math.log(count))}
        return {**own, **{f"real_{name}": ends for name, ends in own.items()}}

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Reports a useless classifier, and modes that are lost."""
        return self.features.diagnose() or uneven(figures["reverse_kl"])

    def _figures(self, pieces: Iterable[np.ndarray], dataset: ganlab.Dataset) -> dict[str, float]:
        height, width, channels = dataset.sample_shape
        counts = np.zeros(_modes(dataset), np.int64)
        places = (_digits(dataset).classes or 1) ** np.arange(channels)[::-1]
        for piece in pieces:
            x = piece[np.isfinite(piece).all(axis=(1, 2, 3))]
            if len(x):
                named = self._named(np.moveaxis(x, 3, 1).reshape(-1, height, width, 1))
                counts += np.bincount(named.reshape(len(x), channels) @ places, minlength=len(counts))
        return {"modes": float(np.count_nonzero(counts)), "reverse_kl": divergence_from_uniform(counts)}

    def _named(self, x: np.ndarray) -> np.ndarray:
        """The classes of single images."""
        return np.argmax(class_probabilities("stacked_modes", self.features, x), axis=1)


def _digits(dataset: ganlab.Dataset) -> ganlab.Dataset:
    digits = getattr(dataset, "digits", None)
    if digits is None:
        raise ganlab.IncompatibleError(
            f"evaluators.stacked_modes cannot measure {type(dataset).__name__}, which is not stacked of single images: "
            "it has no digits. Drop it from experiment.evaluators, or use @datasets.stacked_mnist()."
        )
    return digits


def _modes(dataset: ganlab.Dataset) -> int:
    return int((_digits(dataset).classes or 1) ** dataset.sample_shape[-1])
