"""The process that measures for a benchmark ends with it, however that ends."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

MEASURES = """
import sys
from ganlab_benchmark import measuring

# A measurement that never ends.
measuring.python_command = lambda *words: [sys.executable, "-c", "import time; time.sleep(600)"]
measuring.measured({}, threads=1, limit=600, stopped=lambda: False)
"""


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def sleeps(pid):
    """Whether it has become the measurement, which by then has asked to end with its parent."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(sys.executable.encode() + b"\0-c\0import time")


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def within(seconds, condition):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return condition()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_measurement_ends_with_the_benchmark(number):
    benchmark = subprocess.Popen([sys.executable, "-c", MEASURES])
    assert within(60, lambda: any(map(sleeps, children(benchmark.pid))))
    (child,) = children(benchmark.pid)
    benchmark.send_signal(number)
    benchmark.wait(30)
    assert within(10, lambda: not is_alive(child))
