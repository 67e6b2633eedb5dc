"""Checks of arguments, with the same messages in every dataset of this package."""

from __future__ import annotations

import os
from typing import Any

import ganlab


def refusal(dataset: str, parameter: str, value: Any, rule: str) -> ganlab.ConfigError:
    """The error for an argument: `datasets.<dataset>.<parameter> = <value> <rule>`."""
    return ganlab.ConfigError(f"datasets.{dataset}.{parameter} = {value!r} {rule}")


def whence(path: str) -> str:
    """A sentence on where a relative path was looked for; empty for an absolute one."""
    if os.path.isabs(os.path.expanduser(path)):
        return ""
    return (
        f" A relative path is taken from the working directory, {os.getcwd()!r}, and not from the experiment file: "
        "start the command in the folder that it is meant from, or write the whole path."
    )
