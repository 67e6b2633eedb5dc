"""What is looked at now and then: pictures of samples, the evaluators' figures, certified bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ganlab.blame import plugin_code
from ganlab.composition import Experiment
from ganlab.errors import ContractError
from ganlab.runs import Run
from ganlab.telemetry import Record
from ganlab.telemetry.pictures import picture
from ganlab.training.sampling import Sampler, Scorer, real_examples
from ganlab.training.state import TrainingState

_IMAGES, _POINTS = 64, 1000


@dataclass(frozen=True)
class Evaluated:
    """The outcome at one step.

    Attributes:
        figures: The evaluators' figures by `<evaluator>/<figure>`.
        records: The same, and certified bounds, for writers.
        picture: A PNG of samples, or None where samples of this shape have no picture.
    """

    figures: dict[str, float]
    records: list[Record]
    picture: bytes | None


class Evaluation:
    """Looks at one state; pictures show the same latent vectors each time."""

    def __init__(self, experiment: Experiment, state: TrainingState) -> None:
        self._experiment = experiment
        self._sample = Sampler(state.generator, state.sampling_weights(), int(experiment.architecture.latent_dim))
        self._score = Scorer(state)
        self._names = experiment.component_names("evaluators")
        self._points = len(experiment.dataset.sample_shape) == 1
        self._real: np.ndarray | None = None

    def __call__(self, step: int, run: Run | None) -> Evaluated:
        """Evaluates the generator as it is.

        Args:
            step: Generator updates done.
            run: The run that is trained, or None before there is one.

        Raises:
            ContractError: What an evaluator or a bound gives is not what it must be.
        """
        figures: dict[str, float] = {}
        for name, evaluator in zip(self._names, self._experiment.evaluators, strict=True):
            with plugin_code(f"evaluators.{name}", "evaluate"):
                found = evaluator.evaluate(self._sample, self._experiment.dataset, run)
            figures |= {f"{name}/{key}": value for key, value in _numbers(name, found).items()}
        records = [Record(step, f"evaluation/{name}", value) for name, value in figures.items()]
        bounds = self._score.bounds()
        records += [Record(step, f"constraints/{name}/lipschitz_bound", value) for name, value in bounds.items()]
        return Evaluated(figures, records, self._picture())

    def _picture(self) -> bytes | None:
        count = _POINTS if self._points else _IMAGES
        samples = self._sample(count, self._experiment.seed)
        if self._points and self._real is None:
            self._real = real_examples(self._experiment, count)
        return picture(samples, self._real, self._score)


def _numbers(name: str, found: Any) -> dict[str, float]:
    try:
        return {str(key): float(value) for key, value in found.items()}
    except (AttributeError, TypeError, ValueError):
        raise ContractError(f"Evaluator {name} returned {found!r}; it must return a dict of named numbers.") from None
