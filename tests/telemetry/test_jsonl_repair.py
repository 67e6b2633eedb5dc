"""Damage inside metrics.jsonl is reported, and only the damaged lines are lost."""

import json

import pytest

from ganlab.telemetry import JsonLinesWriter, Record
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
