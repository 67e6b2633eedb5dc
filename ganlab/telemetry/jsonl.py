"""metrics.jsonl: every logged step as one line of JSON.

A line is `{"step": 10, "metrics": {"critic/loss": {"reduced": 0.5, "replicas": [0.4, 0.6]}}}`; `replicas` is empty
where a metric has none. JSON has no word for a non-finite float, so these are the strings `"NaN"`, `"Infinity"` and
`"-Infinity"`, which `float()` understands.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.telemetry.records import Record

# Lines wait for each other up to this size, so that logging every step is not a system call every step.
_PENDING_BYTES = 1 << 16

# Bytes of a line, which is in memory whole: those of thousands of replicas are a hundredth of it.
_LONGEST = 1 << 26

# What `to_json` writes in place of floats that JSON has no word for.
NON_FINITE = ("NaN", "Infinity", "-Infinity")


class JsonLinesWriter:
    """Writes metrics.jsonl. Readers only ever see whole lines, but for what a crash of the machine tears."""

    def __init__(self, path: Path, *, truncate_after: int | None = None) -> None:
        """Opens the file for appending, after mending what an earlier writer left.

        Args:
            path: The file, made where there is none.
            truncate_after: The step that a resumed run starts from: later lines are dropped, as they will be written
                again. None keeps every whole line.

        Raises:
            RunError: The file has a line that is no metrics line.
        """
        mend(path, truncate_after=truncate_after)
        self._file = path.open("ab", buffering=0)
        self._pending = bytearray()

    def scalars(self, records: Sequence[Record]) -> None:
        """Takes the metrics of one step."""
        if not records:
            return
        metrics = {record.tag: _entry(record) for record in records}
        line = {"step": int(records[0].step), "metrics": metrics}
        self._pending += json.dumps(line, separators=(", ", ": "), allow_nan=False).encode() + b"\n"
        if len(self._pending) >= _PENDING_BYTES:
            self.flush()

    def image(self, step: int, tag: str, png: bytes) -> None:
        """Pictures are not for this file."""

    def histogram(self, step: int, tag: str, values: Any) -> None:
        """Histograms are not for this file."""

    def text(self, step: int, tag: str, markdown: str) -> None:
        """Texts are not for this file."""

    def flush(self) -> None:
        """Puts the lines so far on disk."""
        while self._pending:  # a raw write may take less than it is given
            written = self._file.write(self._pending)
            del self._pending[:written]
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Flushes, waits until the lines are on disk, and closes."""
        if not self._file.closed:
            self.flush()
            self._file.close()


def read_metrics(path: Path) -> Iterator[Record]:
    """Reads metrics.jsonl a line at a time, also while a run is writing it.

    Args:
        path: The file; where there is none, there are no records.

    Yields:
        The records, in the order of the file. A last line that is not finished is left out.

    Raises:
        RunError: A line is no metrics line; the message has its number.
    """
    for _, _, records in _lines(path):
        yield from records


def mend(path: Path, *, truncate_after: int | None = None) -> None:
    """Drops a torn last line and, if asked, every line after a step. Either all of it happens or nothing.

    Args:
        path: The file; nothing happens where there is none.
        truncate_after: The last step to keep; None keeps all.

    Raises:
        RunError: The file has a line that is no metrics line.
    """
    if not path.exists():
        return
    keep = 0
    for end, step, _ in _lines(path):
        if truncate_after is not None and step > truncate_after:
            break
        keep = end
    if keep == path.stat().st_size:
        return
    part = path.with_name(path.name + ".tmp")
    with path.open("rb") as source, part.open("wb") as target:
        while keep:
            chunk = source.read(min(keep, 1 << 20))
            target.write(chunk)
            keep -= len(chunk)
        target.flush()
        os.fsync(target.fileno())
    part.replace(path)


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


def _lines(path: Path) -> Iterator[tuple[int, int, list[Record]]]:
    """Each whole line: the byte where it ends, its step, its metrics."""
    if not path.exists():
        return
    end = 0
    with path.open("rb") as file:
        for number, text in enumerate(iter(lambda: file.readline(_LONGEST + 1), b""), start=1):
            if not text.endswith(b"\n") and len(text) <= _LONGEST:
                return
            end += len(text)
            try:
                yield end, *_parse(text)
            except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
                shown = text[:60].decode(errors="replace").strip()
                raise RunError(
                    f'{path}, line {number}: {shown!r} is not a line of metrics, {{"step": .., "metrics": {{..}}}}. '
                    "Something else wrote to this file; remove the line to read the rest."
                ) from None


def _parse(text: bytes) -> tuple[int, list[Record]]:
    line = json.loads(text)
    step = line["step"]
    if not _is_number(step, int) or not 0 <= step < 2**63 or len(text) > _LONGEST:
        raise ValueError
    return step, [
        Record(step, tag, _value(entry["reduced"]), tuple(_value(value) for value in entry.get("replicas", ())))
        for tag, entry in line["metrics"].items()
    ]


def _value(value: Any) -> float:
    if _is_number(value, (int, float)) or value in NON_FINITE:
        return float(value)
    raise TypeError


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
