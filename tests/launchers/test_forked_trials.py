"""Trials that are forked from a process with TensorFlow imported keep every promise of a process of their own."""

import os
import signal
import subprocess
import sys

import pytest
from jobs import SAVING, SWEEP, alive, parent, status, until

import ganlab

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="Trials are forked on Linux alone.")]

# A command of `python -P -m ganlab` that executes the file named by its argument.
PLUGIN = """
import click, ganlab

@ganlab.hookimpl
def ganlab_register_commands(cli):
    @cli.command("execute")
    @click.argument("file")
    def execute(file):
        exec(compile(open(file).read(), file, "exec"), {"__name__": "__main__"})
"""

GIVEN = """
import os, sys
print(os.environ["COLOUR"], os.getcwd(), sys.argv[1:], sys.stdin.read() == "", "tensorflow" in sys.modules, flush=True)
print("an error", file=sys.stderr)
sys.exit(3)
"""

DEAF = """
import os, signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "100"])
print("process", os.getpid(), "is training", flush=True)
time.sleep(60)
"""


ENDING = """
import atexit, sys, threading, time
atexit.register(print, "an exit function")
def late():
    time.sleep(0.2)
    print("a thread")
threading.Thread(target=late).start()
sys.exit({status})
"""


@pytest.fixture(scope="module")
def launcher():
    """One launcher for all of these tests: its process imports TensorFlow once."""
    launcher = ganlab.component("launchers", "local")(grace_seconds=5.0)
    yield launcher
    launcher.close()


def started(launcher, folder, code, name="job"):
    """Starts Python code as a command of ganlab."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)  # with other variables the launcher starts another server
    (folder / "ganlab_plugins.py").write_text(PLUGIN)
    (folder / f"{name}.py").write_text(code)
    command = [sys.executable, "-P", "-m", "ganlab", "execute", f"{name}.py"]
    return launcher.start(command, environment={"COLOUR": "red"}, folder=folder, log=folder / f"{name}.txt")


def training(log):
    """The process that says in a log that it is training; 0 before."""
    words = log.read_text().split() if log.exists() else []
    return int(words[1]) if "training" in words else 0


def test_it_has_environment_folder_arguments_log_and_status_of_its_own(launcher, tmp_path):
    (tmp_path / "job.txt").write_text("what was there\n")
    job = started(launcher, tmp_path, GIVEN)
    assert status(job) == 3
    assert job.poll() == 3  # and so it stays
    lines = (tmp_path / "job.txt").read_text().splitlines()
    assert lines == ["what was there", f"red {tmp_path} ['execute', 'job.py'] True True", "an error"]


def test_the_death_of_one_leaves_the_others_alone(launcher, tmp_path):
    other = started(launcher, tmp_path, SAVING, "other")
    until(lambda: training(tmp_path / "other.txt"))
    assert status(started(launcher, tmp_path, "import os; os.kill(os.getpid(), 9)")) == 137
    assert status(started(launcher, tmp_path, "import os; os.abort()")) == 134
    assert status(started(launcher, tmp_path, "import os; os._exit(7)")) == 7
    assert other.poll() is None
    other.stop()
    other.stop()
    assert status(other) == 143
    assert (tmp_path / "other.txt").read_text().count("saved") == 1
    other.stop()  # one that has ended is left alone


def test_one_that_is_stopped_at_once_ends_as_if_it_had_begun(launcher, tmp_path):
    job = started(launcher, tmp_path, "import time; time.sleep(60)")
    job.stop()
    assert status(job) == 143


def test_a_deaf_one_is_killed_with_all_that_it_started(launcher, tmp_path):
    job = started(launcher, tmp_path, DEAF)
    process = until(lambda: training(tmp_path / "job.txt"))
    group = os.getpgid(process)
    job.kill()
    assert status(job) == 137
    until(lambda: not any(alive(number) and _group(number) == group for number in _processes()))


def test_global_generators_differ_between_trials(launcher, tmp_path):
    code = "import numpy, random, uuid; print(numpy.random.rand(), random.random(), uuid.uuid4())"
    for name in ("one", "two"):
        assert status(started(launcher, tmp_path, code, name)) == 0
    one, two = ((tmp_path / f"{name}.txt").read_text().split() for name in ("one", "two"))
    assert len(one) == 3
    assert all(a != b for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize(("status", "expected"), [("None", 0), ("4", 4), ("'a message'", 1)])
def test_it_ends_as_python_does(launcher, tmp_path, status, expected):
    job = started(launcher, tmp_path, ENDING.format(status=status))
    assert until(lambda: job.poll() is not None and [job.poll()]) == [expected]
    lines = (tmp_path / "job.txt").read_text().splitlines()
    assert sorted(lines) == sorted(["a thread", "an exit function", *(["Error: a message"] if expected == 1 else [])])


def test_a_missing_folder_is_an_error(launcher, tmp_path):
    with pytest.raises(ganlab.RunError, match="gone"):
        launcher.start(
            [sys.executable, "-P", "-m", "ganlab"], environment={}, folder=tmp_path / "gone", log=tmp_path / "log.txt"
        )


def test_the_death_of_the_server_asks_its_trials_to_save_and_starts_the_next_as_a_process(tmp_path):
    launcher = ganlab.component("launchers", "local")(grace_seconds=5.0)
    job = started(launcher, tmp_path, SAVING)
    process = until(lambda: training(tmp_path / "job.txt"))
    os.kill(parent(parent(process)), signal.SIGKILL)
    assert status(job) == 143
    assert "saved" in (tmp_path / "job.txt").read_text()
    job = started(launcher, tmp_path, GIVEN, "next")
    assert status(job) == 3
    assert "False" in (tmp_path / "next.txt").read_text()  # TensorFlow was not imported for it
    launcher.close()


@pytest.mark.parametrize(("code", "how", "expected"), [(SAVING, "stop", 143), (DEAF, "stop", 143), (DEAF, "kill", 137)])
def test_trials_of_a_stopped_server_end_when_asked_to(tmp_path, code, how, expected):
    launcher = ganlab.component("launchers", "local")(grace_seconds=1.0)
    job = started(launcher, tmp_path, code)
    process = until(lambda: training(tmp_path / "job.txt"))
    server = parent(parent(process))
    os.kill(server, signal.SIGSTOP)
    getattr(job, how)()
    assert status(job, 20) == expected
    assert not alive(process)
    launcher.close()  # takes ten seconds, and ends the server
    assert not alive(server)


def test_where_tensorflow_cannot_be_imported_trials_are_processes_that_say_so(tmp_path, monkeypatch):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "tensorflow.py").write_text("raise ImportError('broken on purpose')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    launcher = ganlab.component("launchers", "local")()
    job = started(launcher, tmp_path, "import tensorflow")
    assert status(job) == 1
    assert "broken on purpose" in (tmp_path / "job.txt").read_text()
    launcher.close()


def test_waiting_ends_with_the_trial(tmp_path):
    (tmp_path / "ganlab_plugins.py").write_text(PLUGIN)
    (tmp_path / "job.py").write_text("import time; time.sleep(0.5)")
    launcher = ganlab.component("launchers", "local")()
    command = [sys.executable, "-P", "-m", "ganlab", "execute", "job.py"]
    try:
        job = launcher.start(command, environment={}, folder=tmp_path, log=tmp_path / "job.txt")
        waits = 0
        while job.poll() is None:
            launcher.wait(120)  # once until it has begun, once until it has ended
            waits += 1
        assert job.poll() == 0
        assert waits <= 3
    finally:
        launcher.close()


def test_none_outlives_a_sweep_that_was_killed(tmp_path):
    (tmp_path / "ganlab_plugins.py").write_text(PLUGIN)
    (tmp_path / "job.py").write_text(SAVING)
    command = '[sys.executable, "-P", "-m", "ganlab", "execute", "job.py"]'
    code = SWEEP.format(name="local", arguments={}, command=command)
    sweep = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    process = until(lambda: training(tmp_path / "log.txt"))
    server = parent(parent(process))
    sweep.kill()
    sweep.wait()
    until(lambda: not alive(process) and not alive(server))
    assert "saved" in (tmp_path / "log.txt").read_text()


def _processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _group(process):
    try:
        return os.getpgid(process)
    except ProcessLookupError:
        return None
