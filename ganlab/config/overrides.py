"""Overrides of experiment files that remember their option, so that messages quote what the user typed."""

from __future__ import annotations

import re
from collections.abc import Sequence


class Override(str):
    """`NAME=VALUE`, as for `--param`, that stands for another option.

    Attributes:
        origin: Its name in messages, for example `--seed 3`.
    """

    origin: str

    def __new__(cls, text: str, origin: str) -> Override:
        """Creates an override."""
        override = super().__new__(cls, text)
        override.origin = origin
        return override


def origin(param: str) -> str:
    """The name of an override in messages: the option that it stands for, or the `--param` itself."""
    return param.origin if isinstance(param, Override) else f"--param {param!r}"


def components(part: str, names: Sequence[str], origin: str) -> Override:
    """The override that replaces a run's evaluators or diagnostics.

    Args:
        part: `evaluators` or `diagnostics`.
        names: Each in full, in short, or a reference as in an experiment file: `kid`, `@small/evaluators.kid()`.
        origin: The name of the override in messages.
    """
    return Override(f"experiment.{part}=[{', '.join(_reference(part, name) for name in names)}]", origin)


def _reference(kind: str, text: str) -> str:
    if re.fullmatch(r"[\w/.]+", text):
        return f"@{text if '.' in text else f'{kind}.{text}'}()"
    return text
