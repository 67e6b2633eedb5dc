"""Overrides of experiment files by what they were asked for with: messages quote the option that somebody typed."""

from __future__ import annotations

import re
from collections.abc import Sequence


class Override(str):
    """`NAME=VALUE`, as `--param` takes it, that stands for something else which was asked for.

    Attributes:
        origin: What messages call it, such as `--seed 3`.
    """

    origin: str

    def __new__(cls, text: str, origin: str) -> Override:
        """Makes one.

        Args:
            text: The override.
            origin: What messages call it.
        """
        made = super().__new__(cls, text)
        made.origin = origin
        return made


def origin(param: str) -> str:
    """What messages call an override: the option that it stands for, or the `--param` itself."""
    return param.origin if isinstance(param, Override) else f"--param {param!r}"


def evaluators(names: Sequence[str], said: str) -> Override:
    """The override that has a run measured by other evaluators.

    Args:
        names: Each in full, in short, or a reference as in an experiment file: `kid`, `@small/evaluators.kid()`.
        said: What messages call the names.
    """
    return Override(f"experiment.evaluators=[{', '.join(map(_reference, names))}]", said)


def _reference(text: str) -> str:
    if re.fullmatch(r"[\w/.]+", text):
        return f"@{text if '.' in text else f'evaluators.{text}'}()"
    return text
