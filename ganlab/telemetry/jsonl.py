"""metrics.jsonl: every logged step as one line of JSON.

A line is `{"step": 10, "metrics": {"critic/loss": {"reduced": 0.5, "replicas": [0.4, 0.6]}}}`; `replicas` is empty
where a metric has none. JSON has no word for a non-finite float, so these are the strings `"NaN"`, `"Infinity"` and
`"-Infinity"`, which `float()` understands.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.interfaces.record import Record, Writer
from ganlab.support.terminal import line
from ganlab.telemetry.jsonl_lines import lines, rows, tags_in
from ganlab.telemetry.jsonl_repair import repair

# Lines are buffered up to this size, so that logging every step does not take a system call every step.
_PENDING_BYTES = 1 << 16


class JsonLinesWriter(Writer):
    """Writes metrics to metrics.jsonl. Readers only ever see whole lines, unless a crash of the machine tears one.

    Attributes:
        rows: How many rows the file has, including those that wait to be written or are held.
        complaint: A sentence about damage in the file that an earlier writer left; empty if there was none.
    """

    def __init__(self, path: Path, *, truncate_after: int | None = None, expected: int | None = None) -> None:
        """Opens the file for appending, after repairing what an earlier writer left.

        Args:
            path: The file; made if it does not exist.
            truncate_after: The step that a resumed run starts from: later lines are dropped, because they will be
                written again. None keeps every whole line.
            expected: How many rows there were up to that step; None if nobody counted them.
        """
        repaired = repair(path, truncate_after=truncate_after, expected=expected)
        self.rows, self.complaint = repaired.rows, repaired.complaint
        self._file = path.open("ab", buffering=0)
        self._pending = bytearray()
        self._held: list[dict[str, Any]] | None = None

    @property
    def held(self) -> int:
        """How many rows are held."""
        return len(self._held or ())

    def hold(self) -> None:
        """Holds the next rows until `release`, because one of them is incomplete."""
        self._held = []

    def release(self, late: Sequence[Record] = ()) -> None:
        """Writes the rows that are held.

        Args:
            late: Metrics of the step at which rows began to be held; they come before its diagnostics.
        """
        held, self._held = self._held or [], None
        if late:
            step = int(late[0].step)
            if not held or held[0]["step"] != step:
                held.insert(0, {"step": step, "metrics": {}})
                self.rows += 1
            metrics = held[0]["metrics"]
            last = {tag: entry for tag, entry in metrics.items() if tag.startswith("diagnostics/")}
            first = {tag: entry for tag, entry in metrics.items() if tag not in last}
            held[0]["metrics"] = {**first, **{record.tag: _entry(record) for record in late}, **last}
        for row in held:
            self._write(row)

    def scalars(self, records: Sequence[Record]) -> None:
        """Takes the metrics of one step."""
        if not records:
            return
        metrics = {record.tag: _entry(record) for record in records}
        row = {"step": int(records[0].step), "metrics": metrics}
        self.rows += 1
        if self._held is not None:
            self._held.append(row)
        else:
            self._write(row)

    def _write(self, row: dict[str, Any]) -> None:
        self._pending += json.dumps(row, separators=(", ", ": "), allow_nan=False).encode() + b"\n"
        if len(self._pending) >= _PENDING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes all lines so far to disk."""
        while self._pending:  # a raw write may take less than it is given
            written = self._file.write(self._pending)
            del self._pending[:written]
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Flushes, waits until the lines are on disk, and closes."""
        if not self._file.closed:
            self.release()
            self.flush()
            self._file.close()


def read_metrics(path: Path, tags: Collection[str] | None = None) -> Iterator[Record]:
    """Reads metrics.jsonl a line at a time, also while a run is writing it.

    Args:
        path: The file; without a file there are no records.
        tags: The metrics to read, which is quicker than reading all.

    Yields:
        The records, in the order of the file. An unfinished last line is left out.

    Raises:
        RunError: A line is not a line of metrics; the message has its number.
    """
    for row, step, records in rows(path, tags):
        if step is None:
            raise RunError(
                f"{line(path)}, line {row.number}: {row.shown} is not a line of metrics, "
                '{"step": .., "metrics": {..}}. '
                "The file is damaged, or something else wrote to it. Remove the line to read the rest."
            )
        yield from records


def logged_tags(path: Path) -> set[str]:
    """The metrics that a metrics.jsonl has, up to the first line that cannot be one of metrics."""
    names: set[str] = set()
    with contextlib.suppress(RunError):
        for row in lines(path):
            tags = tags_in(row.text)
            if not tags or b"\0" in row.text:
                break
            names |= tags
    return names


def to_json(value: Any) -> Any:
    """The value with every non-finite float as a string, and numpy's numbers as Python's, for `json.dumps`."""
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # a number or an array of numpy
        return to_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _entry(record: Record) -> dict[str, Any]:
    replicas = [to_json(float(value)) for value in record.replicas]
    return {"reduced": to_json(float(record.reduced)), "replicas": replicas}
