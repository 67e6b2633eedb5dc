"""Fuzz target: after a cut, event files hold whole records up to the step and nothing else."""

from __future__ import annotations

import struct
from pathlib import Path

from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from fuzzing.drawing import mutated
from ganlab.telemetry import event_cutting

_AFTER = 2


def _record(data: bytes, length: int | None = None) -> bytes:
    head = struct.pack("<Q", len(data) if length is None else length)
    return head + struct.pack("<I", masked_crc32c(head)) + data + struct.pack("<I", masked_crc32c(data))


_STEPS = [
    _record(Event(step=step, wall_time=1.0, file_version="brain.Event:2").SerializeToString()) for step in range(5)
]


def files() -> st.SearchStrategy[bytes]:
    """The bytes of a file: torn, or with valid checksums and invalid data."""
    forged = st.builds(_record, st.binary(max_size=12), st.one_of(st.none(), st.integers(0, 2**64 - 1)))
    negative = st.integers(-(2**63), 2**63 - 1).map(lambda step: _record(Event(step=step).SerializeToString()))
    records = st.lists(st.one_of(st.sampled_from(_STEPS), forged, negative), max_size=6).map(b"".join)
    return st.one_of(records, mutated([b"".join(_STEPS)]), st.binary(max_size=40))


def check(data: bytes, folder: Path) -> None:
    """Cuts a file."""
    path = folder / "events.out.tfevents.1.host.1.0"
    path.write_bytes(data)
    event_cutting.cut(folder, after=_AFTER)
    kept = path.read_bytes() if path.exists() else b""
    at = 0
    while at < len(kept):
        (length,) = struct.unpack("<Q", kept[at : at + 8])
        event = Event.FromString(kept[at + 12 : at + 12 + length])
        assert event.step <= _AFTER
        assert kept[at : at + 16 + length] in data
        at += 16 + length
    assert at == len(kept)
    # The record that the cut made the last has its data checked only the second time.
    event_cutting.cut(folder, after=_AFTER)
    assert kept.startswith(path.read_bytes() if path.exists() else b"")
    assert all(other == path or other.name.startswith("damaged-") for other in folder.iterdir())
