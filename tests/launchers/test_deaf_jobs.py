"""A job that heeds no signal ends with its sweep all the same, and so does what it started."""

import os
import signal
import subprocess
import sys
import time

import pytest
from jobs import status

import ganlab
from ganlab.errors import ConfigError

# Heeds nothing but SIGKILL, nor does the process that it starts.
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


def processes(told):
    return [int(word) for word in told("are deaf").split()[1:3]]


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def assert_gone(numbers, seconds=20):
    end = time.monotonic() + seconds
    while left := [number for number in numbers if alive(number)]:
        assert time.monotonic() < end, f"{left} live on"
        time.sleep(0.05)


def test_a_deaf_job_that_is_stopped_is_killed_after_its_grace(made, tried, told):
    launcher, _, _ = made
    assert launcher.grace_seconds == 0.5
    job = tried(launcher, DEAF)
    numbers = processes(told)
    begun = time.monotonic()
    job.stop()
    assert status(job) == 137
    assert 0.4 < time.monotonic() - begun < 20
    assert_gone(numbers)


def test_a_job_can_be_killed_at_once(tried, told):
    launcher = ganlab.component("launchers", "local")()
    job = tried(launcher, DEAF)
    numbers = processes(told)
    begun = time.monotonic()
    job.kill()
    assert status(job) == 137
    assert time.monotonic() - begun < 20 < launcher.grace_seconds
    assert_gone(numbers)
    job.kill()  # one that has ended is left alone


def test_a_deaf_job_does_not_outlive_a_sweep_that_was_killed(made, tmp_path, told):
    _, name, arguments = made
    arguments = {**arguments, **({"orphan_seconds": 2} if name == "submitit" else {})}
    code = SWEEP.format(name=name, arguments=arguments, child=DEAF)
    sweep = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    numbers = processes(told)
    sweep.kill()
    sweep.wait()
    # Ray kills the guard with its actor, and with it the command; what the command started is then nobody's to end.
    ours = numbers[:1] if name == "ray" else numbers
    try:
        assert_gone(ours, 30)
    finally:
        for number in numbers[len(ours) :]:
            os.kill(number, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody tells a command that its guard died")
def test_a_deaf_job_does_not_outlive_its_guard(tried, told):
    job = tried(ganlab.component("launchers", "local")(), DEAF)
    command, _ = processes(told)
    with open(f"/proc/{command}/stat") as file:
        guard = int(file.read().rpartition(")")[2].split()[1])
    os.kill(guard, 9)
    assert status(job) == 137
    assert_gone([command])


def test_what_a_job_leaves_behind_ends_with_it(tried, told):
    code = DEAF.replace("if child:", "if child:\n    open('there', 'w')").replace(
        "while True:", "while not child or not os.path.exists('there'):"
    )
    job = tried(ganlab.component("launchers", "local")(), code)
    numbers = processes(told)
    assert status(job) == 0
    assert_gone(numbers)


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan")])
def test_a_grace_that_is_none_is_refused(seconds):
    with pytest.raises(ConfigError, match=r"launchers\.local\.grace_seconds = .* must be 0 or more"):
        ganlab.component("launchers", "local")(grace_seconds=seconds)
