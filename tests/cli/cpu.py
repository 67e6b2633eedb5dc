"""Processor time of commands, as ratios: absolute times are those of the machine and of its other work."""

import resource
import subprocess
import sys


def seconds_of_a_core(command, **given):
    """The processor time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, **given)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def against_imports(command, **given):
    """The processor time of a command, as a multiple of importing numpy, click and pluggy: the least of six each."""
    imports = [sys.executable, "-c", "import numpy, click, pluggy"]
    pairs = [(seconds_of_a_core(command, **given), seconds_of_a_core(imports)) for _ in range(6)]
    return min(first for first, _ in pairs) / min(second for _, second in pairs)
