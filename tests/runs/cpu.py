"""Processor time of commands, as ratios: absolute times are those of the machine and of its other work."""

import resource
import subprocess
import sys


def seconds_of_a_core(command, **given):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, **given)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def against_imports(command, limit, **given):
    """The processor time of a command, as a multiple of importing numpy, click and pluggy.

    Other work on a core's caches, or on its other thread, lengthens one of two measurements by half. So both are the
    least of six, and of up to thirty while their ratio is not under the limit.
    """
    imports = [sys.executable, "-c", "import numpy, click, pluggy"]
    pairs = []
    while True:
        pairs.append((seconds_of_a_core(command, **given), seconds_of_a_core(imports)))
        ratio = min(first for first, _ in pairs) / min(second for _, second in pairs)
        if len(pairs) == 30 or (len(pairs) >= 6 and ratio < limit):
            return ratio
