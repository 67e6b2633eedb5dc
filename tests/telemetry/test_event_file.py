"""Event files come in pieces, keep the order in which they were written, and raise an OSError on failures."""

import time

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from ganlab.telemetry.event_file import PATTERN, EventFile


def event(step, value=1.0):
    return Event(step=step, wall_time=1.0, summary=Summary(value=[Summary.Value(tag="a", simple_value=value)]))


VERSION = Event(wall_time=1.0, file_version="brain.Event:2")
# Room for ten events after the record that each file begins with.
TEN = len(VERSION.SerializeToString()) + 10 * len(event(100).SerializeToString())


def files(folder):
    return sorted(folder.glob(PATTERN))


def steps(folder):
    return [scalar.step for scalar in EventAccumulator(str(folder)).Reload().Scalars("a")]


def test_files_keep_their_order_when_the_clock_is_set_back(tmp_path, monkeypatch):
    for now, step in ((5000.0, 1), (3000.0, 2), (3000.0, 3)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        file = EventFile(tmp_path)
        file.add(event(step))
        file.close()
    assert [path.name.split(".")[3] for path in files(tmp_path)] == ["0000005000", "0000005001", "0000005002"]
    assert steps(tmp_path) == [1, 2, 3]


def test_unwritable_folder_raises_oserror(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        EventFile(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    file = EventFile(tmp_path / "folder")
    file._path.unlink()
    with pytest.raises(FileNotFoundError):
        file.flush()


def test_failure_to_begin_the_next_file_raises_oserror_every_time(tmp_path, monkeypatch):
    file = EventFile(tmp_path, full_bytes=TEN)
    for step in range(90, 100):
        file.add(event(step))

    def full(path):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.io, "TFRecordWriter", full)
    with pytest.raises(OSError, match="No space left"):
        file.add(event(100))
    for use in (lambda: file.add(event(100)), file.flush):
        with pytest.raises(OSError, match="is not open"):
            use()
    file.close()
    file.close()
    assert steps(tmp_path) == list(range(90, 100))
