"""Compares how far trainings are apart with how far rounding alone drives them apart.

Differences are norms over whole groups of numbers. Single variables mislead, because the gradient of a bias before a
normalization is nothing but rounding. The yardstick is one training against itself from initial weights changed by
1e-7. Where units have kinks (ReLU), rounding occasionally puts an example on the other side of one, and its gradient
jumps. So trainings are compared from several starts (`reference.py`), and the smallest difference counts. A mistake
shows from every start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ganlab_verify.trace import Arrays, Trace, norm

# The limit is this many yardsticks, but at least float32's rounding in sums of a few hundred terms.
_YARDSTICKS, _LEAST = 30.0, 1e-5
# A layer's moving variance comes from a difference of two such sums, of squares and of values, and means of scores may
# nearly cancel within a batch.
_LEAST_OF_DIFFERENCES = 1e-4
_DIFFERENCES = ("critic/wasserstein", "critic/loss", "generator/loss")
# What a loss or an augmentation keeps or logs may be a small part of the difference of two such means.
_LEAST_OF_THEIRS = 1e-3
_THEIRS = ("loss/", "losses/", "augmentations/")
# And at most this, or a factor of two in a part of the loss would pass. Near it nothing is compared.
_MOST = 0.1
_CHAOTIC = _MOST / 3


@dataclass(frozen=True)
class Measure:
    """One comparison of one group of numbers at one iteration.

    Attributes:
        kind: "metric", "gradient", "applied" (a gradient as the optimizer had it) or "variable".
        group: The group: a metric's tag, `critic/weights`, `constraints/<name>/state` and so on.
        iteration: From 1; 0 is before training.
        distance: How far the trainings are apart, relative to the group's size (for variables: to how far they moved).
        limit: The largest distance allowed; None where a change of 1e-7 moves the group too far to compare.
    """

    kind: str
    group: str
    iteration: int
    distance: float
    limit: float | None

    @property
    def departs(self) -> bool:
        """Whether the distance is more than rounding."""
        return self.limit is not None and not self.distance <= self.limit

    @property
    def title(self) -> str:
        """The group in words."""
        return {"gradient": f"the gradient of {self.group}", "applied": f"the gradient applied to {self.group}"}.get(
            self.kind, self.group
        )


def compare(references: Sequence[Trace], others: Sequence[Trace]) -> list[Measure]:
    """Compares two trainings, each from the same several starts, the first of which is not perturbed.

    Args:
        references: The trainings to compare with.
        others: The trainings under test.

    Returns:
        A measure for every group and iteration, in the order in which a training computes them.
    """
    measures = []
    yardsticks: dict[tuple[str, str], float] = {}
    for kind, group, iteration, read in _quantities(references[0]):
        yardstick = max((_distance(read(references[0]), read(start)) for start in references[1:]), default=0.0)
        # A group that has drifted once keeps its wide limit.
        yardsticks[kind, group] = yardstick = max(yardstick, yardsticks.get((kind, group), 0.0))
        limit = min(_MOST, max(_least(group), _YARDSTICKS * yardstick)) if yardstick <= _CHAOTIC else None
        distance = min(_distance(read(a), read(b)) for a, b in zip(references, others, strict=True))
        measures.append(Measure(kind, group, iteration, distance, limit))
    return measures


def _least(group: str) -> float:
    if group.startswith(_THEIRS):
        return _LEAST_OF_THEIRS
    return _LEAST_OF_DIFFERENCES if group in _DIFFERENCES or group.endswith("buffers") else _LEAST


def first_departure(measures: Iterable[Measure]) -> Measure | None:
    """The first departure: by iteration, then in the order of computation; None if there is none."""
    return min((measure for measure in measures if measure.departs), key=lambda m: m.iteration, default=None)


def may_be_rounding(measures: Iterable[Measure]) -> bool:
    """Whether trainings depart, and first by so little that a unit's kink may be the reason."""
    first = next((measure for measure in measures if measure.departs), None)
    return first is not None and first.distance <= _MOST


@dataclass(frozen=True)
class _Quantity:
    """A group's values in one training, and the size that differences are relative to."""

    values: Mapping[str, np.ndarray]
    scale: float


_Read = Callable[[Trace], _Quantity]


def _quantities(trace: Trace) -> Iterable[tuple[str, str, int, _Read]]:
    """Everything to compare, in the order in which a training computes it."""
    groups = sorted(grouped(trace.before), key=_computed)
    trained = grouped(trace.iterations[0].gradients)
    given = [tag for tag in trace.tags if tag.startswith(trace.witness)]
    for group in groups:
        yield "variable", group, 0, _variables(group, 0)
    for i in range(1, len(trace.iterations) + 1):
        for tag in given:
            yield "metric", tag, i, _metric(tag, i)
        for group in groups:
            if group in trained:
                yield "gradient", group, i, _gradients(group, i, applied=False)
                yield "applied", group, i, _gradients(group, i, applied=True)
            yield "variable", group, i, _variables(group, i)
        for tag in trace.tags:
            if tag not in given:
                yield "metric", tag, i, _metric(tag, i)


def _computed(group: str) -> int:
    """The position of a group in an iteration. A constraint's state is read after the last update."""
    role, last = group.partition("/")[0], group.rpartition("/")[2]
    order = ("weights", "parameters", "state", "buffers", "average", "average_buffers", "optimizer", "counters")
    return order.index(last) + (len(order) if role.startswith("generator") else 0)


# The names that a group begins with: kinds of components have the component's after them, some the network's before it.
_PARTS = {"constraints": 3, "generator_constraints": 3, "augmentations": 3, "network_constraints": 4}


def grouped(values: Arrays) -> dict[str, list[str]]:
    """Names of variables by group: by network and role, or by constraint and role; whole numbers by themselves."""
    groups: dict[str, list[str]] = {}
    for name, value in values.items():
        parts = name.split("/")
        group = "/".join(parts[: _PARTS.get(parts[0], 2)])
        if not np.issubdtype(value.dtype, np.floating):
            group = f"{parts[0]}/counters"
        groups.setdefault(group, []).append(name)
    return groups


def _metric(tag: str, iteration: int) -> _Read:
    def read(trace: Trace) -> _Quantity:
        values = trace.reduced(tag)
        return _Quantity({tag: values[iteration - 1]}, float(np.max(np.abs(values))))

    return read


def _gradients(group: str, iteration: int, *, applied: bool) -> _Read:
    def read(trace: Trace) -> _Quantity:
        done = trace.iterations[iteration - 1]
        every = done.applied if applied else done.gradients
        values = {name: every[name] for name in grouped(every)[group]}
        return _Quantity(values, norm(values.values()))

    return read


def _variables(group: str, iteration: int) -> _Read:
    """Variables as differences from the start, because training changes them little compared with their size."""

    def read(trace: Trace) -> _Quantity:
        now = trace.iterations[iteration - 1].variables if iteration else trace.before
        names = grouped(now)[group]
        if iteration == 0:
            values = {name: now[name].astype(np.float64) for name in names}
        else:
            values = {name: now[name].astype(np.float64) - trace.before[name] for name in names}
        return _Quantity(values, norm(values.values()))

    return read


def _distance(a: _Quantity, b: _Quantity) -> float:
    difference = norm(np.asarray(b.values[name], np.float64) - a.values[name] for name in a.values)
    if difference == 0:
        return 0.0
    return difference / a.scale if a.scale > 0 and np.isfinite(difference) else np.inf
