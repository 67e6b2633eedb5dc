"""Conditions on a metric, as a user writes them: `constraints/gradient_penalty/slope > 5`, `critic/loss nonfinite`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from ganlab.errors import ConfigError

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_CONDITION = re.compile(r"\s*([^<>=!\s]+)\s*(<=|>=|==|!=|<|>)\s*(\S+)\s*|\s*(?P<tag>\S+)\s+(is\s+)?nonfinite\s*")
_LONGEST = 1000


@dataclass(frozen=True)
class Condition:
    """A metric, and what is asked of its reduced value.

    Attributes:
        metric: The metric's tag.
        how: A comparison, or "nonfinite".
        number: The number compared with; NaN for "nonfinite".
    """

    metric: str
    how: str
    number: float = math.nan

    def holds(self, value: float) -> bool:
        """Whether a value meets the condition. A value that is not a number meets none but "nonfinite" and `!=`."""
        if self.how == "nonfinite":
            return not math.isfinite(value)
        return _COMPARISONS[self.how](value, self.number)

    def __str__(self) -> str:
        return f"{self.metric} {self.how}" + ("" if self.how == "nonfinite" else f" {self.number:g}")


def parse_condition(text: str) -> Condition:
    """Reads a condition.

    Args:
        text: A metric's tag, one of `<`, `<=`, `>`, `>=`, `==` and `!=`, and a number; or a tag and `nonfinite`.

    Raises:
        ConfigError: It is none.
    """
    text = text[:_LONGEST]
    try:
        if (match := _CONDITION.fullmatch(text)) is None:
            raise ValueError
        if match["tag"]:
            return Condition(match["tag"], "nonfinite")
        number = float(match[3])
    except ValueError:
        raise ConfigError(
            f"{text!r} is not a condition. Write a metric, a comparison (<, <=, >, >=, ==, !=) and a number, for "
            "example 'constraints/gradient_penalty/slope > 5', or 'critic/loss nonfinite'."
        ) from None
    if math.isnan(number):
        raise ConfigError(f"{text!r}: no value compares with nan. Write '{match[1]} nonfinite'.")
    return Condition(match[1], match[2], number)
