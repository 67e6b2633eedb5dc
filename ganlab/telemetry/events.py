"""Cuts TensorBoard's event files back to a step, so that a resumed run has no step twice.

An event file is a sequence of TFRecords: eight bytes of length, four of their checksum, the data, four of its
checksum. A process that was killed may have torn the last one.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.plugins.hparams import metadata as hparams_metadata

from ganlab.telemetry.event_file import PATTERN


def cut(directory: Path, *, after: int) -> None:
    """Drops every event of a later step, the record of the run's end, and what a kill or a bad disk tore.

    Args:
        directory: Whose event files; none in folders below it.
        after: The last step to keep; -1 for none at all.

    Raises:
        OSError: A file cannot be read, or not be replaced.
    """
    for path in sorted(directory.glob(PATTERN)):
        kept = sum(len(record) for record in _kept(path, after))
        if not kept:
            path.unlink()
        elif kept != path.stat().st_size:  # most files of a long run stay as they are, and are not copied
            _cut(path, after)


def _cut(path: Path, after: int) -> None:
    part = path.with_name(f".{path.name}.tmp")
    try:
        with part.open("wb") as target:
            for record in _kept(path, after):
                target.write(record)
            target.flush()
            os.fsync(target.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _kept(path: Path, after: int) -> Iterator[bytes]:
    return (record for record, event in _records(path) if _stays(event, after))


def _stays(event: Event, after: int) -> bool:
    tags = [value.tag for value in event.summary.value]
    return event.step <= after and hparams_metadata.SESSION_END_INFO_TAG not in tags


def _records(path: Path) -> Iterator[tuple[bytes, Event]]:
    """Each whole record with its event, up to the first that is torn.

    Data's checksum is computed in Python, a microsecond a byte: only the last record's is, which a kill may have torn.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        while True:
            head = file.read(12)
            if len(head) < 12 or struct.unpack("<I", head[8:])[0] != masked_crc32c(head[:8]):
                return
            (length,) = struct.unpack("<Q", head[:8])
            if length > size:
                return
            data, foot = file.read(length), file.read(4)
            if len(foot) < 4 or (file.tell() == size and struct.unpack("<I", foot)[0] != masked_crc32c(data)):
                return
            try:
                event = Event.FromString(data)
            except DecodeError:
                return
            yield head + data + foot, event
