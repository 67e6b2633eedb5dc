"""A job that ignores signals still ends with its sweep, and so do the processes that it started."""

import os
import signal
import subprocess
import sys
import time

import pytest
from jobs import alive, parent, status, sweep, until

import ganlab

pytestmark = pytest.mark.slow

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

LAUNCHERS = [("local", {}), ("submitit", {"cluster": "local"}), ("ray", {})]


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


def test_a_deaf_job_that_is_stopped_is_killed_after_its_grace(made, tried, wait_for_log):
    launcher, _, _ = made
    assert launcher.grace_seconds == 0.5
    job = tried(launcher, DEAF)
    numbers = processes(wait_for_log)
    begun = time.monotonic()
    job.stop()
    assert status(job) == 137
    assert 0.4 < time.monotonic() - begun < 20
    until(lambda: not any(map(alive, numbers)), 120)


def test_a_job_can_be_killed_at_once(tried, wait_for_log):
    launcher = ganlab.component("launchers", "local")()
    job = tried(launcher, DEAF)
    numbers = processes(wait_for_log)
    begun = time.monotonic()
    job.kill()
    assert status(job) == 137
    assert time.monotonic() - begun < 20 < launcher.grace_seconds
    until(lambda: not any(map(alive, numbers)), 120)
    job.kill()  # one that has ended is left alone


def test_a_deaf_job_does_not_outlive_a_sweep_that_was_killed(made, tmp_path, wait_for_log):
    _, name, arguments = made
    arguments = {"grace_seconds": 0.5, **arguments, **({"orphan_seconds": 2} if name == "submitit" else {})}
    process = subprocess.Popen([sys.executable, "-c", sweep(name, arguments, DEAF)], cwd=tmp_path)
    numbers = processes(wait_for_log)
    process.kill()
    process.wait()
    # Ray kills the guard with its actor, and with it the command; nothing is left to end what the command started.
    ours = numbers[:1] if name == "ray" else numbers
    try:
        until(lambda: not any(map(alive, ours)), 120)
    finally:
        for number in numbers[len(ours) :]:
            os.kill(number, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody tells a command that its guard died")
def test_a_deaf_job_does_not_outlive_its_guard(tried, wait_for_log):
    job = tried(ganlab.component("launchers", "local")(), DEAF)
    command, child = processes(wait_for_log)
    try:
        os.kill(parent(command), 9)
        assert status(job) == 137
        until(lambda: not alive(command), 120)
    finally:
        os.kill(child, signal.SIGKILL)  # nobody else ends what a command started


def test_processes_left_by_a_job_end_with_it(tried, wait_for_log):
    code = DEAF.replace("if child:", "if child:\n    open('there', 'w')").replace(
        "while True:", "while not child or not os.path.exists('there'):"
    )
    job = tried(ganlab.component("launchers", "local")(), code)
    numbers = processes(wait_for_log)
    assert status(job) == 0
    until(lambda: not any(map(alive, numbers)), 120)
