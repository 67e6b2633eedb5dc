"""How far short pieces of generated texts are distributed as those of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    from ganlab import Run


class NGrams(ganlab.Evaluator):
    """The Jensen-Shannon divergence between the n-grams of samples and of data, for n = 1, 2, ...

    Gulrajani et al., "Improved training of Wasserstein GANs" (2017), as in the authors' `language_helpers.py`: the
    pieces of n characters of all texts, at all places, in bits: 0 for the same distribution, 1 for pieces that none
    share. For samples `(length, characters)`, of which the most likely character counts.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "js<n>": "The divergence in bits of the distributions of n characters in a row: 0 is best, 1 is worst.",
    }
    better: ClassVar = {f"js{n}": "min" for n in range(1, 9)}

    def __init__(
        self,
        *,
        most: Annotated[int, Ge(1), Le(8)] = 4,
        samples: Annotated[int, Ge(1), Le(10**7)] = 2048,
        examples: Annotated[int, Ge(1), Lt(2**31)] = 16384,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
    ) -> None:
        """Keeps the protocol.

        Args:
            most: The largest n.
            samples: The number of samples.
            examples: The most examples of the data that are counted.
            seed: Decides the noise that samples are drawn from.
        """
        self.most, self.samples, self.count, self.seed = most, samples, examples, seed

    def evaluate(
        self, sample: Callable[[int, int], np.ndarray], dataset: ganlab.Dataset, run: Run | None
    ) -> dict[str, float]:
        """The divergences of one generator, `js1` and so on.

        Raises:
            IncompatibleError: The samples are no texts, or shorter than n.
        """
        del run
        length, characters = (*dataset.sample_shape, 0)[:2]
        if len(dataset.sample_shape) != 2 or length < self.most or characters**self.most > 2**62:
            raise ganlab.IncompatibleError(
                f"evaluators.ngrams counts up to {self.most} characters in a row, and the samples have the shape "
                f"{tuple(dataset.sample_shape)}. It needs (length, characters) of that length; lower "
                "evaluators.ngrams.most, or leave it out."
            )
        count = self.count if dataset.size is None else min(self.count, dataset.size)
        parts = [tf.range(i, min(i + 1024, count), dtype=tf.int64) for i in range(0, count, 1024)]
        real = np.concatenate([np.argmax(dataset.examples(numbers, 0), axis=-1) for numbers in parts])
        fake = np.argmax(sample(self.samples, self.seed), axis=-1)
        return {f"js{n}": _divergence(_pieces(fake, n), _pieces(real, n)) for n in range(1, self.most + 1)}

    def limits(self, dataset: ganlab.Dataset) -> Mapping[str, tuple[float, float]]:
        """From 0 to 1 bit."""
        return {f"js{n}": (0.0, 1.0) for n in range(1, self.most + 1)}


def _pieces(texts: np.ndarray, n: int) -> np.ndarray:
    """All pieces of n characters in a row of texts `(k, length)`, `(pieces, n)`."""
    return np.lib.stride_tricks.sliding_window_view(texts, n, axis=1).reshape(-1, n)


def _divergence(one: np.ndarray, other: np.ndarray) -> float:
    """The Jensen-Shannon divergence in bits of the distributions of rows."""
    _, which = np.unique(np.concatenate([one, other]), axis=0, return_inverse=True)
    which = which.reshape(-1)
    p = np.bincount(which[: len(one)], minlength=which.max() + 1) / len(one)
    q = np.bincount(which[len(one) :], minlength=which.max() + 1) / len(other)
    mean = (p + q) / 2
    terms = [x[x > 0] * np.log2(x[x > 0] / mean[x > 0]) for x in (p, q)]
    return float(max(sum(term.sum() for term in terms) / 2, 0.0))
