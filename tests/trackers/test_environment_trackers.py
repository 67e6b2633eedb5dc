"""Trackers that the environment asks for: the same numbers as metrics.jsonl, and no harm when they fail."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ganlab_builtin import trackers
from ganlab_builtin.trackers.notify_command import Notify
from tracked import logged, params

import ganlab


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """An environment without anybody's services."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")


def trained(here: Path, name: str, **variables: str) -> tuple[ganlab.Run, str]:
    """Trains the quickstart's smallest relative in a process of its own, which must succeed."""
    command = [sys.executable, "-m", "ganlab", "run", "--gin", "twenty_five_gaussians", "--name", name, *params()]
    done = subprocess.run(command, cwd=here, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ganlab.Run(here / "runs" / "twenty_five_gaussians" / name), done.stderr


def expected(run: ganlab.Run) -> dict[tuple[int, str], float]:
    """What metrics.jsonl holds, by step and name, with each replica's value."""
    names = ((step, f"replica/{replica}/{tag}" if replica else tag, value) for step, tag, replica, value in logged(run))
    return {(step, name): value for step, name, value in names}


def test_nothing_is_called_unless_asked(monkeypatch):
    monkeypatch.delenv("GANLAB_TRACKERS", raising=False)
    monkeypatch.delenv("GANLAB_NOTIFY", raising=False)
    for made in (trackers._service("mlflow"), trackers._service("wandb"), trackers._notify(), trackers._unknown()):
        assert [name for name in dir(made) if name.startswith("ganlab_")] == ["ganlab_register_commands"]


def test_an_unknown_name_is_reported_with_the_known_ones(monkeypatch):
    monkeypatch.setenv("GANLAB_TRACKERS", "mlflow, wandbb")
    with pytest.raises(ganlab.ConfigError, match=r"'wandbb', which is none .*Did you mean 'wandb'.*mlflow, wandb"):
        trackers._unknown().ganlab_run_start(run=None)


@pytest.mark.parametrize(("name", "module"), [("mlflow", "mlflow"), ("wandb", "wandb")])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, tmp_path, name, module):
    monkeypatch.setenv("GANLAB_TRACKERS", name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ganlab.MissingDependencyError, match=rf"pip install -e '\.\[{name}\]'"):
        trackers._service(name).ganlab_run_start(run=ganlab.Run(made_run(tmp_path)))


@pytest.mark.parametrize(
    ("run", "mark", "named"),
    [
        ("runs/ring/one", None, ("ring", "one")),
        ("runs/sw/weight=1/s0", "runs/sw/sweep.json", ("sw", "weight=1/s0")),
        ("runs/b/r1/w1/k=1/s0", "runs/b/benchmark.json", ("b", "r1/w1/k=1/s0")),
    ],
)
def test_trials_are_kept_together(tmp_path, run, mark, named):
    (tmp_path / run).mkdir(parents=True)
    (tmp_path / run / "run.json").touch()
    if mark:
        (tmp_path / mark).touch()
    assert trackers.project_and_name(ganlab.Run(tmp_path / run)) == named


def made_run(folder: Path) -> Path:
    """The folder of a run with a file that says so."""
    path = folder / "runs" / "one"
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps({"status": "running", "settings": {"a": 1}, "step": 3, "error": "x\0y"}))
    (path / "config.gin").write_text("experiment.seed = 0\n")
    return path


def test_mlflow_has_the_numbers_of_metrics_jsonl(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="MLflow is an extra: pip install -e '.[mlflow]'")
    run, stderr = trained(tmp_path, "flow", GANLAB_TRACKERS="mlflow")
    assert "Warning" not in stderr
    client = mlflow.MlflowClient(f"file:{tmp_path}/mlruns")
    found = client.get_run((run.path / "mlflow_run_id").read_text())
    assert (found.info.status, found.data.tags["ganlab.status"]) == ("FINISHED", "completed")
    assert found.data.params["experiment.batch_size"] == "16"
    wanted = expected(run)
    logged = {
        (metric.step, tag): metric.value
        for tag in {tag for _, tag in wanted}
        for metric in client.get_metric_history(found.info.run_id, tag)
    }
    assert logged == wanted
    assert {step for step, _ in logged} == {2, 4, 6}


def test_a_resumed_run_that_mlflow_does_not_know_here_is_sent_again_from_its_start(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="MLflow is an extra: pip install -e '.[mlflow]'")
    monkeypatch.setenv("GANLAB_TRACKERS", "mlflow")
    run, tracker = ganlab.Run(made_run(tmp_path)), trackers._service("mlflow")
    (run.path / "mlflow_run_id").write_text("0" * 32)
    (run.path / "metrics.jsonl").write_text(
        "".join(f'{{"step": {n}, "metrics": {{"a": {{"reduced": {n + 4.0}, "replicas": []}}}}}}\n' for n in (1, 2))
    )
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="MLflow has no run '0+' here, as which one was begun.*MLFLOW_TRACKING_URI"):
        tracker.ganlab_run_start(run=run)
    tracker.ganlab_metrics(run=run, records=[ganlab.Record(3, "a", 7.0)])
    client = mlflow.MlflowClient(f"file:{tmp_path}/mlruns")
    history = client.get_metric_history((run.path / "mlflow_run_id").read_text(), "a")
    assert [(metric.step, metric.value) for metric in history] == [(1, 5), (2, 6), (3, 7)]


def test_mlflow_takes_hostile_names_and_values(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="MLflow is an extra: pip install -e '.[mlflow]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GANLAB_TRACKERS", "mlflow")
    run, tracker = ganlab.Run(made_run(tmp_path)), trackers._service("mlflow")
    tracker.ganlab_run_start(run=run)
    odd = [
        ganlab.Record(1, "../../up\x1b[31m<b>", 1.5, (1.0, 2.0)),
        ganlab.Record(1, "loss", float("nan"), (float("inf"), 2.0)),
        ganlab.Record(1, "x" * 400, 2.5),
        ganlab.Record(1, "w/at", 3.5),
        ganlab.Record(1, "w/at/below", 4.5),
    ]
    tracker.ganlab_metrics(run=run, records=odd)
    tracker.ganlab_run_end(run=run, status="diverged")
    client = mlflow.MlflowClient(f"file:{tmp_path}/mlruns")
    found = client.get_run((run.path / "mlflow_run_id").read_text())
    assert found.info.status == "FAILED"
    assert found.data.metrics["_/_/up__31m_b_"] == 1.5
    assert found.data.metrics["replica/1/loss"] == 2.0
    assert found.data.tags["not finite/loss"] == "nan at step 1"
    assert found.data.metrics["x" * 250] == 2.5
    assert (found.data.metrics["w/at/all"], found.data.metrics["w/at/below"]) == (3.5, 4.5)


def pieces(data: bytes) -> list[bytes]:
    """The records of a file in LevelDB's format of logs, which wandb writes after seven bytes of its own."""
    found, place, whole = [], 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole += data[place + 7 : place + 7 + size]
        if kind in (1, 4):  # a whole record, or the last part of one
            found.append(whole)
            whole = b""
        place += 7 + size
    return found


def scanned(folder: Path) -> tuple[dict[tuple[int, str], float], dict[str, str]]:
    """The history and the configuration in the offline files of wandb."""
    from wandb.proto import wandb_internal_pb2

    history, configuration = {}, {}
    for path in folder.glob("wandb/offline-run-*/*.wandb"):
        for data in pieces(path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            values = {item.key or "/".join(item.nested_key): item.value_json for item in record.history.item}
            step = record.history.step.num
            history |= {(step, key): json.loads(v) for key, v in values.items() if not key.startswith("_")}
            configuration |= {item.key: item.value_json for item in record.run.config.update}
    return history, configuration


def test_wandb_has_the_numbers_of_metrics_jsonl(tmp_path):
    pytest.importorskip("wandb", reason="wandb is an extra: pip install -e '.[wandb]'")
    run, stderr = trained(tmp_path, "bands", GANLAB_TRACKERS="wandb")
    assert "Warning" not in stderr
    history, configuration = scanned(tmp_path)
    wanted = expected(run)
    assert set(history) == set(wanted)
    assert [history[key] for key in wanted] == [pytest.approx(wanted[key], rel=1e-15) for key in wanted]
    assert json.loads(configuration["experiment.batch_size"]) == 16


def test_failing_trackers_change_no_number(tmp_path):
    pytest.importorskip("mlflow", reason="MLflow is an extra: pip install -e '.[mlflow]'")
    pytest.importorskip("wandb", reason="wandb is an extra: pip install -e '.[wandb]'")
    quiet, _ = trained(tmp_path, "quiet")
    (tmp_path / "file").write_text("")
    broken, stderr = trained(
        tmp_path,
        "broken",
        GANLAB_TRACKERS="mlflow,wandb",
        MLFLOW_TRACKING_URI=f"file:{tmp_path}/file/below",
        WANDB_DIR=f"{tmp_path}/file/below",
        GANLAB_NOTIFY="/nowhere/at/all",
    )
    assert (broken.path / "metrics.jsonl").read_bytes() == (quiet.path / "metrics.jsonl").read_bytes()
    assert broken.info["status"] == "completed"
    assert "'ganlab_mlflow' failed in ganlab_run_start" in stderr
    assert "'/nowhere/at/all' cannot be called" in stderr


def test_a_command_is_called_with_the_end_of_a_run(tmp_path):
    script = "import json, os, sys; json.dump({k: v for k, v in os.environ.items() if k.startswith('GANLAB')}, "
    script += "open(sys.argv[1], 'w'))"
    words = [sys.executable, "-c", script, str(tmp_path / "said $HOME.json")]
    run = ganlab.Run(made_run(tmp_path))
    Notify(shlex.join(words)).ganlab_run_end(run=run, status="diverged")
    said = json.loads((tmp_path / "said $HOME.json").read_text())
    assert said["GANLAB_STATUS"] == "diverged"
    assert said["GANLAB_RUN"] == str(run.path)
    assert (said["GANLAB_STEP"], said["GANLAB_ERROR"]) == ("3", "xy")


@pytest.mark.parametrize(
    ("command", "message"),
    [("/nowhere/at/all", "cannot be called"), ("sh -c 'echo why >&2; exit 3'", "ended with exit status 3: why")],
)
def test_a_command_that_fails_is_reported(tmp_path, command, message):
    with pytest.raises(ganlab.ConfigError, match=message):
        Notify(command).ganlab_run_end(run=ganlab.Run(made_run(tmp_path)), status="completed")


def test_a_command_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("ganlab_builtin.trackers.notify_command._SECONDS", 0.2)
    with pytest.raises(ganlab.ConfigError, match=r"has not ended after 0\.2 s"):
        Notify("sleep 20").ganlab_run_end(run=ganlab.Run(made_run(tmp_path)), status="completed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "ends"),
    [
        ("sleep 60 & sleep 60", False),
        ("sleep 60 | sleep 60", False),
        ("trap '' TERM INT HUP; sleep 60 & wait", False),
        ("sleep 60 &", True),  # it goes on by itself, and nobody waits for it
    ],
)
def test_children_of_a_command_delay_nothing_and_end_with_it(tmp_path, monkeypatch, script, ends):
    monkeypatch.setattr("ganlab_builtin.trackers.notify_command._SECONDS", 0.5)
    mark = f"GANLAB_TEST_MARK={tmp_path}"
    notify = Notify(shlex.join(["env", mark, "sh", "-c", script]))
    began = time.monotonic()
    with contextlib.nullcontext() if ends else pytest.raises(ganlab.ConfigError, match=r"has not ended after 0\.5 s"):
        notify.ganlab_run_end(run=ganlab.Run(made_run(tmp_path)), status="completed")
    assert time.monotonic() - began < 10
    time.sleep(0.2)  # a signal takes effect soon
    left = [process for process in Path("/proc").glob("[0-9]*/environ") if mark.encode() in _environment(process)]
    assert bool(left) == ends
    for process in left:
        os.kill(int(process.parent.name), signal.SIGKILL)


def _environment(process):
    try:
        return process.read_bytes()
    except OSError:  # another's, or ended meanwhile
        return b""


def test_a_command_that_cannot_be_split_is_reported(monkeypatch):
    monkeypatch.setenv("GANLAB_NOTIFY", "echo 'open")
    with pytest.raises(ganlab.ConfigError, match="cannot be split into words"):
        trackers._notify().ganlab_run_start(run=None)
