"""A few metrics of metrics.jsonl, read without parsing the others, against all of them parsed."""

import json

import numpy as np
import pytest

from ganlab.comparing import read_series
from ganlab.telemetry import JsonLinesWriter, Record, jsonl_lines
from ganlab.telemetry.jsonl import logged_tags, read_metrics

TAGS = ["critic/loss", "loss", 'a "critic/loss', "critic/loss/é", "rare", "nowhere"]


def write(path, steps=50):
    rng, writer = np.random.default_rng(0), JsonLinesWriter(path)
    for step in range(10, 10 * steps + 1, 10):
        records = [
            Record(step, tag, rng.normal() * 10.0 ** rng.integers(-9, 9), tuple(rng.normal(size=3))) for tag in TAGS[:4]
        ]
        if step % 100 == 0:
            records.append(Record(step, "rare", rng.normal()))
        if step == 70:
            records[0] = Record(step, TAGS[0], float("nan"), (1.0, float("inf"), 2.0))
        if step == 80:
            records[0] = Record(step, TAGS[0], float("-inf"), (5.0, 2.0))
        writer.scalars(records)
    writer.close()
    return path


def parsed(path):
    found = {}
    for record in read_metrics(path):
        spread = max(record.replicas) - min(record.replicas) if len(record.replicas) > 1 else np.nan
        found.setdefault(record.tag, []).append((record.step, record.reduced, spread))
    return found


def check(found, expected):
    assert set(found) == set(expected) & set(TAGS)
    for tag, series in found.items():
        steps, values, spreads = (np.array(column) for column in zip(*expected[tag], strict=True))
        np.testing.assert_array_equal(series.steps, steps)
        np.testing.assert_array_equal(series.values, values)
        np.testing.assert_array_equal(series.spreads, spreads)


def test_a_few_metrics_are_the_same_as_when_all_are_parsed(tmp_path):
    path = write(tmp_path / "metrics.jsonl")
    expected = parsed(path)
    assert read_series(path, ["critic/loss/é", "rare", "nowhere"]).keys() == {"critic/loss/é", "rare"}
    check(read_series(path, TAGS), expected)
    assert logged_tags(path) == set(TAGS) - {"nowhere"}


def test_plain_names_are_read_without_parsing_the_others(tmp_path, monkeypatch):
    writer = JsonLinesWriter(tmp_path / "metrics.jsonl")
    writer.scalars([Record(10, tag, value, (value, 2.0)) for tag, value in (("critic/loss", 1.0), ("loss", 3.0))])
    writer.close()
    monkeypatch.setattr(jsonl_lines.Line, "parse", None)  # not needed
    (series,) = read_series(tmp_path / "metrics.jsonl", ["loss"]).values()
    assert (series.steps.tolist(), series.values.tolist(), series.spreads.tolist()) == ([10], [3.0], [1.0])


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize(("first", "order"), [(0, -1), (20, 1)], ids=["all lines in another order", "later lines"])
def test_lines_with_another_layout_are_parsed(tmp_path, separators, first, order):
    path = write(tmp_path / "metrics.jsonl")
    expected = parsed(path)
    lines = path.read_text().splitlines()
    for number, line in enumerate(map(json.loads, lines[first:]), start=first):
        metrics = {tag: dict([*entry.items()][::order]) for tag, entry in line["metrics"].items()}
        lines[number] = json.dumps(dict([("step", line["step"]), ("metrics", metrics)][::order]), separators=separators)
    path.write_text("\n".join(lines) + "\n")
    check(read_series(path, TAGS), expected)
