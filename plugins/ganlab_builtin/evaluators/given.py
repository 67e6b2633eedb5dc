"""Measures of generators that are given something: whether samples have the asked conditions, or match their pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.evaluators.comparing import FROM_ZERO

if TYPE_CHECKING:
    from ganlab import Run


class ConditionAccuracy(ganlab.Evaluator):
    """How well samples have the conditions that were asked, where the data say which conditions an example shows.

    For datasets with `condition_of(examples)`, for example datasets.showers. Of several conditions the worst counts.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "correlation": "Between asked conditions and those that samples show.",
        "real_correlation": "The same for real examples: what a right generator reaches.",
        "mean_error": (
            "In bins of the asked condition, the largest difference of the mean that samples show from that of real "
            "examples, in standard deviations of the real examples of a bin."
        ),
        "spread_error": "The same difference of standard deviations.",
    }

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Lt(2**31)] = 10_000,
        bins: Annotated[int, Ge(1), Lt(2**15)] = 5,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
    ) -> None:
        """Sets how finely it is measured.

        Args:
            samples: How many samples are drawn, and how many real examples are read.
            bins: How many bins of equally many real examples there are.
            seed: Decides the samples.
        """
        self.samples, self.bins, self.seed = samples, bins, seed

    def evaluate(self, sample: Any, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures: `correlation`, `real_correlation`, `mean_error` and `spread_error`.

        Raises:
            IncompatibleError: The generator takes no conditions, or the data do not say which an example shows.
        """
        shown = getattr(dataset, "condition_of", None)
        if shown is None or dataset.condition_shape is None or "conditions" not in sample.given(1, self.seed):
            raise ganlab.IncompatibleError(
                "evaluators.condition_accuracy needs a generator that takes conditions, and a dataset with "
                "condition_of, for example architectures.mlp with conditions = True and datasets.showers."
            )
        numbers = tf.range(min(self.samples, dataset.size or self.samples), dtype=tf.int64)
        examples = np.asarray(dataset.examples(numbers, self.seed))
        real = _flat(dataset.conditions(numbers, self.seed)), _flat(shown(examples))
        asked = sample.given(self.samples, self.seed)["conditions"]
        made = _flat(asked), _flat(shown(np.asarray(sample(self.samples, self.seed))))
        figures = [self._of(*(x[:, i] for x in (*real, *made))) for i in range(made[0].shape[1])]
        worst = {"correlation": min, "real_correlation": min, "mean_error": max, "spread_error": max}
        return {name: float(choose(one[name] for one in figures)) for name, choose in worst.items()}

    def _of(
        self, asked: np.ndarray, shown: np.ndarray, of_samples: np.ndarray, by_samples: np.ndarray
    ) -> dict[str, Any]:
        edges = np.quantile(asked, np.linspace(0.0, 1.0, self.bins + 1)[1:-1])
        means, spreads = [0.0], [0.0]
        for i in range(self.bins):
            real, made = shown[np.digitize(asked, edges) == i], by_samples[np.digitize(of_samples, edges) == i]
            if len(real) > 1 and len(made) > 1 and real.std() > 0:
                means.append(abs(made.mean() - real.mean()) / real.std())
                spreads.append(abs(made.std() - real.std()) / real.std())
        return {
            "correlation": _correlation(of_samples, by_samples),
            "real_correlation": _correlation(asked, shown),
            "mean_error": max(means),
            "spread_error": max(spreads),
        }

    def limits(self, dataset: ganlab.Dataset) -> dict[str, tuple[float, float]]:
        """Correlations lie in [-1, 1], and errors are not negative."""
        of_one = dict.fromkeys(("correlation", "real_correlation"), (-1.0, 1.0))
        return of_one | dict.fromkeys(("mean_error", "spread_error"), FROM_ZERO)


class Reconstruction(ganlab.Evaluator):
    """How far samples are from the examples that belong to their sources, in a dataset of pairs."""

    metric_help: ClassVar[dict[str, str]] = {
        "absolute_error": "The mean absolute difference of a sample's values from those of its example.",
        "squared_error": "The mean squared difference.",
    }

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(1), Lt(2**31)] = 1000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
    ) -> None:
        """Sets the number of pairs.

        Args:
            samples: How many pairs are read; of a finite set the first ones.
            seed: Decides the latent vectors, and the pairs of a synthetic set.
        """
        self.samples, self.seed = samples, seed

    def evaluate(self, sample: Any, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures, `absolute_error` and `squared_error`.

        Raises:
            IncompatibleError: The data are not pairs, or the generator takes no source.
        """
        if dataset.source_shape is None or "source" not in sample.given(1, self.seed):
            raise ganlab.IncompatibleError(
                "evaluators.reconstruction needs a dataset of pairs and a generator that takes a source, for example "
                "datasets.edges and architectures.unet."
            )
        numbers = tf.range(min(self.samples, dataset.size or self.samples), dtype=tf.int64)
        real, source = (np.asarray(of(numbers, self.seed)) for of in (dataset.examples, dataset.sources))
        apart = np.asarray(sample(len(real), self.seed, source=source), np.float64) - real
        return {"absolute_error": float(np.abs(apart).mean()), "squared_error": float((apart**2).mean())}

    def limits(self, dataset: ganlab.Dataset) -> dict[str, tuple[float, float]]:
        """Neither is negative."""
        return dict.fromkeys(("absolute_error", "squared_error"), FROM_ZERO)


def _flat(rows: Any) -> np.ndarray:
    array = np.asarray(rows, np.float64)
    return array.reshape(len(array), -1)


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's; 0 where one of both does not vary."""
    return float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else 0.0
