"""A signal that arrives while a trial is being forked ends it; it does not wait for the grace period."""

import os
import signal
import subprocess
import sys
import time

import pytest
from ganlab_builtin.launchers import guard

# The guard of a trial whose fork takes long, as that of a large process does.
SCRIPT = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import guard

settle = guard._settle

def slowly(parent):
    print("forked", flush=True)
    time.sleep(0.5)
    settle(parent)

guard._settle = slowly
sys.exit(guard.guard(os.getppid(), 30.0, lambda: time.sleep(60)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_a_trial_is_forked_is_not_lost(number):
    command = [sys.executable, "-I", "-S", "-c", SCRIPT, os.path.dirname(guard.__file__)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "forked\n"
        began = time.monotonic()
        process.send_signal(number)
        assert process.wait(20) == 128 + signal.SIGTERM
        assert time.monotonic() - began < 10


def test_a_system_that_lets_no_process_start_is_named():
    script = SCRIPT.partition("settle =")[0] + (
        "def fork():\n    raise BlockingIOError(11, 'Resource temporarily unavailable')\n\nos.fork = fork\n"
        "sys.exit(guard.guard(os.getppid(), 30.0, lambda: None))\n"
    )
    command = [sys.executable, "-I", "-S", "-c", script, os.path.dirname(guard.__file__)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (guard.CANNOT_START, "")
    assert done.stderr == "The system lets no further process start: Resource temporarily unavailable.\n"
