"""A first look at a long metrics.jsonl: a few rows, found by their steps without reading the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from ganlab.files import open_inside
from ganlab.telemetry import Record, last_row, row_of, tags_in
from ganlab_tensorboard.rows import Thinned

# Shorter files are read whole at once.
LONG = 1 << 19

_POINTS = 24
# Bytes read at either end of the file, within which a whole line should be.
_ENDS = 1 << 15
_TRIES = 8
_ROW = re.compile(rb'^\{"step": (\d{1,18}),[^\n]*\n', re.MULTILINE)


def preview(path: Path, tags: Sequence[str]) -> dict[str, Thinned]:
    """Some rows of metrics, at steps that are the same in every file of equal length and rows.

    Args:
        path: The file.
        tags: The metrics.

    Returns:
        Rows by metric; nothing for a metric that the chosen rows mostly lack.

    Raises:
        RunError: The file leads out of the run's folder or is not a regular file.
        OSError: It cannot be read.
    """
    with open_inside(path.parent, path.name) as file:
        texts = list(_rows(file))
    rows = [row for text in texts if (row := row_of(text, tags))]
    metrics = _thinned(record for _, records in rows for record in records)
    return {tag: metric for tag, metric in metrics.items() if metric.rows > len(texts) / 2}


def newest(path: Path, tags: Sequence[str]) -> dict[str, Thinned]:
    """The last row of a file, as far as it has the metrics; arguments and errors are those of `preview`."""
    row = last_row(path, tags)
    return _thinned(row[1] if row else ())


def tags_at_ends(path: Path) -> set[str]:
    """The metrics in the rows at the beginning and at the end of a file, which are most or all of them."""
    try:
        with open_inside(path.parent, path.name) as file:
            rows = (*_ROW.finditer(_part(file, 0)), *_ROW.finditer(_part(file, _size(file) - _ENDS)))
    except FileNotFoundError:
        return set()
    return {tag for row in rows for tag in tags_in(row[0])}


def _thinned(records: Iterable[Record]) -> dict[str, Thinned]:
    metrics: dict[str, Thinned] = {}
    for record in records:
        metrics.setdefault(record.tag, Thinned()).add(record)
    return metrics


def _rows(file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines of a file, at about equally many places of steps, the first and the last row among them."""
    size = _size(file)
    heads, tails = list(_ROW.finditer(_part(file, 0))), list(_ROW.finditer(_part(file, size - _ENDS)))
    if not heads or not tails:
        return
    first, last = int(heads[0][1]), int(tails[-1][1])
    yield heads[0][0]
    window = max(4096, 4 * len(tails[-1][0]), 4 * len(heads[0][0]))
    done = first
    for point in range(1, _POINTS):
        target = first + (last - first) * point // _POINTS
        text = _at(file, target, first, last, size, window) if target > done else None
        if text is not None and done < (step := _step(text)) < last:
            done = step
            yield text
    if last > first:
        yield tails[-1][0]


def _at(file: IO[bytes], target: int, first: int, last: int, size: int, window: int) -> bytes | None:
    """The first row at a step or after it, by interpolation; None if that does not find it."""
    low, high, low_step, high_step = 0, size, first, last
    for _ in range(_TRIES):
        share = (target - low_step) / max(1, high_step - low_step)
        start = max(0, min(size - window, int(low + share * (high - low)) - window // 2))
        rows = list(_ROW.finditer(_part(file, start, window)))
        if not rows:
            return None
        steps = [int(row[1]) for row in rows]
        if steps[0] < target <= steps[-1]:
            return next(row[0] for row, step in zip(rows, steps, strict=True) if step >= target)
        if steps[0] == target:
            return bytes(rows[0][0])
        if steps[-1] < target:
            low, low_step = start + rows[-1].start(), steps[-1]
        else:
            high, high_step = start + rows[0].start(), steps[0]
    return None


def _part(file: IO[bytes], start: int, length: int = _ENDS) -> bytes:
    """Bytes of a file, without the line that begins before them."""
    file.seek(max(0, start - 1))
    data = file.read(length + 1)
    return data if start <= 0 else data[data.find(b"\n") + 1 :]


def _step(text: bytes) -> int:
    row = _ROW.match(text)
    assert row is not None
    return int(row[1])


def _size(file: IO[bytes]) -> int:
    return file.seek(0, 2)
