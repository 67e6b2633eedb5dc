"""A job that ignores signals still ends with its sweep, and so do the processes that it started."""

import os
import signal
import subprocess
import sys
import time

import pytest
from jobs import status

import ganlab
from ganlab.errors import ConfigError

# Ignores everything but SIGKILL, and so does the process that it starts.
DEAF = """
import os, signal, sys, time
for number in range(1, signal.NSIG):
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
child = os.fork()
if child:
    print("processes", os.getpid(), child, "are deaf", flush=True)
while True:
    time.sleep(10)
"""

SWEEP = """
import pathlib, sys, time
import ganlab
launcher = ganlab.component("launchers", {name!r})(grace_seconds=0.5, **{arguments!r})
here = pathlib.Path.cwd()
job = launcher.start([sys.executable, "-c", {child!r}], environment={{}}, folder=here, log=here / "log.txt")
while job.poll() is None:
    time.sleep(0.1)
"""

LAUNCHERS = [("local", {}), ("submitit", {"cluster": "local"}), pytest.param(("ray", {}), marks=pytest.mark.slow)]


@pytest.fixture(params=LAUNCHERS, ids=lambda param: param[0])
def made(request):
    """A launcher that waits half a second for jobs that were asked to end, with its name and arguments."""
    name, arguments = request.param
    if name != "local":
        pytest.importorskip(name, reason=f"{name} is of an extra")
    launcher = ganlab.component("launchers", name)(grace_seconds=0.5, **arguments)
    yield launcher, name, arguments
    launcher.close()


def processes(wait_for_log):
    return [int(word) for word in wait_for_log("are deaf").split()[1:3]]


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def assert_gone(numbers, seconds=120):
    end = time.monotonic() + seconds
    while left := [number for number in numbers if alive(number)]:
        assert time.monotonic() < end, f"{left} live on"
        time.sleep(0.05)


def test_a_deaf_job_that_is_stopped_is_killed_after_its_grace(made, tried, wait_for_log):
    launcher, _, _ = made
    assert launcher.grace_seconds == 0.5
    job = tried(launcher, DEAF)
    numbers = processes(wait_for_log)
    begun = time.monotonic()
    job.stop()
    assert status(job) == 137
    assert 0.4 < time.monotonic() - begun < 20
    assert_gone(numbers)


def test_a_job_can_be_killed_at_once(tried, wait_for_log):
    launcher = ganlab.component("launchers", "local")()
    job = tried(launcher, DEAF)
    numbers = processes(wait_for_log)
    begun = time.monotonic()
    job.kill()
    assert status(job) == 137
    assert time.monotonic() - begun < 20 < launcher.grace_seconds
    assert_gone(numbers)
    job.kill()  # one that has ended is left alone


def test_a_deaf_job_does_not_outlive_a_sweep_that_was_killed(made, tmp_path, wait_for_log):
    _, name, arguments = made
    arguments = {**arguments, **({"orphan_seconds": 2} if name == "submitit" else {})}
    code = SWEEP.format(name=name, arguments=arguments, child=DEAF)
    sweep = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    numbers = processes(wait_for_log)
    sweep.kill()
    sweep.wait()
    # Ray kills the guard with its actor, and with it the command; nothing is left to end what the command started.
    ours = numbers[:1] if name == "ray" else numbers
    try:
        assert_gone(ours)
    finally:
        for number in numbers[len(ours) :]:
            os.kill(number, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody tells a command that its guard died")
def test_a_deaf_job_does_not_outlive_its_guard(tried, wait_for_log):
    job = tried(ganlab.component("launchers", "local")(), DEAF)
    command, _ = processes(wait_for_log)
    with open(f"/proc/{command}/stat") as file:
        guard = int(file.read().rpartition(")")[2].split()[1])
    os.kill(guard, 9)
    assert status(job) == 137
    assert_gone([command])


def test_processes_left_by_a_job_end_with_it(tried, wait_for_log):
    code = DEAF.replace("if child:", "if child:\n    open('there', 'w')").replace(
        "while True:", "while not child or not os.path.exists('there'):"
    )
    job = tried(ganlab.component("launchers", "local")(), code)
    numbers = processes(wait_for_log)
    assert status(job) == 0
    assert_gone(numbers)


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan")])
def test_an_invalid_grace_period_is_refused(seconds):
    with pytest.raises(ConfigError, match=r"launchers\.local\.grace_seconds = .* must be at least 0 and finite"):
        ganlab.component("launchers", "local")(grace_seconds=seconds)
