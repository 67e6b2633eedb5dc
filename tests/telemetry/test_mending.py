"""Damage inside a run's files is reported, and only the damaged parts are lost."""

import json
import time

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from ganlab.telemetry import JsonLinesWriter, Record, event_cutting
from ganlab.telemetry.event_file import PATTERN, EventFile
from ganlab.telemetry.jsonl_repair import repair

STEPS = list(range(10, 210, 10))


@pytest.fixture
def metrics(tmp_path):
    writer = JsonLinesWriter(tmp_path / "metrics.jsonl")
    for step in STEPS:
        writer.scalars([Record(step, "critic/loss", step / 2, (0.25, 0.75))])
    writer.close()
    assert writer.rows == len(STEPS)
    return tmp_path / "metrics.jsonl"


def steps(path):
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def change(path, before, after):
    data = path.read_bytes()
    assert data.count(before) == 1
    path.write_bytes(data.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (b'"step": 30,', b'"step": 930,', "line 3 has the step 930, which is out of order"),
        (b'"step": 30,', b'"step": 180,', "line 3 has the step 180, which is out of order"),
        (b'"step": 150,', b'"step": 10,', "line 15 has the step 10, which is out of order"),
        (b'"step": 30,', b'"step": 3x,', "line 3, "),
        (b'{"step": 30,', b'\xff"step": 30,', "line 3, "),
        (b'"reduced": 15.0', b'"reduced": 15.', "line 3, "),
        (b'"step": 10,', b'"step": 90,', "line 1 has the step 90"),
        (b'}}}\n{"step": 40,', b'}}}\x0b{"step": 40,', "line 3, "),
    ],
)
@pytest.mark.parametrize("after_step", [None, 160])
def test_damaged_line_is_reported_and_only_it_is_lost(metrics, before, after, said, after_step):
    change(metrics, before, after)
    damaged = metrics.read_bytes().splitlines(keepends=True)
    writer = JsonLinesWriter(metrics, truncate_after=after_step)
    last = after_step or STEPS[-1]
    left = steps(metrics)
    lost = sorted(set(range(10, last + 1, 10)) - set(left))
    assert left == sorted(left)
    assert len(lost) <= 2, "of two lines that have become one, both"
    assert f"{metrics} is damaged: " in writer.complaint
    assert said in writer.complaint
    assert f"{len(left)} rows stay" in writer.complaint
    # Nothing is thrown away.
    assert (metrics.parent / "damaged-metrics.jsonl").read_bytes() in damaged
    writer.close()
    assert JsonLinesWriter(metrics).complaint == ""


def test_many_damaged_lines_are_counted(metrics):
    lines = metrics.read_text().splitlines(keepends=True)
    lines[2:12:2] = ["hello\n"] * 5
    metrics.write_text("".join(lines))
    found = repair(metrics, truncate_after=200, expected=20)
    assert found.rows == 15
    assert "line 3, 'hello', is not a line of metrics; line 5" in found.complaint
    assert "and 2 more lines. 5 lines are moved to damaged-metrics.jsonl." in found.complaint
    assert found.complaint.endswith("15 rows stay; 5 of the 20 that were written are missing.")


def test_wrong_step_in_the_last_row_is_noticed_by_the_row_count(metrics):
    change(metrics, b'"step": 200,', b'"step": 900,')
    found = repair(metrics, truncate_after=200, expected=20)
    assert found.rows == 19
    assert "it lacks rows. 1 line is moved to damaged-metrics.jsonl. 19 rows stay; 1 of the 20" in found.complaint


def test_missing_rows_are_reported(metrics):
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:5]))
    assert "5 rows stay; 15 of the 20 that were written are missing" in repair(metrics, expected=20).complaint
    metrics.unlink()
    assert "0 rows stay; 20 of the 20 that were written are missing" in repair(metrics, expected=20).complaint


@pytest.mark.parametrize("tail", [b"", b'{"step": 210, "metr', b"hello"])
def test_torn_last_line_after_a_kill_is_not_damage(metrics, tail):
    metrics.write_bytes(metrics.read_bytes() + tail)
    assert repair(metrics, truncate_after=160, expected=16).complaint == ""
    assert steps(metrics) == STEPS[:16]
    assert repair(metrics, truncate_after=-1).complaint == ""
    assert steps(metrics) == []
    assert not (metrics.parent / "damaged-metrics.jsonl").exists()


# Event files.


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
