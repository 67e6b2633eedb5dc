"""Parses what a sweep varies, as typed on the command line: lists of values, ranges and seeds."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Mapping, Sequence

from ganlab import Choices, Range
from ganlab.commands import LISTS, takes_fractions
from ganlab.errors import ConfigError

Space = Mapping[str, Choices | Range]

_SEED = "experiment.seed"
_MOST_SEEDS = 100_000
NAME = re.compile(r"\s*[\w./]+\s*")


def parse_space(grids: Sequence[str], ranges: Sequence[str]) -> dict[str, Choices | Range]:
    """The settings that a sweep varies.

    Args:
        grids: `'NAME=[VALUE, VALUE]'`, each value as an experiment file has it. Of a setting that is a list of parts, a
            single part stands for a list of one.
        ranges: `'NAME=LOW..HIGH'` or `'NAME=LOW..HIGH:log'`; whole numbers only, if the setting takes no others.

    Returns:
        The possible values of each name, in the order given.

    Raises:
        ConfigError: An option has another form, a name appears twice, or a component is unknown.
    """
    space: dict[str, Choices | Range] = {}
    for option, texts, parse in (("--grid", grids, _choices), ("--range", ranges, _range)):
        for text in texts:
            name, equals, value = (part.strip() for part in text.partition("="))
            where = f"{option} {text!r}"
            if not (equals and value and NAME.fullmatch(name)):
                form = "'NAME=[VALUE, VALUE]'" if option == "--grid" else "'NAME=LOW..HIGH'"
                raise ConfigError(f"{where}: must have the form {form}.")
            if name in space:
                raise ConfigError(f"{where}: {name} is varied twice. Give all of its values at once.")
            if name == _SEED:
                raise ConfigError(f"{where}: seeds are not varied as a setting. Give them with --seeds.")
            space[name] = parse(name, value, where)
    return space


def parse_seeds(text: str) -> list[int]:
    """Parses seeds: `'0..4'` is 0, 1, 2, 3 and 4, `'0,3,7'` those three, and the two may be mixed.

    Raises:
        ConfigError: The text has another form, a seed appears twice, or one is out of range.
    """
    seeds: list[int] = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d+)\s*(?:\.\.\s*(\d+)\s*)?", part)
        if not ends:
            raise ConfigError(f"--seeds {text!r}: must be whole numbers, for example 0..4 or 0,3,7.")
        low, high = int(ends[1]), int(ends[2] or ends[1])
        if high < low:
            raise ConfigError(f"--seeds {text!r}: {part.strip()} is empty. Write {high}..{low}.")
        if high >= 2**31:
            raise ConfigError(f"--seeds {text!r}: a seed must be below 2147483648.")
        if len(seeds) + high - low >= _MOST_SEEDS:
            raise ConfigError(f"--seeds {text!r}: there may be at most {_MOST_SEEDS:,}.")
        seeds += range(low, high + 1)
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"--seeds {text!r}: a seed appears twice, and would give the same run.")
    return seeds


def _choices(name: str, value: str, where: str) -> Choices:
    values = _items(value, where)
    if name.removeprefix("experiment.") in LISTS and name.startswith("experiment."):
        values = [text if text[0] in "[(%" else f"[{text}]" for text in values]
    written: dict[str, str] = {}
    for text in values:
        meaning = _meaning(text)
        other = written.get(meaning)
        if other is not None:
            problem = f"{text} appears twice" if other == text else f"{other} and {text} are the same value"
            raise ConfigError(f"{where}: {problem}.")
        written[meaning] = text
    return Choices(tuple(values))


def _meaning(text: str) -> str:
    """The same text for one value, however it is written: `1`, `1.0` and `1e0`. A reference stands for itself."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    try:
        return repr(value if isinstance(value, (bool, str)) else float(value))
    except (TypeError, ValueError, OverflowError):
        return repr(value)


def _items(text: str, where: str) -> list[str]:
    """The texts of a list's items; their meaning is left to the reader of experiments."""
    error = ConfigError(f"{where}: must be a list of values, for example [0.1, 1, 10].")
    if not (text.startswith("[") and text.endswith("]")):
        raise error
    inner = " ".join(text[1:-1].splitlines()).strip().removesuffix(",")
    starts, depth = [0], 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(inner).readline):
            depth += (token.string in ("[", "(", "{")) - (token.string in ("]", ")", "}"))
            if token.string == "," and depth == 0:
                starts.append(token.end[1])
            if depth < 0:
                raise error
    except (tokenize.TokenError, SyntaxError):
        raise ConfigError(f"{where}: a bracket or a quote is not closed.") from None
    ends = [start - 1 for start in starts[1:]] + [len(inner)]
    items = [inner[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    if not all(items):
        raise error
    return items


def _range(name: str, value: str, where: str) -> Range:
    ends = value.removesuffix(":log").split("..")
    is_log = value.endswith(":log")
    try:
        low, high = map(float, ends)
    except ValueError:  # not two, or not numbers
        raise ConfigError(
            f"{where}: must have the form 'NAME=LOW..HIGH' or 'NAME=LOW..HIGH:log', with two numbers."
        ) from None
    if not (low < high and high - low < float("inf")):
        raise ConfigError(f"{where}: the first number must be below the second, and both finite.")
    if is_log and low <= 0:
        raise ConfigError(f"{where}: on a log scale both numbers must be above 0. Raise {ends[0]}.")
    fractions = takes_fractions(name)
    whole = low.is_integer() and high.is_integer()
    if fractions is False and not whole:
        raise ConfigError(f"{where}: {name} takes only whole numbers.")
    written_whole = all(re.fullmatch(r"[+-]?\d+", end) for end in ends)
    return Range(low, high, log=is_log, integer=written_whole if fractions is None else not fractions)
