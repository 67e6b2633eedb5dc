"""The machines that this process may connect to: those that its user names, and no folder of a stranger alone.

An environment variable has them, so that the processes that it starts may connect to them, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ganlab.bounds import has_mark
from ganlab.plugins.annotations import annotation

VARIABLE = "GANLAB_MACHINES"
# What stands for this machine.
_HERE = ("", "local")
# Whether an experiment that names a machine is the user's word; not where a folder decides which ones are read.
experiments_are_trusted = True


def is_named(machine: str) -> bool:
    """Whether a machine is this one, or the user has named it."""
    return machine in (*_HERE, *os.environ.get(VARIABLE, "").split())


def distrust() -> None:
    """From now on experiments name no machine for the user: a sweep or a benchmark is resumed."""
    global experiments_are_trusted
    experiments_are_trusted = False


def name(machine: str) -> None:
    """Records that the user has named a machine."""
    if not is_named(machine):
        os.environ[VARIABLE] = f"{os.environ.get(VARIABLE, '')} {machine}".strip()


def name_all(make: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Records the machines among the arguments that a factory is called with."""
    for parameter, value in arguments.items():
        if isinstance(value, str) and takes(make, parameter):
            name(value)


def takes(make: Callable[..., Any], parameter: str) -> bool:
    """Whether a factory's parameter is a machine's name."""
    return has_mark(annotation(make, parameter), "machine")
