"""Signals that ask a run to stop, and evaluators that fail, exit or hang: the run is saved, the culprit named."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from small import small
from whole_runs import Graph, Oddity

import ganlab
from ganlab.errors import PluginError, TrainingFailedError
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.support.signals import STOPPING, undisturbed
from ganlab.training import watchdog
from ganlab.training.checkpoints import Checkpoints
from ganlab.training.interruption import StoppedError, signals
from ganlab.training.watchdog import OverdueError, Watch


class Odd(ganlab.Evaluator):
    """Misbehaves at step 2 in the given way."""

    def __init__(self, does):
        self._does = does

    def evaluate(self, sample, dataset, run):
        if run and Checkpoints(run.path / "checkpoints").all():
            self._does()
        return {"one": 1.0}


def raising(error):
    def does():
        raise error

    return does


@pytest.fixture(scope="module")
def run_of(cpus):
    odd = Odd(None)
    graph = Graph(small(steps=6, evaluate_every=3, checkpoint_every=2, evaluators=[odd]))

    def run_of(folder, does, **options):
        odd._does = does
        return graph.train(folder, **options)

    return run_of


@pytest.mark.usefixtures("cpus")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(0), "evaluators.odd failed in evaluate: SystemExit: 0"),
        (SystemExit(), "evaluators.odd failed in evaluate: SystemExit"),
        (Oddity("x"), "evaluators.odd failed in evaluate: Oddity: x"),
        (KeyboardInterrupt(), "a plugin raised KeyboardInterrupt"),
        (RuntimeError("no figure today"), "evaluators.odd failed in evaluate: RuntimeError: no figure today"),
    ],
)
def test_failing_evaluator_fails_the_run_with_a_checkpoint_and_is_asked_again(run_of, error, said, tmp_path):
    with pytest.raises(TrainingFailedError) as caught:
        run_of(tmp_path / "run", raising(error))
    assert f"Training failed after step 3: {said}" in str(caught.value)
    run = ganlab.Run(tmp_path / "run")
    assert run.info["status"] == "failed"
    assert Checkpoints(run.path / "checkpoints").latest().step == 3
    run_of(run.path, lambda: None, resume=True, allow_changes=True)
    assert run.info["status"] == "completed"
    assert [record.step for record in run.metrics() if record.tag == "evaluation/odd/one"] == [3, 6]


@pytest.mark.usefixtures("cpus")
def test_hanging_evaluator_reaches_its_time_limit(run_of, tmp_path, monkeypatch):
    monkeypatch.setenv("GANLAB_EVALUATOR_SECONDS", "0.5")
    begun = time.monotonic()
    with pytest.raises(TrainingFailedError, match=r"evaluators\.odd has not answered for \d s in evaluate; the limit"):
        run_of(tmp_path / "run", lambda: time.sleep(600))
    assert time.monotonic() - begun < 100
    assert ganlab.Run(tmp_path / "run").info["status"] == "failed"
    assert Checkpoints(tmp_path / "run" / "checkpoints").latest().step == 3


def test_plugins_that_exit_are_named_wherever_they_run():
    with (
        pytest.raises(PluginError, match=r"features\.x failed in features: SystemExit: 3"),
        plugin_code("features.x", "features"),
    ):
        sys.exit(3)
    for passing in (KeyboardInterrupt, StoppedError, OverdueError):
        with pytest.raises(passing), plugin_code("features.x", "features"):
            raise passing


@pytest.fixture
def ended(monkeypatch):
    """Replaces the end of the process by the end of a thread."""
    codes = []

    def end(code):
        codes.append(code)
        raise SystemExit

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(watchdog, "STOPPING_SECONDS", 0.3)
    return codes


def deaf(seconds):
    """Waits and ignores every error."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            time.sleep(0.02)
        except BaseException:
            continue


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_signal_that_a_plugin_swallows_ends_the_process_from_outside(ended):
    left, said = [], []
    with signals() as received:
        watch = Watch(received, said.append, alone=True)
        with watch.over(lambda *how: left.append(how)), received.leaving(True):
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
            with plugin_code("evaluators.deaf", "evaluate"):
                deaf(2)
    assert (ended, left) == ([143], [("interrupted", "SIGTERM")])
    assert "evaluators.deaf has not answered for " in said[0]
    assert "and ignores SIGTERM: saving the run and exiting without it" in said[0]


@pytest.mark.slow
def test_a_signal_that_came_to_nothing_is_sent_again(ended, monkeypatch):
    monkeypatch.setattr(watchdog, "STOPPING_SECONDS", 10.0)
    with signals() as received:
        watch = Watch(received, lambda sentence: None, alone=True)

        def work():
            with undisturbed():
                signal.raise_signal(signal.SIGTERM)
                time.sleep(1.5)  # so that it is sent again in vain once
            with plugin_code("evaluators.lossy", "evaluate"):
                with contextlib.suppress(StoppedError):
                    time.sleep(9)
                time.sleep(9)

        with pytest.raises(StoppedError), watch.over(lambda *how: None), received.leaving(True):
            work()
    assert (ended, received.received) == ([], [signal.SIGTERM])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_limit_that_a_plugin_swallows_ends_the_process_from_outside(ended, monkeypatch):
    monkeypatch.setenv("GANLAB_EVALUATOR_SECONDS", "0.1")
    left, said = [], []
    with signals() as received, Watch(received, said.append, alone=True).over(lambda *how: left.append(how)):
        with plugin_code("diagnostics.deaf", "look"):
            deaf(2)
        assert received.first is None
    assert (ended, left) == ([1], [("failed", None)])
    assert "diagnostics.deaf has not answered" in said[-1]


def test_code_that_answers_in_time_is_left_alone(ended, monkeypatch):
    monkeypatch.setenv("GANLAB_EVALUATOR_SECONDS", "0.5")
    said = []
    with signals() as received, Watch(received, said.append, alone=True).over(lambda *how: said.append(how)):
        for _ in range(4):
            with plugin_code("evaluators.a", "evaluate"):  # the limit holds for each call
                time.sleep(0.25)
    assert (ended, said) == ([], [])


def test_nohup_is_respected():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals() as received:
            signal.raise_signal(signal.SIGHUP)
        assert received.first is None
        assert signal.SIGHUP in STOPPING
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("first", STOPPING, ids=lambda number: number.name)
def test_a_second_sigint_interrupts_and_is_known_as_one(first):
    with signals() as received:
        signal.raise_signal(first)
        assert not received.interrupted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert received.interrupted
        assert received.first is first


def test_a_signal_abandons_work_that_may_be_disturbed():
    with signals() as received, received.leaving(True), undisturbed():
        signal.raise_signal(signal.SIGTERM)
    assert received.first is signal.SIGTERM
    with pytest.raises(StoppedError), signals() as received, received.leaving(True):
        signal.raise_signal(signal.SIGTERM)


def lost(number):
    """Raises another error in place of the signal's, as pybind11 does."""
    with contextlib.suppress(StoppedError):
        if number is not None:
            signal.raise_signal(number)
    raise TypeError("incompatible function arguments")


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, StoppedError), (None, PluginError)])
def test_an_error_that_a_signal_was_turned_into_counts_as_the_signal(number, error):
    with pytest.raises(error), signals() as received, received.leaving(True), plugin_code("evaluators.a", "evaluate"):
        lost(number)


def test_a_thread_that_asks_late_reads_nothing_from_a_file_with_the_same_number(tmp_path):
    (tmp_path / "data").write_bytes(b"data")
    with signals() as received:
        reading = received._woken
    file = os.open(tmp_path / "data", os.O_RDONLY)
    try:
        os.dup2(file, reading)
        assert received.asked() is None
        assert os.read(reading, 10) == b"data"
    finally:
        for descriptor in {file, reading}:
            os.close(descriptor)


SCRIPT = """
import ctypes, sys, threading
sys.path[:] = {path!r}
from small import small
from whole_runs import Graph
import ganlab
from ganlab.run import train

class Frozen(ganlab.Evaluator):
    "Waits in compiled code, where Python handles no signal."
    def evaluate(self, sample, dataset, run):
        if run is not None:
            mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
            # A signal that comes before the second lock is one that Python handles.
            threading.Timer(1, print, ["frozen"], {{"flush": True}}).start()
            lock(mutex)
            lock(mutex)
        return {{}}

train(small(0, steps=4, evaluate_every=2, evaluators=[Frozen()]), sys.argv[1])
"""


@pytest.mark.slow
def test_sigterm_to_a_run_that_waits_in_compiled_code(tmp_path):
    words = [sys.executable, "-c", SCRIPT.format(path=sys.path), str(tmp_path / "run")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "frozen\n"
        process.terminate()
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143
    assert "evaluators.frozen has not answered for" in " ".join(said.split())
    run = ganlab.Run(tmp_path / "run")
    assert (run.info["status"], run.info["signal"], run.info["step"]) == ("interrupted", "SIGTERM", 2)
    checkpoint = Checkpoints(run.path / "checkpoints").latest()
    assert (checkpoint.step, checkpoint.damage()) == (2, None)
    assert not (run.path / "lock.json").exists()
