"""What watches over a run while it trains: replicas that drift apart, metrics that go wrong, constraints that fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab.blame import plugin_code
from ganlab.errors import TrainingFailedError
from ganlab.telemetry import Record
from ganlab.training.replica import Metric
from ganlab.training.stack import ConstraintStack

# Rows in a row that must show a constraint failing before it is said: the first iterations of any run look ill.
_PATIENCE = 10
# A loss this many times larger than in the run's first rows has exploded.
_FIRST_ROWS, _EXPLODED = 10, 1_000.0


@dataclass(frozen=True)
class Sums:
    """Sums over every variable on every replica, each `(replicas, variables)`.

    Attributes:
        bits: Over the bits, int64.
        magnitudes: Over the absolute values, float32.
    """

    bits: np.ndarray
    magnitudes: np.ndarray


class DivergedError(TrainingFailedError):
    """A metric is no longer a finite number."""


# Replicas on unlike hardware may round what each of them computes for itself differently; nothing rounds by this much.
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
    """Stops a run whose replicas no longer hold the same variables.

    Args:
        names: Of the variables.
        sums: Of the variables.
        step: Generator updates done, for the message.

    Returns:
        A warning where replicas differ by rounding alone, which they may on unlike hardware; else an empty string.

    Raises:
        TrainingFailedError: Names the variables.
    """
    unequal = (sums.bits != sums.bits[:1]).any(axis=0)
    spread = sums.magnitudes.max(axis=0) - sums.magnitudes.min(axis=0)
    apart = unequal & ~(spread <= _ROUNDING * np.abs(sums.magnitudes).max(axis=0))
    if apart.any():
        different = [name for name, is_apart in zip(names, apart, strict=True) if is_apart]
        shown = ", ".join(different[:5]) + (f" and {len(different) - 5} more" if len(different) > 5 else "")
        raise TrainingFailedError(
            f"The replicas hold different values of {shown} at step {step}, so they no longer train one network. "
            "A plugin has changed a variable on one replica, or advances a state from one replica's own data: reduce "
            "that with replica.mean, sum or max. Earlier checkpoints are kept."
        )
    if unequal.any():
        return "The replicas' variables differ by rounding, as on unlike devices. A rerun will not give the same bits."
    return ""


def check_finite(values: np.ndarray) -> int | None:
    """How many iterations come before the first with a metric that is not finite; None where all are finite.

    Args:
        values: `(iterations, replicas, metrics)`.
    """
    bad = np.argwhere(~np.isfinite(values).all(axis=(1, 2)))
    return int(bad[0][0]) if len(bad) else None


def diverged(metrics: Sequence[Metric], step: int, values: np.ndarray, kept: int | None) -> DivergedError:
    """The error of an iteration with a metric that is not finite.

    Args:
        metrics: In the order of the values.
        step: Generator updates done with that iteration.
        values: Its metrics, `(replicas, metrics)`.
        kept: The step of the newest checkpoint, or None.
    """
    tag = metrics[int(np.argmin(np.isfinite(values).all(axis=0)))].tag
    saved = f"The checkpoint of step {kept} is kept." if kept is not None else "There is no earlier checkpoint."
    return DivergedError(
        f"{tag} is not finite from step {step} on: training diverged. {saved} Lower the learning rates, or see in "
        "TensorBoard which metric grew first."
    )


class Warnings:
    """Warns, once each, of constraints that report trouble and of a critic's loss that explodes."""

    def __init__(self, stack: ConstraintStack, metrics: Sequence[Metric]) -> None:
        self._stack, self._tags = stack, [metric.tag for metric in metrics]
        self._ill = dict.fromkeys(stack.names, 0)
        self._said: set[str] = set()
        self._complaints: dict[str, str | None] = {}
        self._rows, self._largest = 0, 0.0

    @property
    def complaints(self) -> list[str]:
        """What the constraints say is wrong, each in the last row that has its metrics."""
        return [f"{name}: {said}" for name, said in self._complaints.items() if said]

    def state(self) -> dict[str, Any]:
        """What it remembers, as plain values: part of a checkpoint, so that a resumed run warns of the same."""
        return {
            "ill": self._ill,
            "said": sorted(self._said),
            "complaints": self._complaints,
            "rows": self._rows,
            "largest": self._largest,
        }

    def go_on(self, state: Mapping[str, Any]) -> None:
        """Takes what a checkpoint remembered, of the constraints that are still there."""
        names = self._stack.names
        self._ill |= {name: int(count) for name, count in state["ill"].items() if name in names}
        self._complaints |= {name: said and str(said) for name, said in state["complaints"].items() if name in names}
        self._said |= set(map(str, state["said"]))
        self._rows, self._largest = int(state["rows"]), float(state["largest"])

    def row(self, records: Sequence[Record]) -> Iterator[str]:
        """Takes the metrics of one logged row and yields the warnings that are due."""
        reduced = {record.tag: record.reduced for record in records}
        for name, constraint in zip(self._stack.names, self._stack.constraints, strict=True):
            prefix = f"constraints/{name}/"
            if any(tag.startswith(prefix) and tag not in reduced for tag in self._tags):
                continue  # measured now and then, and not since the last row
            own = {tag.removeprefix(prefix): value for tag, value in reduced.items() if tag.startswith(prefix)}
            with plugin_code(f"constraints.{name}", "diagnose"):
                complaint = constraint.diagnose(own)
            self._complaints[name] = complaint
            self._ill[name] = self._ill[name] + 1 if complaint else 0
            if complaint and self._ill[name] == _PATIENCE:
                yield from self._once(name, f"{name}: {complaint}")
        loss = abs(reduced.get("critic/loss", 0.0))
        self._rows += 1
        if self._rows <= _FIRST_ROWS:
            self._largest = max(self._largest, loss, 1.0)
        elif loss > _EXPLODED * self._largest:
            yield from self._once(
                "critic/loss",
                f"The critic's loss is {loss:.3g} at step {records[0].step}, {loss / self._largest:.0f} times the "
                "largest of the run's first rows. Lower the learning rates, or constrain the critic more.",
            )

    def _once(self, key: str, text: str) -> Iterator[str]:
        if key not in self._said:
            self._said.add(key)
            yield text
