"""Run directories: created completely or not at all, updated atomically, read back."""

from __future__ import annotations

import html
import json
import math
import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pytest

from ganlab.errors import RunError
from ganlab.run import Run
from ganlab.runs import RunDirectory, create_run, find_runs, new_run_path

INFO = {"status": "running", "step": 0, "steps": 100, "seed": 3, "metrics": {}, "evaluation": {}}


def make(path, **info):
    return create_run(path, config="experiment.steps = 100\n", operative="experiment.seed = 3\n", info={**INFO, **info})


def test_new_run_path_has_experiment_time_seed_and_hex_digits(tmp_path):
    before = datetime.now(UTC).replace(microsecond=0)
    path = new_run_path(tmp_path, "quickstart", 7)
    assert path.parent == tmp_path / "quickstart"
    match = re.fullmatch(r"(\d{8}-\d{6})-s7-[0-9a-f]{4}", path.name)
    assert match
    assert before <= datetime.strptime(match[1], "%Y%m%d-%H%M%S").replace(tzinfo=UTC) <= datetime.now(UTC)
    assert not path.parent.exists()


def test_run_is_created_and_read_back(tmp_path):
    run = make(tmp_path / "runs" / "quickstart" / "base")
    assert isinstance(run, RunDirectory)
    again = Run(str(run.path))
    assert again.path == run.path
    assert again.info == INFO
    assert again.config == "experiment.steps = 100\n"
    assert again.operative == "experiment.seed = 3\n"
    assert again.metrics() == []
    assert sorted(item.name for item in run.path.iterdir()) == ["config.gin", "operative.gin", "run.json"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o777 & ~mask


def test_update_sets_fields_and_keeps_non_finite_numbers(tmp_path):
    run = make(tmp_path / "base", provenance={"argv": ["NaN"]})
    run.update(status="diverged", metrics={"critic/loss": math.nan, "lr": np.float32(0.5)}, wall_seconds=1.5)
    run.update(step=np.int64(7), evaluation={"swd": -math.inf})
    info = Run(run.path).info
    assert math.isnan(info["metrics"].pop("critic/loss"))
    assert info == {
        **INFO,
        "status": "diverged",
        "step": 7,
        "metrics": {"lr": 0.5},
        "evaluation": {"swd": -math.inf},
        "wall_seconds": 1.5,
        "provenance": {"argv": ["NaN"]},
    }
    assert json.loads((run.path / "run.json").read_text())["metrics"]["critic/loss"] == "NaN"


@pytest.mark.parametrize("crash_in", ["fsync", "replace"])
def test_crash_during_update_keeps_the_old_file(tmp_path, monkeypatch, crash_in):
    run = make(tmp_path / "base")
    before = (run.path / "run.json").read_bytes()

    def crash(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*(("os.fsync", crash) if crash_in == "fsync" else ("pathlib.Path.replace", crash)))
        with pytest.raises(KeyboardInterrupt):
            run.update(status="completed", step=100)
    assert (run.path / "run.json").read_bytes() == before
    run.update(status="completed")
    assert run.info["status"] == "completed"
    assert len(list(run.path.iterdir())) == 3


def test_killed_process_leaves_a_complete_file(tmp_path):
    run = make(tmp_path / "base")
    # Every update has the same number in two fields, which must agree whenever the process is killed.
    code = (
        "import sys, itertools; from ganlab.run import Run; run = Run(sys.argv[1])\n"
        "for n in itertools.count(1): run.update(step=n, metrics={'n': n}, fill='x' * 20_000); print(n, flush=True)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(run.path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(20):
        process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    info = run.info
    assert info["step"] >= 20
    assert info["metrics"]["n"] == info["step"]


def test_field_without_json_equivalent_changes_nothing(tmp_path):
    run = make(tmp_path / "base")
    with pytest.raises(TypeError):
        run.update(strategy=object())
    assert run.info == INFO
    with pytest.raises(TypeError):
        make(tmp_path / "deep" / "other", strategy=object())
    assert not (tmp_path / "deep").exists()


def test_create_run_refuses_existing_paths(tmp_path):
    make(tmp_path / "base")
    with pytest.raises(RunError, match="already exists"):
        make(tmp_path / "base")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be created: Not a directory"):
        make(tmp_path / "file" / "deep" / "base")


def test_errors_describe_what_is_not_a_run(tmp_path):
    old, new = make(tmp_path / "runs" / "quickstart" / "old"), make(tmp_path / "runs" / "other" / "new")
    os.utime(old.path / "run.json", (1, 1))
    (tmp_path / "empty").mkdir()
    for path, message in (
        (old.path.with_name("odl"), r"no such directory\. Did you mean 'old'\?"),
        (tmp_path / "runs", f"contains 2 of them; the latest is {re.escape(str(new.path))}"),
        (tmp_path / "empty", r"is not a run: it has no run\.json"),
        (old.path / "run.json", "is a file; a run is a directory"),
    ):
        with pytest.raises(RunError, match=message):
            Run(path)


def test_errors_name_the_broken_file(tmp_path):
    run = make(tmp_path / "base")
    (run.path / "config.gin").unlink()
    with pytest.raises(RunError, match=r"config\.gin cannot be read: No such file"):
        _ = run.config


def test_find_runs_ignores_nested_and_hidden_runs(tmp_path):
    for name in ("b/two", "a/one", "a/one/nested", "a/.hidden"):
        if name == "a/one/nested":  # a checkpoint folder may hold anything
            (tmp_path / name).mkdir()
            (tmp_path / name / "run.json").write_text("{}")
        else:
            make(tmp_path / name)
    assert [str(path.relative_to(tmp_path)) for path in find_runs(tmp_path)] == ["a/one", "b/two"]
    assert list(find_runs(tmp_path / "a/one")) == [tmp_path / "a/one"]
    assert list(find_runs(tmp_path / "nowhere")) == []


def test_what_a_notebook_shows_is_escaped(tmp_path):
    hostile = "<script>alert(1)<|script>"
    make(tmp_path / hostile, status=hostile, metrics={hostile: 1.5}, step=7)
    shown = Run(tmp_path / hostile)._repr_html_()
    assert f"{html.escape(hostile)}</b>: " in shown
    assert f"<td>{html.escape(hostile)}</td><td>1.5</td>" in shown
    assert ", step 7 of 100<" in shown
    assert "<script" not in shown
    assert shown.count("<b>") == 1
    (tmp_path / hostile / "run.json").write_text("[<i>]")
    assert "<i>" not in Run(tmp_path / hostile)._repr_html_()
