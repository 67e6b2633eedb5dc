"""Periodic evaluation: pictures of samples, the evaluators' figures, certified bounds."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from ganlab.composition import Experiment
from ganlab.errors import ContractError
from ganlab.interfaces import Dataset, Direction, Evaluator
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.runs import RunDirectory
from ganlab.telemetry import Record
from ganlab.telemetry.plots import image_grid, page, picture
from ganlab.training.graph.sampling import Scorer, first_examples, sampler, shown
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.tf_errors import of_several
from ganlab.training.reports import Reports

_IMAGES, _POINTS = 64, 1000
# Of the grid of a conditional generator.
_COLUMNS, _ROWS = 10, 16


@dataclass(frozen=True)
class Evaluated:
    """The results of an evaluation at one step.

    Attributes:
        figures: The evaluators' figures by `<evaluator>/<figure>`.
        records: The same, and certified bounds, for writers.
        picture: A PNG of samples, or None where samples of this shape have no picture.
    """

    figures: dict[str, float]
    records: list[Record]
    picture: bytes | None


class Evaluation(Reports):
    """Evaluates one state; pictures show the same latent vectors each time."""

    def __init__(self, experiment: Experiment, state: TrainingState) -> None:
        super().__init__(experiment.component_names("evaluators"))
        self._experiment, self._state = experiment, state
        self._sample = sampler(experiment, state)
        self._score = Scorer(state, experiment.dataset.classes)
        self._points = len(experiment.dataset.sample_shape) == 1
        self._real: np.ndarray | None = None

    def __call__(self, step: int, run: RunDirectory | None) -> Evaluated:
        """Evaluates the generator as it is; `run` is None before there is one."""
        experiment = self._experiment
        # Inside, what evaluators train is spread over the replicas. With several workers only the chief evaluates, and
        # a variable made in scope would wait for the others.
        strategy = experiment.strategy
        with contextlib.nullcontext() if of_several(strategy) else strategy.scope():
            figures = measured(self._names, experiment.evaluators, self._sample, experiment.dataset, run)
            if run is not None:  # without one this is a trial before training, whose reports do not count
                self._reports = diagnosed(self._names, experiment.evaluators, figures)
            records = [Record(step, f"evaluation/{name}", value) for name, value in figures.items()]
            with self._state.timed():
                for player in self._state.players.values():
                    for name, bound in player.bounds().items():
                        records.append(Record(step, f"{player.stack.kind}/{name}/lipschitz_bound", bound))
            return Evaluated(figures, records, self._picture(trial=run is None))

    def _picture(self, *, trial: bool) -> bytes | None:
        count, seed = _POINTS if self._points else _IMAGES, self._experiment.seed
        grid = self._sample.classes and not self._points and not self._sample.rows
        columns, given = None, {}
        if grid:  # a row for each class, as `ganlab sample` draws them
            rows, columns = min(self._sample.classes or 1, _ROWS), _COLUMNS
            latents = self._sample.latents(rows * columns, seed)
            samples = self._sample.from_latents(latents, np.repeat(np.arange(rows), columns))
        else:
            given = self._sample.given(count, seed)
            samples = self._sample.from_latents(self._sample.latents(count, seed), **given)
        if (drawn := shown(self._experiment.dataset, samples if grid else samples[:_IMAGES])) is not None:
            return page(drawn, columns)
        if grid:
            return image_grid(samples, columns)
        scored = self._score if self._score.of_examples else None
        if self._points and self._real is None:
            self._real = first_examples(self._experiment.dataset, count, seed)
        if trial and self._real is not None and samples.shape[1] == 2:
            # Everything that can fail, by the graph that scores the picture, which takes many times as long.
            if scored is not None:
                scored(np.resize(self._real, (scored.rows, 2)))
            return None
        return picture(samples, self._real, scored, given.get("source"))


def measured(
    names: Sequence[str],
    evaluators: Sequence[Evaluator],
    sample: Callable[[int, int], np.ndarray],
    dataset: Dataset,
    run: RunDirectory | None,
) -> dict[str, float]:
    """The figures of evaluators, by `<evaluator>/<figure>`.

    Raises:
        ContractError: One of them does not return a dict of numbers.
        PluginError: One of them fails.
    """
    figures: dict[str, float] = {}
    for name, evaluator in zip(names, evaluators, strict=True):
        with plugin_code(f"evaluators.{name}", "evaluate"):
            returned = evaluator.evaluate(sample, dataset, run)
        figures |= {f"{name}/{key}": value for key, value in _numbers(name, returned).items()}
    return figures


def declared_figures(
    names: Sequence[str], evaluators: Sequence[Evaluator], dataset: Dataset
) -> dict[str, dict[str, Any]]:
    """The limits and better directions that evaluators declare, by tag, as run.json has them; None is no limit.

    Raises:
        ContractError: `limits` is not a dict of pairs of numbers, or `better` not one of "max" and "min".
        PluginError: One of them fails.
    """
    limits: dict[str, list[float | None]] = {}
    better: dict[str, Direction] = {}
    for name, evaluator in zip(names, evaluators, strict=True):
        with plugin_code(f"evaluators.{name}", "limits"):
            given, ways = evaluator.limits(dataset), evaluator.better
        try:
            pairs = {str(figure): (float(low), float(high)) for figure, (low, high) in given.items()}
            if not all(low <= high for low, high in pairs.values()):
                raise ValueError
        except (AttributeError, TypeError, ValueError):
            raise ContractError(
                f"Evaluator {name} has the limits {given!r:.80}; it must return a dict of a figure's least and largest "
                "value, for example {'share': (0.0, 1.0)}."
            ) from None
        for figure, ends in pairs.items():
            limits[f"evaluation/{name}/{figure}"] = [end if math.isfinite(end) else None for end in ends]
        if not isinstance(ways, Mapping) or not all(way in get_args(Direction) for way in ways.values()):
            raise ContractError(
                f'Evaluator {name} has better = {ways!r:.80}; it must be a dict of "max" or "min" by a figure\'s name, '
                "for example {'share': 'max'}."
            )
        better |= {f"evaluation/{name}/{figure}": way for figure, way in ways.items()}
    return {"limits": limits, "better": better}


def diagnosed(
    names: Sequence[str], evaluators: Sequence[Evaluator], figures: Mapping[str, float]
) -> dict[str, str | None]:
    """The problems that evaluators report of the figures of `measured`, by name; None where one reports nothing."""
    complaints: dict[str, str | None] = {}
    for name, evaluator in zip(names, evaluators, strict=True):
        prefix = f"{name}/"
        own = {tag.removeprefix(prefix): value for tag, value in figures.items() if tag.startswith(prefix)}
        bad = [key for key, value in own.items() if not math.isfinite(value)]
        if bad:
            complaints[name] = f"{', '.join(bad)}: not finite. The samples or features are not finite, or none is left."
            continue
        with plugin_code(f"evaluators.{name}", "diagnose"):
            complaints[name] = evaluator.diagnose(own)
    return complaints


def _numbers(name: str, given: Any) -> dict[str, float]:
    try:
        return {str(key): float(value) for key, value in given.items()}
    except (AttributeError, TypeError, ValueError):
        raise ContractError(f"Evaluator {name} returned {given!r}; it must return a dict of named numbers.") from None
