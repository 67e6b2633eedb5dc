"""The evaluator role: figures that measure how good a generator is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from ganlab.interfaces.dataset import Dataset

if TYPE_CHECKING:
    import numpy as np

    from ganlab.interfaces.run import Run

    Sample = Callable[[int, int], np.ndarray]
else:
    Sample = Callable

Direction = Literal["max", "min"]


class Evaluator:
    """Measures a generator by its samples.

    Attributes:
        metric_help: Explanations of its figures by name, for `ganlab config explain`. `<layer>` and the like
            stand for any text.
        better: Which values of a figure are better, by its name: "max" or "min". One that is left out has no best
            value, and `compare` draws no conclusion from it.
    """

    metric_help: ClassVar[Mapping[str, str]] = {}
    better: ClassVar[Mapping[str, Direction]] = {}

    def evaluate(self, sample: Sample, dataset: Dataset, run: Run | None) -> dict[str, float]:
        """Named figures.

        Args:
            sample: `sample(n, seed)` draws n samples from the (averaged) generator: float32, `(n, *sample_shape)`.
                Sample i of a seed is the same however many are drawn; `sample(n, seed, start=i)` draws from it on, for
                samples that are too many for memory. Of a conditional generator, `sample(n, seed, labels)` draws those
                of these classes, of which `sample.classes` is the number; it is None for others. Likewise
                `conditions=` and `source=`; `sample.given(n, seed)` has what the generator is given for n samples, by
                these names. `sample.networks()` has the further networks of the generator's side by name, for each its
                Keras model and a function from numpy rows to its output.
            dataset: The experiment's dataset.
            run: The run that trains or trained the generator; None outside a run.
        """
        raise NotImplementedError

    def limits(self, dataset: Dataset) -> Mapping[str, tuple[float, float]]:
        """The least and the largest value that a figure can have, by its name: of counts, rates and distances.

        Intervals over seeds end there. Of a figure that is left out nothing is known; infinity is no limit.

        Args:
            dataset: The experiment's dataset, whose modes or classes may be counted.
        """
        return {}

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """A sentence on the problem that the figures of the last evaluation show, or None.

        Problems are, for example, that no mode was found, or that features were never trained. The sentence is part of
        the run's health for as long as it holds: state what was seen, what it means and which setting to try. Figures
        that are not finite are reported without it.

        Args:
            figures: The figures that `evaluate` returned.
        """
        return None
