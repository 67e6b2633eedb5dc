"""Processor time of commands, as ratios: absolute times are those of the machine and of its other work."""

import os
import subprocess
import sys


def seconds_of_a_core(command, **given):
    """The least processor time of three runs."""
    used = []
    for _ in range(3):
        before = os.times()
        subprocess.run(command, capture_output=True, check=True, **given)
        after = os.times()
        used.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(used)


def against_imports(command, **given):
    """The processor time of a command, as a multiple of importing numpy, click and pluggy."""
    imports = [sys.executable, "-c", "import numpy, click, pluggy"]
    return seconds_of_a_core(command, **given) / seconds_of_a_core(imports)
