"""A tracker cannot stop training, whatever it does."""

import os
import signal
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from small import small
from whole_runs import Oddity, lines

import ganlab
from ganlab.run import train
from ganlab.training import time_limits, trackers
from ganlab.training.checkpoints import Checkpoints
from ganlab.training.trackers import Trackers


def loaded(**calls):
    """Plugins that follow a run, as functions of the arguments by name."""
    return SimpleNamespace(calls=lambda hook: list(calls.items()))


def forever(**arguments):
    while True:
        try:
            time.sleep(0.05)
        except BaseException:
            time.sleep(0.05)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setenv("GANLAB_TRACKER_SECONDS", "0.8")
    monkeypatch.setattr(trackers, "NOTICE_SECONDS", 0.2)
    monkeypatch.setattr(trackers, "STOPPING_SECONDS", 0.1)


@pytest.mark.parametrize(
    "error",
    [SystemExit("bye"), SystemExit(), KeyboardInterrupt(), GeneratorExit(), Oddity("x"), MemoryError(), ValueError(1)],
)
def test_failing_tracker_is_a_warning_and_the_others_are_called(error):
    heard, said = [], []

    def failing(**arguments):
        raise error

    found = Trackers(loaded(failing=failing, sound=lambda **arguments: heard.append(arguments)), said.append)
    for step in (1, 2):
        found.call("ganlab_metrics", run=None, records=[step])
    assert [arguments["records"] for arguments in heard] == [[1], [2]]
    line = failing.__code__.co_firstlineno + 1
    assert said == [f"Plugin 'failing' failed in ganlab_metrics: {error!r} (test_trackers.py:{line})"]
    found.close()


def test_tracker_that_changes_the_working_directory_affects_nobody_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said, heard = [], []
    found = Trackers(loaded(away=lambda **_: os.chdir("/"), next=lambda **_: heard.append(os.getcwd())), said.append)
    for _ in range(2):
        found.call("ganlab_metrics", records=[])
    assert heard == [str(tmp_path)] * 2
    assert os.getcwd() == str(tmp_path)
    assert said == [f"Plugin 'away' changed the working directory in ganlab_metrics: it is reset to {tmp_path}."]


def test_hanging_tracker_is_named_and_not_called_again(impatient):
    heard, said = [], []
    found = Trackers(loaded(stuck=forever, sound=lambda **arguments: heard.append(arguments)), said.append)
    begun = time.monotonic()
    found.call("ganlab_metrics", records=[1])
    assert 0.8 <= time.monotonic() - begun < 5
    found.call("ganlab_metrics", records=[2])
    found.call("ganlab_run_end", status="completed")
    assert len(heard) == 3
    assert (
        "Plugin 'stuck' has not answered for 0 s in ganlab_metrics: training waits for it, for at most 0.8 s" in said[0]
    )
    assert "is not called again, and the run continues without it. The limit is GANLAB_TRACKER_SECONDS=0.8" in said[-1]
    assert len([line for line in said if "not called again" in line]) == 1


def test_hanging_tracker_blocks_no_signal(impatient, monkeypatch):
    monkeypatch.setenv("GANLAB_TRACKER_SECONDS", "1000")
    said = []
    begun = time.monotonic()
    Trackers(loaded(stuck=forever), said.append, lambda: time.monotonic() - begun > 0.3).call("ganlab_metrics")
    assert time.monotonic() - begun < 5
    assert "the run stops without it" in said[-1]


def test_all_of_a_trackers_hooks_run_on_one_thread():
    threads = []
    found = Trackers(loaded(one=lambda **arguments: threads.append(threading.current_thread())), print)
    for hook in ("ganlab_run_start", "ganlab_metrics", "ganlab_run_end"):
        found.call(hook)
    assert len(set(threads)) == 1
    assert threads[0].daemon, "the process does not wait for it"
    found.close()
    threads[0].join(5)
    assert not threads[0].is_alive()


@pytest.mark.parametrize("value", ["0", "-1", "soon", "nan"])
def test_invalid_limit_is_refused_before_anything_is_written(value, monkeypatch, tmp_path, cpus):
    monkeypatch.setenv("GANLAB_TRACKER_SECONDS", value)
    with pytest.raises(ganlab.ConfigError, match=r"GANLAB_TRACKER_SECONDS = '.*' in the environment must be a number"):
        train(small(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Vandal:
    """Changes a run in ways that no tracker should."""

    @ganlab.hookimpl
    def ganlab_run_start(self, run):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    @ganlab.hookimpl
    def ganlab_metrics(self, run, records):
        records.clear()
        sys.exit(0)

    @ganlab.hookimpl
    def ganlab_run_end(self, run, status):
        raise KeyboardInterrupt


class Stuck:
    @ganlab.hookimpl
    def ganlab_metrics(self, run, records):
        forever()


@pytest.mark.slow
def test_run_with_bad_trackers_equals_the_run_without_them(tmp_path, plugged, capsys, cpus, monkeypatch):
    monkeypatch.setenv("GANLAB_TRACKER_SECONDS", "0.5")
    experiment = small(steps=4, log_every=2, checkpoint_every=2)
    plain = train(experiment, tmp_path / "plain")
    plugged(vandal=Vandal(), stuck=Stuck())
    run = train(experiment, tmp_path / "run")
    assert run.info["status"] == "completed"
    assert lines(run) == lines(plain)
    said = capsys.readouterr().err
    for what in (
        "'vandal' failed in ganlab_run_start: ValueError('signal only works in main thread",
        "'vandal' failed in ganlab_metrics: SystemExit(0)",
        "'vandal' failed in ganlab_run_end: KeyboardInterrupt()",
        "'stuck' has not answered for",
    ):
        assert what in " ".join(said.split())


class Stopped:
    """Hangs when the signal comes."""

    @ganlab.hookimpl
    def ganlab_metrics(self, run, records):
        os.kill(os.getpid(), signal.SIGTERM)
        forever()


def test_a_stopped_run_with_a_tracker_that_hangs_is_saved(tmp_path, plugged, cpus, monkeypatch):
    monkeypatch.setattr(trackers, "STOPPING_SECONDS", 0.2)
    plugged(stuck=Stopped())
    begun = time.monotonic()
    run = train(small(steps=600, log_every=1), tmp_path / "run")
    assert (run.info["status"], run.info["signal"]) == ("interrupted", "SIGTERM")
    assert Checkpoints(run.path / "checkpoints").latest().step == run.info["step"] > 0
    assert time.monotonic() - begun < 40 < time_limits.limit("GANLAB_TRACKER_SECONDS")
