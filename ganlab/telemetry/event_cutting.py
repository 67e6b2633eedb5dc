"""Cuts TensorBoard's event files back to a step, so that a resumed run has no step twice.

An event file is a sequence of TFRecords: eight bytes of length, four of their checksum, the data, four of its
checksum. A process that was killed may have torn the last one; a bad disk may have changed any. TensorBoard stops
reading at the first wrong checksum, so unreadable records are cut out, and the events after them stay.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams import metadata as hparams_metadata

from ganlab.errors import RunError
from ganlab.lazy import tensorflow as tf
from ganlab.support.atomic import replacing
from ganlab.support.durable import sync
from ganlab.support.paths import open_inside
from ganlab.support.terminal import line
from ganlab.telemetry.checksum import masked_crc32c, masked_crc32c_of_rows
from ganlab.telemetry.event_file import PATTERN

# Bytes of a record before its data, and after.
_HEAD, _FOOT = 12, 4
# Bytes that are searched at a time for the next record, and that are copied at a time.
_WINDOW = 1 << 20
# No record of a run comes near this; one that claims more is not read into memory.
_LONGEST = 512 << 20
# The damage of a kill or a bad disk is far less. Bytes that are searched for the next record take longer than others.
_MOST_DAMAGED, _SEARCHED = 512 << 20, 16


@dataclass
class _Contents:
    """The contents of an event file, as the bytes where each part begins and ends.

    Attributes:
        kept: Events that stay.
        tags: The tags of the values in those.
        damaged: Parts that are not events.
        after: The number of whole events after the first damage.
    """

    kept: list[tuple[int, int]] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    damaged: list[tuple[int, int]] = field(default_factory=list)
    after: int = 0


@dataclass
class Cut:
    """The remaining contents of a folder's event files.

    Attributes:
        tags: The tags of the values in them.
        complaints: A sentence for each file with damage that a kill does not explain.
    """

    tags: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)


def cut(directory: Path, *, after: int, without: Collection[str] = ()) -> Cut:
    """Drops every event of a later step, the record of the run's end, and data that a kill or a bad disk damaged.

    A copy of a damaged file is kept under a name that TensorBoard does not read.

    Args:
        directory: The folder with the event files; folders below it are not searched.
        after: The last step to keep; -1 for none at all.
        without: Tags whose events are dropped at any step: for some tags TensorBoard keeps the first that it reads.

    Raises:
        OSError: A file cannot be read or replaced.
        RunError: Too much of a file is not events.
    """
    left = Cut()
    for path in sorted(directory.glob(PATTERN)):
        found = _contents(path, after, without)
        if found.damaged and after >= 0:
            left.complaints.append(_complaint(path, found, _put_aside(path)))
        left.tags |= found.tags
        if not found.kept:
            path.unlink()
        elif sum(end - start for start, end in found.kept) != path.stat().st_size:
            _cut(path, found.kept)  # most files of a long run stay as they are, and are not copied
    return left


def _complaint(path: Path, found: _Contents, aside: Path) -> str:
    start, end = found.damaged[0]
    more = f", and {len(found.damaged) - 1} more parts" if len(found.damaged) > 1 else ""
    return (
        f"{path} is damaged: bytes {start} to {end} are not an event that was written{more}. They are left out; "
        f"{found.after} whole events after them are read. The damaged file is kept as {aside.name}."
    )


def _put_aside(path: Path) -> Path:
    # TensorBoard reads every file with "tfevents" in its name.
    aside = path.with_name(f"damaged-{path.name.replace('tfevents', 'events')}")
    shutil.copyfile(path, aside)
    sync(aside)
    return aside


def _cut(path: Path, kept: list[tuple[int, int]]) -> None:
    with open_inside(path.parent, path.name) as source, replacing(path) as target:
        for start, end in kept:
            source.seek(start)
            while start < end:
                data = source.read(min(end - start, _WINDOW))
                target.write(data)
                start += len(data)


def _contents(path: Path, after: int, without: Collection[str]) -> _Contents:
    found = _Contents()
    for start, end, event in _records(path):
        if event is None:
            _append(found.damaged, start, end)
            continue
        found.after += bool(found.damaged)
        tags = {value.tag for value in event.summary.value}
        if event.step <= after and tags.isdisjoint({hparams_metadata.SESSION_END_INFO_TAG, *without}):
            _append(found.kept, start, end)
            found.tags |= tags
    return found


def _append(spans: list[tuple[int, int]], start: int, end: int) -> None:
    if spans and spans[-1][1] == start:
        spans[-1] = (spans[-1][0], end)
    else:
        spans.append((start, end))


def _records(path: Path) -> Iterator[tuple[int, int, Event | None]]:
    """Yields where each record begins and ends, with its event, or None for bytes that are not an event.

    An incomplete last record is left out: it was never written completely.
    """
    from tensorflow.python.lib.io import tf_record  # the only reader of TensorFlow's that can start in the midst

    size, start, damaged = path.stat().st_size, 0, 0
    reader = tf_record.tf_record_random_reader(str(path))
    with open_inside(path.parent, path.name) as file:
        while start + _HEAD <= size:
            file.seek(start)
            length = _length(file.read(_HEAD))
            if length is None or length > _LONGEST:
                end = _next(file, start + 1, min(size, start + _MOST_DAMAGED // _SEARCHED + _WINDOW))
                event, cost = None, _SEARCHED * (end - start)
            else:
                end = start + _HEAD + length + _FOOT
                if end > size:
                    return
                event, cost = _event(reader, start), end - start
            damaged += cost if event is None else 0
            if damaged > _MOST_DAMAGED:
                raise RunError(
                    f"{line(path)} holds more than {_MOST_DAMAGED // _SEARCHED >> 20} MiB that are not events: ganlab "
                    "did not write them. Restore the file, or remove it and lose its curves in TensorBoard."
                )
            yield start, end, event
            start = end


def _event(reader: Any, start: int) -> Event | None:
    try:
        return Event.FromString(reader.read(start)[0])
    except (DecodeError, IndexError, tf.errors.DataLossError):
        return None


def _length(head: bytes) -> int | None:
    """The length that the head of a record states, or None if these bytes are not the head of a record."""
    length, masked = struct.unpack("<QI", head)
    return int(length) if masked == masked_crc32c(head[:8]) else None


def _next(file: Any, start: int, size: int) -> int:
    """Where the next record begins; the file's end if there is none."""
    while start + _HEAD <= size:
        file.seek(start)
        window = np.frombuffer(file.read(_WINDOW + _HEAD - 1), np.uint8)
        places = np.lib.stride_tricks.sliding_window_view(window, _HEAD)
        lengths = _numbers(places[:, :4])
        # No event is empty, as all of a hole would be.
        likely = np.flatnonzero((_numbers(places[:, 4:8]) == 0) & (lengths > 0) & (lengths <= min(size, _LONGEST)))
        sound = likely[masked_crc32c_of_rows(places[likely, :8]) == _numbers(places[likely, 8:])]
        for place in sound:
            if start + int(place) + _HEAD + int(lengths[place]) + _FOOT <= size:
                return start + int(place)
        start += len(places)
    return size


def _numbers(data: np.ndarray) -> np.ndarray:
    """Little-endian numbers, uint32 `(n,)`, of uint8 `(n, 4)`."""
    return np.ascontiguousarray(data).view("<u4")[:, 0]
