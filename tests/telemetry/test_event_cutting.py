"""Event files are cut back to a step; damage inside them is reported, and only the damaged events are lost."""

import time

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from ganlab.telemetry import event_cutting
from ganlab.telemetry.event_file import PATTERN, EventFile

STEPS = list(range(10, 210, 10))


def event(step):
    values = [Summary.Value(tag=f"a/{i}", simple_value=step + i) for i in range(5)]
    return Event(step=step, wall_time=1.0, summary=Summary(value=values))


@pytest.fixture
def file(tmp_path):
    made = EventFile(tmp_path)
    for step in STEPS:
        made.add(event(step))
    made.close()
    (path,) = tmp_path.glob(PATTERN)
    return path


def seen(folder):
    return [scalar.step for scalar in EventAccumulator(str(folder)).Reload().Scalars("a/0")]


RECORD = 12 + len(event(50).SerializeToString()) + 4


def turn(path, step, byte):
    """Flips a bit of a step's record; bytes below 0 count from its end."""
    data = bytearray(path.read_bytes())
    mark = event(step).SerializeToString()
    start = data.index(mark) - 12
    data[start + byte if byte >= 0 else start + 12 + len(mark) + 4 + byte] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("byte", [0, 5, 9, 12, 13, 30, 60, -20, -3], ids=lambda byte: f"byte {byte}")
@pytest.mark.parametrize("step", [50, 200])
def test_flipped_bit_in_an_event_file_loses_one_event(file, step, byte):
    turn(file, step, byte)
    damaged = file.read_bytes()
    (said,) = event_cutting.cut(file.parent, after=200).complaints
    assert seen(file.parent) == [s for s in STEPS if s != step]
    start = damaged.index(event(step - 10).SerializeToString()) + len(event(step - 10).SerializeToString()) + 4
    assert f"{file} is damaged: bytes {start} to " in said
    assert f"{(200 - step) // 10} whole events after them are read" in said
    (aside,) = file.parent.glob("damaged-*")
    assert aside.name in said
    assert "tfevents" not in aside.name
    assert aside.read_bytes() == damaged
    assert event_cutting.cut(file.parent, after=200).complaints == []


def test_files_of_earlier_steps_stay_as_they_are_and_those_of_later_ones_go(tmp_path):
    file = EventFile(tmp_path, full_bytes=10 * RECORD)
    for step in range(100, 130):
        file.add(event(step))
    file.close()
    first, _, third = sorted(tmp_path.glob(PATTERN))
    before = first.stat().st_ino, first.read_bytes()
    event_cutting.cut(tmp_path, after=114)
    assert (first.stat().st_ino, first.read_bytes()) == before
    assert seen(tmp_path) == list(range(100, 115))
    assert len(third.read_bytes()) < 60  # the version alone
    event_cutting.cut(tmp_path, after=-1)
    assert sorted(tmp_path.glob(PATTERN)) == []


def test_damage_of_all_kinds_in_one_file(file):
    turn(file, 30, 0)
    turn(file, 40, 30)
    turn(file, 90, 9)
    data = file.read_bytes()
    place = data.index(event(150).SerializeToString()) - 12
    file.write_bytes(data[:place] + b"\0" * 3000 + bytes(range(256)) * 20 + data[place:])
    (said,) = event_cutting.cut(file.parent, after=180).complaints
    assert seen(file.parent) == [step for step in STEPS if step not in (30, 40, 90) and step <= 180]
    assert "and 2 more parts" in said


def test_an_event_file_that_a_kill_tore_is_not_damaged(file):
    whole = file.read_bytes()
    for length in (3, 12, 40, RECORD - 1):
        file.write_bytes(whole[: len(whole) - RECORD + length])
        assert event_cutting.cut(file.parent, after=200).complaints == []
        assert seen(file.parent) == STEPS[:-1]
    for zeros in (1, 40, 3 * RECORD):  # so may a loss of power leave the end
        file.write_bytes(whole[: -2 * RECORD] + whole[-2 * RECORD : -2 * RECORD + 7] + bytes(RECORD + zeros))
        assert event_cutting.cut(file.parent, after=200).complaints == []
        assert seen(file.parent) == STEPS[:-2]


def test_a_search_for_the_next_event_crosses_windows(file, monkeypatch):
    monkeypatch.setattr(event_cutting, "_WINDOW", 64)
    turn(file, 50, 0)
    assert len(event_cutting.cut(file.parent, after=200).complaints) == 1
    assert seen(file.parent) == [step for step in STEPS if step != 50]


def test_huge_record_is_cut_within_seconds(tmp_path):
    file = EventFile(tmp_path)
    huge = Event(step=1, wall_time=1.0)
    huge.summary.value.add(tag="a").image.encoded_image_string = bytes(32 << 20)
    file.add(huge)
    file.close()
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    began = time.process_time()
    event_cutting.cut(tmp_path, after=1)
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-5] + b"x" + whole[-4:])  # torn in its data
    event_cutting.cut(tmp_path, after=1)
    assert len(path.read_bytes()) < 100
    assert time.process_time() - began < 10  # TensorBoard's checksum takes 30 s and more each time


def test_record_that_claims_more_than_a_run_writes_is_not_read(tmp_path, monkeypatch):
    file = EventFile(tmp_path)
    file.add(Event(step=1, wall_time=1.0, file_version="x" * 5000))
    file.close()
    (path,) = tmp_path.iterdir()
    monkeypatch.setattr(event_cutting, "_LONGEST", 4000)
    event_cutting.cut(tmp_path, after=1)
    assert 0 < path.stat().st_size < 100
