"""Checks of arguments, with the same messages in every dataset of this package."""

from __future__ import annotations

import math
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


def check_positive(dataset: str, **values: float) -> None:
    """Checks that numbers are finite and above zero.

    Args:
        dataset: The dataset's name, for the message.
        **values: Arguments by the names of their parameters.

    Raises:
        ConfigError: One is not; the message names it.
    """
    for name, value in values.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value <= 0:
            raise refusal(dataset, name, value, "must be a finite number above 0.")


def check_whole(dataset: str, **values: int) -> None:
    """Checks that numbers are whole, at least 1 and below 2**31.

    Args:
        dataset: The dataset's name, for the message.
        **values: Arguments by the names of their parameters.

    Raises:
        ConfigError: One is not; the message names it.
    """
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**31:
            raise refusal(dataset, name, value, "must be a whole number of at least 1 (and below 2**31).")
