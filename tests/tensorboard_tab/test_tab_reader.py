"""The reader of the tab: only what was appended is read, and nothing in a file can stop it."""

import json
import math
import os
import time

import numpy as np
import pytest
from ganlab_compare.metric_rows import read_series
from ganlab_tensorboard import store as store_module
from ganlab_tensorboard.preview import preview, tags_at_ends
from ganlab_tensorboard.rows import MOST_ROWS, Thinned
from ganlab_tensorboard.store import Store
from synthetic import row, write_run

from ganlab.errors import RunError
from ganlab.telemetry import MetricsFollower


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def read(file, *tags):
    assert file.advance(tags)
    return {tag: list(file.metrics[tag].series().values) for tag in tags}


@pytest.mark.slow
@pytest.mark.parametrize("every", [None, 15 << 20], ids=["one line", "many lines"])
def test_sparse_file_is_one_problem_and_delays_nothing(tmp_path, every):
    run = tmp_path / "run"
    write_run(run, metrics={"a": (1.0, 2.0)})
    path = run / "metrics.jsonl"
    with path.open("r+b") as file:  # holes take no space, and minutes to read
        for at in range(every, 1 << 36, every) if every else ():
            file.seek(at)
            file.write(b"\n")
        file.truncate(1 << 36)
    store = Store(lambda: [tmp_path])
    began = time.monotonic()
    store.metrics(path, ["a"], time.monotonic() + 0.1)
    store.finish()
    assert store.pending() == 0
    with pytest.raises(RunError, match="holds more than 64 MiB or 16384 lines that are not metrics"):
        store.metrics(path, ["a"], time.monotonic() + 0.1)
    assert time.monotonic() - began < 10
    path.write_bytes(b"".join(row(step, a=0.5) for step in (1, 2, 3)))
    assert store.metrics(path, ["a"], time.monotonic() + 1)["a"].rows == 3


def test_long_series_is_thinned_evenly_with_exact_ends_and_extremes(path):
    values = np.sin(np.arange(5000) / 700).tolist()
    values[1234], values[3333] = 9.0, -9.0
    path.write_bytes(b"".join(row(10 * i, a=value) for i, value in enumerate(values)))
    file = MetricsFollower(path, Thinned)
    read(file, "a")
    kept = file.metrics["a"]
    series = kept.series()
    assert kept.rows == 5000
    assert len(series.steps) <= MOST_ROWS + 1
    assert series.steps[:3].tolist() == [0, 10 * kept.stride, 20 * kept.stride]
    assert series.steps[-1] == 49_990
    assert [values[step // 10] for step in series.steps] == series.values.tolist()
    exact = kept.series(extremes=True).values
    assert (exact.max(), exact.min()) == (9.0, -9.0)


def test_short_series_is_what_compare_reads(tmp_path):
    write_run(tmp_path / "run", metrics={"a": (4.0, 3.0, 2.0)}, spread=0.5, replicas=3)
    file = MetricsFollower(tmp_path / "run" / "metrics.jsonl", Thinned)
    read(file, "a")
    ours, theirs = file.metrics["a"].series(), read_series(file.path, ["a"])["a"]
    for name in ("steps", "values", "spreads"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_replicas_that_change_in_number_are_filled_up(path):
    one, two = ({"a": {"reduced": 1.0, "replicas": list(values)}} for values in ([1.0], [1.0, 2.0]))
    path.write_bytes(b"".join(json.dumps({"step": i, "metrics": m}).encode() + b"\n" for i, m in enumerate([one, two])))
    file = MetricsFollower(path, Thinned)
    read(file, "a")
    np.testing.assert_array_equal(file.metrics["a"].replicas()[2], [[1.0, math.nan], [1.0, 2.0]])


def test_preview_has_rows_at_the_steps_of_the_same_grid(path, tmp_path):
    def write(to, seed):
        rng = np.random.default_rng(seed)
        to.write_bytes(b"".join(row(i, a=float(rng.normal()), b=0.1) for i in range(0, 60_000, 10)))

    other = tmp_path / "other.jsonl"
    write(path, 0)
    write(other, 1)
    first, second = (preview(file, ["a"])["a"].series() for file in (path, other))
    np.testing.assert_array_equal(first.steps, second.steps)
    assert len(first.steps) > 20
    assert (first.steps[0], first.steps[-1]) == (0, 59_990)
    whole = MetricsFollower(path, Thinned)
    read(whole, "a")
    known = {json.loads(line)["step"]: json.loads(line)["metrics"]["a"]["reduced"] for line in path.open("rb")}
    assert [known[step] for step in first.steps] == first.values.tolist()


def test_preview_of_garbage_is_empty(path):
    path.write_bytes(os.urandom(1 << 20))
    assert preview(path, ["a"]) == {}
    assert tags_at_ends(path) == set()


def test_store_finds_runs_through_links_and_follows_changes(tmp_path):
    write_run(tmp_path / "elsewhere" / "run", seed=3)
    logs = tmp_path / "logs"
    write_run(logs / "sweep" / "s0")
    (logs / "linked").symlink_to(tmp_path / "elsewhere" / "run")
    (logs / "broken").mkdir()
    (logs / "broken" / "run.json").write_text("[1]")
    store = Store(lambda: [logs])
    assert [run.name for run in store.runs()] == ["sweep/s0", "linked"]
    assert len(store.problems()) == 1


def test_long_file_is_previewed_then_read_in_the_background(tmp_path):
    run = tmp_path / "run"
    write_run(run, metrics={"a": [float(i) for i in range(8000)]})
    store = Store(lambda: [tmp_path])
    path = run / "metrics.jsonl"
    first = store.metrics(path, ["a"], time.monotonic() + 0.1)["a"]
    assert 2 < first.rows < 100
    store.finish()
    assert store.pending() == 0
    assert store.metrics(path, ["a"], time.monotonic() + 0.1)["a"].rows == 8000


@pytest.mark.slow
def test_memory_is_bounded_by_forgetting_the_oldest(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_MOST_BYTES", 1)
    store = Store(lambda: [tmp_path])
    for name in ("first", "second"):
        write_run(tmp_path / name, metrics={"a": [float(i) for i in range(8000)]})
        store.metrics(tmp_path / name / "metrics.jsonl", ["a"], time.monotonic() + 0.1)
        store.finish()
    assert store.metrics(tmp_path / "second" / "metrics.jsonl", ["a"], time.monotonic() + 0.1)["a"].rows == 8000
    assert store.metrics(tmp_path / "first" / "metrics.jsonl", ["a"], time.monotonic() + 0.1)["a"].rows < 100
