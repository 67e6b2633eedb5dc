"""The only place where processes start: nothing is imported from the working directory, and no child is left behind.

The working directory may be a stranger's, and so may the folders that a run or a sweep names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ganlab.support import with_parent

CANNOT_START = with_parent.CANNOT_START


def python_command(*arguments: str) -> list[str]:
    """A command for this Python that imports nothing from the working directory.

    Args:
        *arguments: Python's own arguments, for example `"-m", "ganlab", "run"`.
    """
    flags = ["-P"]
    flags += ["-s"] if sys.flags.no_user_site else []
    flags += ["-E"] if sys.flags.ignore_environment else []
    return [sys.executable, *flags, *arguments]


def start_process(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, survives: bool = False, **options: Any
) -> subprocess.Popen[Any]:
    """Starts a command, which on Linux is killed when the thread that started it ends.

    Args:
        command: The command and its arguments; one that cannot be started ends with 127.
        env: The whole environment; None for this process's. Python does not import from folders of PYTHONPATH that are
            relative to the child's working directory.
        survives: Whether it outlives this process, because it ends by other means.
        **options: Further options of `subprocess.Popen`.
    """
    return subprocess.Popen(_bound(command, survives), env=_environment(env), **options)


def run_process(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Like `start_process`, but waits for the command's end; the options are those of `subprocess.run`."""
    return subprocess.run(_bound(command, False), env=_environment(env), **options)


def _bound(command: Sequence[str], survives: bool) -> list[str]:
    if survives or sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", str(Path(with_parent.__file__).resolve()), str(os.getpid()), *command]


def _environment(env: Mapping[str, str] | None) -> dict[str, str]:
    """The environment of a child, in which a Python that it starts in turn does not import from its folder either."""
    made = {**(os.environ if env is None else env), "PYTHONSAFEPATH": "1"}
    # The child may have another working directory.
    places = [os.path.abspath(place) for place in made.pop("PYTHONPATH", "").split(os.pathsep) if place]
    return {**made, "PYTHONPATH": os.pathsep.join(places)} if places else made
