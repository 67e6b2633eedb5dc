"""Cuts TensorBoard's event files back to a step, so that a resumed run has no step twice.

An event file is a sequence of TFRecords: eight bytes of length, four of their checksum, the data, four of its
checksum. A process that was killed may have torn the last one, a loss of power may have left zeros in place of the last
few; a bad disk may have changed any. TensorBoard stops reading at the first wrong checksum, so unreadable records are
cut out, and the events after them stay.

A purge step alone (`TensorBoardWriter`) would not do: TensorBoard's data server, its default reader, ignores it, and
every reader keeps the first hyperparameters and the first end of a run that it reads.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.plugins.hparams import metadata as hparams_metadata

from ganlab.errors import RunError
from ganlab.lazy import tensorflow as tf
from ganlab.support.atomic import replacing
from ganlab.support.durable import sync
from ganlab.support.paths import open_inside
from ganlab.support.terminal import line
from ganlab.telemetry.event_file import PATTERN

# Bytes of a record before its data, and after.
_HEAD, _FOOT = 12, 4
# Bytes that are searched at a time for the next record, and that are copied at a time.
_WINDOW = 1 << 20
# No record of a run comes near this; one that claims more is not read into memory.
_LONGEST = 512 << 20
# The damage of a kill or a bad disk is far less. Bytes that are searched for the next record take longer than others,
# and places that look like the head of one longer still.
_MOST_DAMAGED, _SEARCHED, _LIKELY_COST = 512 << 20, 16, 2048
# Eight bytes that could be the length of a record: not zero, as in a hole, and less than 4 GiB.
_LIKELY = re.compile(rb"(?=(?!\0{4}).{4}\0{4})", re.DOTALL)


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
    remaining = Cut()
    for path in sorted(directory.glob(PATTERN)):
        contents = _contents(path, after, without)
        if contents.damaged and after >= 0:
            remaining.complaints.append(_complaint(path, contents, _put_aside(path)))
        remaining.tags |= contents.tags
        if not contents.kept:
            path.unlink()
        elif sum(end - start for start, end in contents.kept) != path.stat().st_size:
            _cut(path, contents.kept)  # most files of a long run stay as they are, and are not copied
    return remaining


def _complaint(path: Path, contents: _Contents, aside: Path) -> str:
    start, end = contents.damaged[0]
    more = f", and {len(contents.damaged) - 1} more parts" if len(contents.damaged) > 1 else ""
    return (
        f"{path} is damaged: bytes {start} to {end} are not an event that was written{more}. They are left out; "
        f"{contents.after} whole events after them are read. The damaged file is kept as {aside.name}."
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
    contents = _Contents()
    for start, end, event in _records(path):
        if event is None:
            _append(contents.damaged, start, end)
            continue
        contents.after += bool(contents.damaged)
        tags = {value.tag for value in event.summary.value}
        if event.step <= after and tags.isdisjoint({hparams_metadata.SESSION_END_INFO_TAG, *without}):
            _append(contents.kept, start, end)
            contents.tags |= tags
    if contents.damaged and contents.damaged[-1][1] == path.stat().st_size and _ends_in_zeros(path):
        contents.damaged.pop()
    return contents


def _ends_in_zeros(path: Path) -> bool:
    """Whether a file ends as a loss of power leaves one: what no fsync made safe reads as zeros."""
    with open_inside(path.parent, path.name) as file:
        file.seek(-_FOOT, 2)
        return file.read() == b"\0" * _FOOT


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

    size, start, room = path.stat().st_size, 0, _MOST_DAMAGED
    reader = tf_record.tf_record_random_reader(str(path))
    with open_inside(path.parent, path.name) as file:
        while start + _HEAD <= size:
            file.seek(start)
            length = _length(file.read(_HEAD))
            if length is None or length > _LONGEST:
                event = None
                end, room = _next(file, start + 1, size, room)
            else:
                end = start + _HEAD + length + _FOOT
                if end > size:
                    return
                event = _event(reader, start)
                room -= end - start if event is None else 0
            if room < 0:
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


def _next(file: IO[bytes], start: int, size: int, room: int) -> tuple[int, int]:
    """Where the next record begins, or the file's end; and the rest of `room`, below 0 if the search took too long."""
    while start + _HEAD <= size and room >= 0:
        file.seek(start)
        window = file.read(_WINDOW + _HEAD - 1)
        for match in _LIKELY.finditer(window, 0, len(window) - 4):
            place, room = match.start(), room - _LIKELY_COST
            length = _length(window[place : place + _HEAD])
            if length is not None and start + place + _HEAD + length + _FOOT <= size:
                return start + place, room - _SEARCHED * place
            if room < 0:
                break
        start, room = start + _WINDOW, room - _SEARCHED * _WINDOW
    return size, room
