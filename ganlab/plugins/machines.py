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
# Whether experiments name machines for the user.
_are_the_users = True


def is_named(machine: str) -> bool:
    """Whether a machine is this one, or the user has named it."""
    return machine in (*_HERE, *os.environ.get(VARIABLE, "").split())


def distrust() -> None:
    """From now on no experiment names a machine: a sweep's or a benchmark's folder decides which ones are read."""
    global _are_the_users
    _are_the_users = False


def are_named_by(is_data: bool) -> bool:
    """Whether an experiment's line is the user's word, and not that of a file in a folder that may be a stranger's."""
    return _are_the_users and not is_data


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
