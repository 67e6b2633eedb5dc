"""metrics.jsonl holds what was written, whatever happens to the writer."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest

from ganlab.errors import RunError
from ganlab.telemetry import JsonLinesWriter, Record, read_metrics
from ganlab.telemetry.jsonl import to_json


def write(path, steps, **options):
    writer = JsonLinesWriter(path, **options)
    for step in steps:
        writer.scalars([Record(step, "critic/loss", step / 2, (0.25, 0.75)), Record(step, "lr", 0.1)])
    writer.close()


def steps(path):
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_a_line_has_the_documented_form(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, [10])
    metrics = {"critic/loss": {"reduced": 5.0, "replicas": [0.25, 0.75]}, "lr": {"reduced": 0.1, "replicas": []}}
    assert path.read_text().endswith("}\n")
    assert json.loads(path.read_text()) == {"step": 10, "metrics": metrics}


def test_records_are_read_back_exactly_also_non_finite_ones(tmp_path):
    path = tmp_path / "metrics.jsonl"
    third = float(np.float32(1) / np.float32(3))
    records = [
        Record(1, "critic/loss", third, (math.inf, -math.inf, 1e-300)),
        Record(1, "critic/penalty", math.nan),
        Record(2, "critic/loss", np.float32(0.1), (np.float32(0.1),)),
    ]
    writer = JsonLinesWriter(path)
    writer.scalars(records[:2])
    writer.scalars([])
    writer.scalars(records[2:])
    writer.image(1, "samples", b"")
    writer.text(1, "config", "")
    writer.close()
    first, second, third_record = read_metrics(path)
    assert first == records[0]
    assert (second.step, second.tag, second.replicas) == (1, "critic/penalty", ())
    assert math.isnan(second.reduced)
    assert third_record == Record(2, "critic/loss", 0.10000000149011612, (0.10000000149011612,))

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=refuse)


def test_readers_see_whole_lines_only_and_all_of_them_after_a_flush(tmp_path):
    path = tmp_path / "metrics.jsonl"
    writer = JsonLinesWriter(path)
    longest = [Record(0, f"constraints/some_rather_long_name/{i}", 0.1, (0.1,) * 8) for i in range(20)]
    for step in range(200):
        writer.scalars([Record(step, record.tag, record.reduced, record.replicas) for record in longest])
        assert path.read_bytes()[-1:] in (b"", b"\n")
    assert 0 < len(steps(path)) < 200  # some were flushed on their own, because memory is bounded
    writer.flush()
    assert steps(path) == list(range(200))
    writer.close()
    writer.close()


def test_a_torn_last_line_is_not_read_and_is_dropped_by_the_next_writer(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, [1, 2])
    with path.open("ab") as file:
        file.write(b'{"step": 3, "metrics": {"critic/lo')
    assert [record.step for record in read_metrics(path)] == [1, 1, 2, 2]
    write(path, [3])
    assert steps(path) == [1, 2, 3]


def test_a_crash_while_mending_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    write(path, [10, 20, 30])
    before = path.read_bytes()

    def crash(descriptor):
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="the disk is gone"):
        JsonLinesWriter(path, truncate_after=10)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "line", ["garbage", "[1]", '{"step": "x", "metrics": {}}', '{"step": 1, "metrics": {"a": "reduced"}}', "\x00\x00"]
)
def test_invalid_line_is_named(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    write(path, [1])
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RunError, match=r"metrics\.jsonl, line 2: .* is not a line of metrics"):
        list(read_metrics(path))
    writer = JsonLinesWriter(path)
    assert "line 2" in writer.complaint
    assert "is not a line of metrics" in writer.complaint
    assert [record.step for record in read_metrics(path)] == [1, 1]


def test_values_become_json_values(tmp_path):
    value = {"a": np.float32(0.5), 1: (np.int64(2), math.nan), "b": [np.bool_(True), None, "NaN"], "c": np.ones(2)}
    plain = {"a": 0.5, "1": [2, "NaN"], "b": [True, None, "NaN"], "c": [1.0, 1.0]}
    assert to_json(value) == plain
    assert to_json({"p": tmp_path, "f": -math.inf}) == {"p": str(tmp_path), "f": "-Infinity"}
