"""Schemas of JSON files: rules for values that may come from a stranger, checked once, where a file is read.

A schema is a rule made of rules: `fields({"step": whole()}, {"error": text()})` holds of an object that has a step, and
may have an error. A value that breaks a rule is named by its path in the file: `asked.seeds[2]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ganlab.support.paths import is_name
from ganlab.support.terminal import line

# The strings that stand for floats which JSON cannot express.
NON_FINITE = ("NaN", "Infinity", "-Infinity")

# Characters of a path that systems accept, and of a word that fits in the cell of a table.
_LONGEST_PATH, _LONGEST_WORD = 4096, 200

Parts = Callable[[Any], Iterable[tuple[str, Any, "Rule"]]]


class InvalidError(ValueError):
    """A value breaks its rule.

    Attributes:
        where: Its path from the top of the file; empty for the whole content.
        value: The value.
        rule: What it must be.
    """

    def __init__(self, value: Any, rule: str) -> None:
        super().__init__(value, rule)
        self.where, self.value, self.rule = "", value, rule

    def __str__(self) -> str:
        if self.value is _MISSING:
            return line(f"{self.where} is missing")
        if not self.where:
            return f"holds a {type(self.value).__name__}; it must hold {self.rule}"
        return line(f"{self.where} = {self.value!r:.60} must be {self.rule}")

    def within(self, part: str) -> InvalidError:
        """The error, seen from one level further up."""
        self.where = f"{part:.60}{'.' if self.where and not self.where.startswith('[') else ''}{self.where}"
        return self


@dataclass(frozen=True)
class Rule:
    """A rule for a value of a JSON file.

    Attributes:
        words: The rule, as it follows "must be".
        holds: Whether a value itself keeps it.
        parts: The parts of such a value: how each is named, its value and its rule.
    """

    words: str
    holds: Callable[[Any], bool]
    parts: Parts = lambda value: ()

    def check(self, value: Any) -> None:
        """Checks a value and all of its parts."""
        if not self.holds(value):
            raise InvalidError(value, self.words)
        for name, part, rule in self.parts(value):
            if rule.parts is Rule.parts and rule.holds(part):  # most of them, with nothing below
                continue
            try:
                rule.check(part)
            except InvalidError as error:
                raise error.within(name) from None

    def called(self, words: str) -> Rule:
        """The same rule in other words."""
        return replace(self, words=words)


class _Missing:
    """Stands for a field that is not there."""


_MISSING = _Missing()
ANYTHING = Rule("a value", lambda value: value is not _MISSING)
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
SCALAR = Rule("a number or a text", lambda value: isinstance(value, (bool, int, float, str)))
TEXT = Rule("a text", lambda value: isinstance(value, str))
WORD = Rule("a word", lambda value: isinstance(value, str) and len(value) <= _LONGEST_WORD)
PATH = Rule("a path", lambda value: isinstance(value, str) and "\0" not in value and len(value) < _LONGEST_PATH)
FIGURE = Rule("a number", lambda value: _is_number(value) or value in NON_FINITE)
"""A measured number, which need not be finite."""


def whole(least: int = 0, below: int = 2**31) -> Rule:
    """A whole number, below a power of two; true and false are not numbers."""
    limit = Rule(f"below 2**{below.bit_length() - 1}", lambda value: value < below)
    return Rule(
        f"a whole number of at least {least}",
        lambda value: type(value) is int and value >= least,
        lambda value: [("", value, limit)],
    )


def number(least: float, most: float) -> Rule:
    """A finite number between two others, or one of them."""
    words = f"a finite number from {least:g} to {most:g}"
    return Rule(words, lambda value: _is_number(value) and math.isfinite(value) and least <= value <= most)


def word(*choices: str) -> Rule:
    """One of some words."""
    return Rule(f"one of {', '.join(choices)}", lambda value: isinstance(value, str) and value in choices)


def null_or(rule: Rule) -> Rule:
    """Null, or a value that keeps a rule."""
    parts = rule.parts if rule.parts is Rule.parts else lambda value: () if value is None else rule.parts(value)
    return Rule(f"{rule.words} or null", lambda value: value is None or rule.holds(value), parts)


def items(rule: Rule) -> Rule:
    """A list whose items keep a rule."""
    return Rule(
        "a list",
        lambda value: isinstance(value, list),
        lambda value: ((f"[{number}]", item, rule) for number, item in enumerate(value)),
    )


def table(rule: Rule = ANYTHING, *, names: Callable[[str], bool] | None = None) -> Rule:
    """An object with any names, or with those for which `names` holds, whose values keep a rule."""

    def parts(value: dict[str, Any]) -> Iterable[tuple[str, Any, Rule]]:
        for name, item in value.items():
            if names is not None and not names(name):
                yield "<name>", name, _NAME
            if rule.parts is not Rule.parts or not rule.holds(item):
                yield name, item, rule

    return Rule("an object of fields", lambda value: isinstance(value, dict), parts)


def fields(required: Mapping[str, Rule], optional: Mapping[str, Rule] | None = None) -> Rule:
    """An object with some fields. Others are ignored: a newer ganlab may have written them."""
    rules = [*required.items(), *(optional or {}).items()]

    def parts(value: dict[str, Any]) -> Iterable[tuple[str, Any, Rule]]:
        return [(name, value.get(name, _MISSING), rule) for name, rule in rules if name in value or name in required]

    return Rule("an object of fields", lambda value: isinstance(value, dict), parts)


_NAME = Rule("a name that a file can have", is_name)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)
