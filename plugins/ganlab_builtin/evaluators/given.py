"""Measures of generators that are given something: the asked conditions, and the ways to samples and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

import ganlab
from ganlab import functional
from ganlab.bounds import Ge, Le, Lt
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
    better: ClassVar = {"correlation": "max", "mean_error": "min", "spread_error": "min"}

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(2), Le(10**7)] = 10_000,
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
        numbers, examples = _first(dataset, self.samples, self.seed)
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
    """How far examples are from what the generator makes of their sources, or of their codes.

    In a dataset of pairs the generator gets the sources of examples. Otherwise it gets their codes, where the game has
    an encoder: one further network of the generator's side that makes latent vectors of examples, or a dict whose
    `mean` these are, as that of architectures.ali.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "absolute_error": "The mean absolute difference of a sample's values from those of its example.",
        "squared_error": "The mean squared difference.",
        "cosine": "The mean cosine of the angle between the ways from a source to its sample and to its example.",
    }
    better: ClassVar = {"absolute_error": "min", "squared_error": "min", "cosine": "max"}

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(1), Le(10**7)] = 1000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
    ) -> None:
        """Sets the number of examples.

        Args:
            samples: How many examples are read; of a finite set the first ones.
            seed: Decides the latent vectors of pairs, and the examples of a synthetic set.
        """
        self.samples, self.seed = samples, seed

    def evaluate(self, sample: Any, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures, `absolute_error` and `squared_error`, and `cosine` of sources that have their examples' shape.

        Raises:
            IncompatibleError: The data are not pairs, or the generator takes no source, and there is no encoder.
        """
        numbers, real = _first(dataset, self.samples, self.seed)
        source = None
        if dataset.source_shape is not None and "source" in sample.given(1, self.seed):
            source = np.asarray(dataset.sources(numbers, self.seed))
            again = sample(len(real), self.seed, source=source)
        elif encoder := _way(sample, dataset.sample_shape, lambda: sample.latents(1, self.seed).shape[1:]):
            rows = {"labels": dataset.labels, "conditions": dataset.conditions}
            own = {name: of for name, of in rows.items() if name in sample.given(1, self.seed)}
            given = {name: np.asarray(functional.call(of, numbers, seed=self.seed)) for name, of in own.items()}
            again = sample.from_latents(encoder(real), **given)
        else:
            raise ganlab.IncompatibleError(
                "evaluators.reconstruction needs a dataset of pairs and a generator that takes a source, for example "
                "datasets.edges and architectures.unet, or an encoder, for example that of architectures.ali."
            )
        apart = np.asarray(again, np.float64) - real
        figures = {"absolute_error": float(np.abs(apart).mean()), "squared_error": float((apart**2).mean())}
        if source is not None and source.shape == real.shape:
            made, best = (_flat(np.asarray(x, np.float64) - source) for x in (again, real))
            lengths = np.linalg.norm(made, axis=1) * np.linalg.norm(best, axis=1)
            figures["cosine"] = float(np.mean((made * best).sum(axis=1) / np.maximum(lengths, 1e-15)))
        return figures

    def limits(self, dataset: ganlab.Dataset) -> dict[str, tuple[float, float]]:
        """Errors are not negative, and a cosine lies in [-1, 1]."""
        return {name: (-1.0, 1.0) if name == "cosine" else FROM_ZERO for name in self.metric_help}


class CycleError(Reconstruction):
    """How far values are from where they began after the way there and back, or back and there.

    For games with a source and a way back: one further network of the generator's side that makes sources of examples,
    as that of architectures.cyclegan. The two errors are those of equation 2 of Zhu et al., "Unpaired image-to-image
    translation using cycle-consistent adversarial networks" (2017), as means over values.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "error": "The mean absolute difference of an example's values from what is made of the source made of it.",
        "source_error": "The same of a source and what the way back makes of the sample made from it.",
    }
    better: ClassVar = {"error": "min", "source_error": "min"}

    def evaluate(self, sample: Any, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures, `error` and `source_error`.

        Raises:
            IncompatibleError: The generator takes no source, or there is no way back.
        """
        source = sample.given(self.samples, self.seed).get("source")
        back = None if source is None else _way(sample, dataset.sample_shape, lambda: source.shape[1:])
        if back is None:
            raise ganlab.IncompatibleError(
                "evaluators.cycle_error needs a generator that takes a source, and a further network that makes "
                "sources of examples, for example those of architectures.cyclegan."
            )
        _, real = _first(dataset, self.samples, self.seed)
        there = sample(len(real), self.seed, source=back(real))
        again = back(sample(self.samples, self.seed, source=source))
        apart = {"error": there - real, "source_error": again - source}
        return {name: float(np.abs(np.asarray(values, np.float64)).mean()) for name, values in apart.items()}


def _first(dataset: ganlab.Dataset, count: int, seed: int) -> tuple[tf.Tensor, np.ndarray]:
    """The numbers of the first examples, and these."""
    numbers = tf.range(min(count, dataset.size or count), dtype=tf.int64)
    return numbers, np.asarray(dataset.examples(numbers, seed))


def _way(sample: Any, taken: Sequence[int], made: Callable[[], Sequence[int]]) -> Callable[..., np.ndarray] | None:
    """The further network of the generator's side from rows of one shape to another; None unless there is just one."""
    fitting = []
    for model, function in getattr(sample, "networks", dict)().values():
        output = model.output.get("mean") if isinstance(model.output, dict) else model.output
        shapes = [tuple(x.shape[1:]) for x in (*model.inputs, output) if hasattr(x, "shape")]
        if shapes == [tuple(taken), tuple(made())]:
            fitting.append(function)
    return (lambda x: _mean(fitting[0](x))) if len(fitting) == 1 else None


def _mean(output: Any) -> np.ndarray:
    return output["mean"] if isinstance(output, dict) else output


def _flat(rows: Any) -> np.ndarray:
    array = np.asarray(rows, np.float64)
    return array.reshape(len(array), -1)


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's; 0 where one of both does not vary."""
    return float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else 0.0
