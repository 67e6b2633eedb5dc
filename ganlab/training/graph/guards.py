"""Guards of a run in training: against replicas that drift apart, metrics that go wrong, constraints that fail."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab.errors import TrainingFailedError
from ganlab.plugins import scheduled
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.runs.status import SHOWN_BY
from ganlab.support.formatting import listed
from ganlab.telemetry import Record
from ganlab.training.graph.magnitudes import MAGNITUDES, Magnitudes
from ganlab.training.graph.replica import Metric
from ganlab.training.graph.stack import ConstraintStack

# Consecutive rows that must show a constraint failing before it is reported: any run looks bad at first.
_PATIENCE = 10
_OF_CRITIC = "constraints/"


@dataclass(frozen=True)
class Sums:
    """Sums over every variable on every replica, each `(replicas, variables)`.

    Attributes:
        bits: Over the bits, int64; zeros for one replica, which has nothing to be compared with.
        magnitudes: Over the absolute values, float32.
    """

    bits: np.ndarray
    magnitudes: np.ndarray


class DivergedError(TrainingFailedError):
    """A metric or a variable is no longer a finite number.

    Attributes:
        step: The first step without it, or where only variables show it, the step after which they were looked at.
    """

    def __init__(self, message: str, step: int) -> None:
        super().__init__(message)
        self.step = step


# Replicas on different hardware may round their own computations differently, but never by this much.
_ROUNDING = 1e-4


def magnitude(value: tf.Tensor) -> tf.Tensor:
    """The sum of a tensor's absolute values, float32."""
    return tf.reduce_sum(tf.abs(tf.cast(value, tf.float32)))


def checksum(value: tf.Tensor) -> tf.Tensor:
    """A sum over a tensor's bits, int64: equal for equal bits, and cheap."""
    if value.dtype.is_floating:
        bits = {2: tf.int16, 4: tf.int32, 8: tf.int64}[value.dtype.size]
        value = tf.bitcast(value, bits)
    return tf.reduce_sum(tf.cast(value, tf.int64))


def check_replicas(names: Sequence[str], sums: Sums, step: int) -> str:
    """Checks that the replicas still hold the same variables, by the sums over them; an error names those that differ.

    Returns:
        A warning if replicas differ by rounding alone, as they may on different hardware; else an empty string.
    """
    unequal = (sums.bits != sums.bits[:1]).any(axis=0)
    spread = sums.magnitudes.max(axis=0) - sums.magnitudes.min(axis=0)
    apart = unequal & ~(spread <= _ROUNDING * np.abs(sums.magnitudes).max(axis=0))
    if apart.any():
        different = [name for name, is_apart in zip(names, apart, strict=True) if is_apart]
        raise TrainingFailedError(
            f"The replicas hold different values of {listed(different, 5)} at step {step}, so they no longer train one "
            "network. A plugin has changed a variable on one replica, or advances a state from one replica's own data: "
            "reduce that data with replica.mean, sum or max. Earlier checkpoints are kept."
        )
    if unequal.any():
        return "The replicas' variables differ by rounding, as on unlike devices. A rerun will not give the same bits."
    return ""


def check_finite(values: np.ndarray) -> int | None:
    """How many of the `(iterations, replicas, metrics)` come before one that is not finite; None if all are finite."""
    bad = np.argwhere(~np.isfinite(values).all(axis=(1, 2)))
    return int(bad[0][0]) if len(bad) else None


def not_finite(variables: Mapping[str, tf.Variable], sums: Sums, infinite: Collection[str] = ()) -> list[str]:
    """The variables with a value that is not finite: the critic's come first, because it usually begins there.

    Those named in `infinite` may hold infinity, though never NaN.
    """
    names = []
    for (name, variable), largest in zip(variables.items(), np.abs(sums.magnitudes).max(axis=0), strict=True):
        # The sum of finite values may be infinite, but it is never NaN.
        if np.isnan(largest) or (np.isinf(largest) and name not in infinite and not _is_finite(variable)):
            names.append(name)
    return sorted(names, key=lambda name: name.startswith("generator/"))


def _is_finite(variable: tf.Variable) -> bool:
    return bool(tf.reduce_all(tf.math.is_finite(tf.convert_to_tensor(variable))))


def diverged(
    metrics: Sequence[Metric],
    step: int,
    values: np.ndarray | None,
    kept: int | None,
    variables: Sequence[str] = (),
    done: int = 0,
) -> DivergedError:
    """The error of an iteration with a metric or a variable that is not finite.

    Args:
        metrics: In the order of the values.
        step: Generator updates done, that iteration included.
        values: Its metrics, `(replicas, metrics)`; None if all metrics are finite.
        kept: The step of the newest checkpoint, or None.
        variables: The names of those that are not finite, at this step or at the end of its chunk.
        done: The step at the end of its chunk.
    """
    saved = f"The checkpoint of step {kept} is kept." if kept is not None else "There is no earlier checkpoint."
    advice = f"{saved} Lower the learning rates; docs/divergence.md says what to try.{SHOWN_BY}"
    if values is None:
        which = subject_and_verb(variables).replace("the", "The", 1)
        said = f"{which} not finite at step {step}, though every metric is: training diverged. {advice}"
        return DivergedError(said, step)
    tag = metrics[int(np.argmin(np.isfinite(values).all(axis=0)))].tag
    also = f" As a result {subject_and_verb(variables)} not finite." if variables else ""
    seen = f" By the time that was seen, step {done} was done, which is the step in run.json." if done > step else ""
    said = f"{tag} is not finite from step {step} on: training diverged.{seen}{also} {advice}"
    return DivergedError(said, step)


def subject_and_verb(variables: Sequence[str]) -> str:
    """Names the first variable and counts the others, with a verb: `the variable critic/weights/0 and 3 more are`."""
    more = len(variables) - 1
    return f"the variable {variables[0]} {f'and {more} more are' if more else 'is'}"


class Warnings:
    """Warns once each of constraints that report problems, of losses that explode and of a critic that vanishes."""

    def __init__(self, stacks: Sequence[ConstraintStack], metrics: Sequence[Metric], steps: int = 1) -> None:
        """Takes the networks' constraints, the metrics of a step, and how many steps a run with schedules has."""
        self._steps = steps
        self._tags = [metric.tag for metric in metrics]
        # By setting and name, as in tags, `generator_constraints/<name>`; those of the critic by name alone.
        self._constraints = {
            f"{stack.kind}/{name}".removeprefix(_OF_CRITIC): constraint
            for stack in stacks
            for name, constraint in zip(stack.names, stack.constraints, strict=True)
        }
        of_critic = [stack for stack in stacks if f"{stack.kind}/" == _OF_CRITIC]
        self._magnitudes = Magnitudes(constrained=all(stack.names for stack in of_critic))
        self._ill: dict[str, int] = dict.fromkeys(self._constraints, 0)
        self._said: set[str] = set()
        self._complaints: dict[str, str | None] = {}
        self._seen = False

    @property
    def seen(self) -> bool:
        """Whether it has seen a row, in this process or in an earlier one whose checkpoint it resumed."""
        return self._seen

    @property
    def complaints(self) -> list[str]:
        """The problems found, each in the last row that has its metrics."""
        complaints = {**self._complaints, **self._magnitudes.complaints}
        return [f"{name}: {said}" for name, said in complaints.items() if said]

    def state(self) -> dict[str, Any]:
        """Its state as plain values: part of a checkpoint, so that a resumed run warns of the same things."""
        return {
            "ill": self._ill,
            "said": sorted(self._said),
            "complaints": self._complaints,
            **self._magnitudes.state(),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Restores the state from a checkpoint, for those constraints that the experiment still has."""
        names = (*self._constraints, *MAGNITUDES)
        self._ill |= {name: int(count) for name, count in state["ill"].items() if name in names}
        self._complaints |= {name: said and str(said) for name, said in state["complaints"].items() if name in names}
        self._said |= set(map(str, state["said"]))
        self._magnitudes.resume(state)
        self._seen = int(state["rows"]) > 0

    def row(self, records: Sequence[Record]) -> Iterator[str]:
        """Takes the metrics of one logged row and yields the warnings that are due."""
        self._seen = True
        reduced = {record.tag: record.reduced for record in records}
        for name in self._constraints:
            prefix = f"{name}/" if "/" in name else f"{_OF_CRITIC}{name}/"
            if any(tag.startswith(prefix) and tag not in reduced for tag in self._tags):
                continue  # not measured in every update, and not since the last row
            own = {tag.removeprefix(prefix): value for tag, value in reduced.items() if tag.startswith(prefix)}
            self._complaints[name] = complaint = self._diagnosed(name, own, records[0].step)
            yield from self._patiently(name, complaint)
        ill = {tag: (said, at_once) for tag, said, at_once in self._magnitudes.row(records[0].step, reduced)}
        for tag in MAGNITUDES:
            said, at_once = ill.get(tag, (None, False))
            if said and at_once:
                yield from self._once(tag, f"{tag}: {said}")
            else:
                yield from self._patiently(tag, said)

    def _diagnosed(self, name: str, metrics: Mapping[str, float], step: int) -> str | None:
        """The problem that a constraint reports; metrics that are not finite are reported without it."""
        bad = [key for key, value in metrics.items() if not math.isfinite(value)]
        if bad:
            return f"{', '.join(bad)}: not finite. docs/divergence.md lists what to try."
        part = f"constraints.{name.rpartition('/')[2]}"
        with plugin_code(part, "diagnose"), scheduled.at(max(step - 1, 0), self._steps):
            return self._constraints[name].diagnose(metrics)

    def _patiently(self, name: str, complaint: str | None) -> Iterator[str]:
        self._ill[name] = self._ill.get(name, 0) + 1 if complaint else 0
        if complaint and self._ill[name] == _PATIENCE:
            yield from self._once(name, f"{name}: {complaint}")

    def _once(self, key: str, text: str) -> Iterator[str]:
        if key not in self._said:
            self._said.add(key)
            yield text
