"""Only what was appended to metrics.jsonl is read, and nothing in a file can stop it."""

import os
import time

import pytest
from synthetic import row

from ganlab.errors import RunError
from ganlab.telemetry import MetricsFollower, jsonl_lines, last_row


class Values(list):
    def add(self, record):
        self.append(record.reduced)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def read(file, *tags):
    assert file.advance(tags)
    return {tag: file.metrics[tag] for tag in tags}


def test_only_appended_lines_are_read(path, monkeypatch):
    path.write_bytes(row(1, a=0.5) + row(2, a=0.25))
    file = MetricsFollower(path, Values)
    assert read(file, "a") == {"a": [0.5, 0.25]}
    parsed = []
    pick = jsonl_lines.Line.pick
    monkeypatch.setattr(jsonl_lines.Line, "pick", lambda line, tags: parsed.append(line.text) or pick(line, tags))
    with path.open("ab") as end:
        end.write(row(3, a=0.125))
    assert read(file, "a") == {"a": [0.5, 0.25, 0.125]}
    assert parsed == [row(3, a=0.125)]


def test_unfinished_last_line_is_read_when_it_is_whole(path):
    whole = row(2, a=7.0)
    path.write_bytes(row(1, a=1.0) + whole[:20])
    file = MetricsFollower(path, Values)
    assert read(file, "a") == {"a": [1.0]}
    with path.open("ab") as end:
        end.write(whole[20:])
    assert read(file, "a") == {"a": [1.0, 7.0]}
    assert file.damaged == 0


def test_metric_asked_for_later_is_read_from_the_beginning(path):
    path.write_bytes(row(1, a=1.0, b=2.0) + row(2, a=3.0, b=4.0))
    file = MetricsFollower(path, Values)
    read(file, "a")
    with path.open("ab") as end:
        end.write(row(3, a=5.0, b=6.0))
    assert read(file, "b", "a") == {"a": [1.0, 3.0, 5.0], "b": [2.0, 4.0, 6.0]}


def test_file_that_was_cut_and_grew_again_is_read_anew(path):
    path.write_bytes(row(1, a=1.0) + row(2, a=2.0) + row(3, a=3.0))
    file = MetricsFollower(path, Values)
    read(file, "a")
    with path.open("r+b") as same:  # in place, as a resumed run does, and longer than before
        same.truncate(len(row(1, a=1.0)))
        same.seek(0, os.SEEK_END)
        same.write(b"".join(row(step, a=9.0) for step in (2, 3, 4, 5)))
    assert read(file, "a") == {"a": [1.0, 9.0, 9.0, 9.0, 9.0]}


def test_replaced_or_removed_file_is_noticed(path, tmp_path):
    path.write_bytes(row(1, a=1.0))
    file = MetricsFollower(path, Values)
    read(file, "a")
    other = tmp_path / "other"
    other.write_bytes(row(1, a=4.0) + row(2, a=5.0))
    other.replace(path)
    assert read(file, "a") == {"a": [4.0, 5.0]}
    path.unlink()
    assert file.advance(["a"])
    assert file.metrics == {}


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"{}\n",
        b'{"step": -1, "metrics": {"a": {"reduced": 1.0}}}\n',
        b'{"step": 1, "metrics": {"a": {"reduced": "<script>"}}}\n',
        b'{"step": 1e999, "metrics": {"a": {"reduced": 1}}}\n',
        b"[" * 100_000 + b"\n",
        b"\x00\xff\xfe\n",
        b"\n",
    ],
)
def test_damaged_line_is_counted_once_and_the_others_are_read(path, line):
    path.write_bytes(row(1, a=1.0, b=1.0) + line + row(2, a=2.0, b=2.0))
    file = MetricsFollower(path, Values)
    assert read(file, "a") == {"a": [1.0, 2.0]}
    assert read(file, "b") == {"b": [1.0, 2.0]}
    assert file.damaged == 1


def test_overlong_line_is_skipped_without_being_in_memory(path, monkeypatch):
    monkeypatch.setattr(jsonl_lines, "LONGEST", 1000)
    path.write_bytes(row(1, a=1.0) + b'{"step": 1, "x": "' + b"y" * 5000 + b'"}\n' + row(2, a=2.0))
    file = MetricsFollower(path, Values)
    assert read(file, "a") == {"a": [1.0, 2.0]}
    assert file.damaged == 1


def test_link_out_of_the_run_is_refused(path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret"
    outside.write_bytes(row(1, a=1.0))
    path.symlink_to(outside)
    with pytest.raises(RunError, match="out of the folder"):
        MetricsFollower(path, Values).advance(["a"])


def test_reading_stops_in_time_and_resumes(path):
    path.write_bytes(b"".join(row(i, a=float(i)) for i in range(1000)))
    file = MetricsFollower(path, Values)
    assert not file.advance(["a"], time.monotonic() - 1)
    assert 0 < len(file.metrics["a"]) < 1000
    assert read(file, "a")["a"] == list(map(float, range(1000)))


def test_step_is_that_of_the_newest_row(path):
    file = MetricsFollower(path, Values)
    assert file.advance(["a"])
    assert file.step == 0
    path.write_bytes(row(3, a=1.0) + row(7, b=1.0))
    read(file, "a")
    assert file.step == 7


def test_last_row_is_found_from_the_end(path):
    path.write_bytes(row(1, a=1.0, b=2.0))
    assert last_row(path, ["b"])[1][0].reduced == 2.0
    with path.open("ab") as end:
        end.write(row(2, c=[0.0] * 20_000) + row(3, a=3.0, c="x" * (1 << 16)) + b'{"step": 4')
    assert [last_row(path, ["a"])[0], last_row(path, ["a"])[1][0].reduced] == [3, 3.0]
    path.write_bytes(path.read_bytes() + b"\n")
    assert last_row(path, ["a"]) is None
    path.write_bytes(b"")
    assert last_row(path, ["a"]) is None
