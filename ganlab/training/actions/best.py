"""The best step so far, by a figure of the evaluators."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ganlab.errors import ConfigError, nearest
from ganlab.support.names import meant, one_meant
from ganlab.training.actions.action import Action, Moment


class Best(NamedTuple):
    """A step and the figure that makes it the best one."""

    metric: str
    step: int
    value: float


class KeepBest(Action):
    """Compares each evaluation with the best so far, whose checkpoint stays beside the newest ones."""

    can_wait = True  # it compares the figures of an evaluation, which can

    def __init__(self, keep_best: str, every: int) -> None:
        self.every = every
        self._metric, _, direction = keep_best.rpartition(":")
        self._sign = 1.0 if direction == "max" else -1.0
        self.best: Best | None = None

    def due(self, now: Moment) -> bool:
        """Whether an evaluation is due and there is a figure to compare."""
        return bool(self._metric) and super().due(now)

    def __call__(self, now: Moment) -> None:
        """Compares; a figure that is NaN is never the best."""
        figures = {record.tag: record.reduced for record in now.found}
        for tag in meant(self._metric, list(figures)):  # one, as `check_metric` finds
            value = figures[tag]
            if not math.isnan(value) and (self.best is None or self._sign * value > self._sign * self.best.value):
                self.best = Best(tag, now.step, float(value))

    def is_best(self, step: int) -> bool:
        """Whether this step is the best so far."""
        return self.best is not None and self.best.step == step

    def state(self) -> Any:
        """The best so far."""
        return self.best._asdict() if self.best is not None else None

    def resume(self, state: Any) -> None:
        """Restores it, unless it was chosen by another figure."""
        if state and meant(self._metric, [state["metric"]]):
            self.best = Best(str(state["metric"]), int(state["step"]), float(state["value"]))


def check_metric(keep_best: str, figures: list[str]) -> None:
    """Refuses to keep the best by a tag that is not one of the evaluators' figures, or is short for several."""
    metric = keep_best.rpartition(":")[0]
    if metric and not one_meant(metric, figures, f"experiment.keep_best = {keep_best!r}"):
        known = nearest(metric, figures) or f" Figures: {', '.join(figures) or 'none, for lack of evaluators'}."
        raise ConfigError(f"experiment.keep_best = {keep_best!r} names no figure of experiment.evaluators.{known}")
