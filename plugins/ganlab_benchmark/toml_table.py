"""A table of a TOML file, whose values are taken one by one with their types checked; what is left over is an error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ganlab.commands import line
from ganlab.errors import ConfigError, nearest

_MISSING: Any = object()
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# What the benchmark itself sets in every trial.
SET_BY_US = ("experiment.constraints", "experiment.steps", "experiment.seed")
_MOST = 1000


class Table:
    """A table of a file."""

    def __init__(self, content: Mapping[str, Any], file: str, at: str) -> None:
        """Takes the content, and where it stands: the file, and the path of the table in it."""
        self._left, self._file, self._at = dict(content), file, at
        self._known: list[str] = []

    def fail(self, key: str, value: Any, rule: str) -> NoReturn:
        """Raises the error for a value.

        Raises:
            ConfigError: Always.
        """
        where = ".".join(filter(None, (self._at, key)))
        raise ConfigError(f"{self._file}: {line(where)} = {line(repr(value))[:80]} {rule.rstrip('.')}.")

    def done(self) -> None:
        """Refuses keys that nothing has taken.

        Raises:
            ConfigError: There is one.
        """
        for key in self._left:
            where = ".".join(filter(None, (self._at, key)))
            raise ConfigError(
                f"{self._file}: {line(where)} is not a key of a suite.{nearest(key, self._known)} "
                f"Keys here: {', '.join(self._known)}."
            )

    def check_name(self, name: str) -> None:
        """Refuses a name that cannot name a folder.

        Raises:
            ConfigError: It cannot.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{self._file}: {line(self._at)}: the name {line(repr(name))[:80]} must be lower-case letters, digits "
                "and underscores, at most 40. Rename it."
            )

    def text(self, key: str, default: Any = _MISSING) -> str:
        """A text."""
        return str(self._take(key, default, lambda v: isinstance(v, str), "must be a text in quotes"))

    def texts(self, key: str, default: Any = _MISSING) -> list[str]:
        """A list of texts."""
        rule = "must be a list of texts"
        return list(self._take(key, default, lambda v: _is_list(v, str), rule))

    def choice(self, key: str, choices: Sequence[str], default: Any = _MISSING) -> str:
        """One of some texts."""
        rule = f"must be one of {', '.join(map(repr, choices))}"
        return str(self._take(key, default, lambda v: isinstance(v, str) and v in choices, rule))

    def flag(self, key: str, default: bool) -> bool:
        """A truth value."""
        return bool(self._take(key, default, lambda v: isinstance(v, bool), "must be true or false"))

    def whole(self, key: str, default: Any = _MISSING) -> int:
        """A whole number of at least 1."""
        rule = "must be a whole number of at least 1, below 2147483648"
        return int(self._take(key, default, lambda v: _is_whole(v) and 1 <= v < 2**31, rule))

    def number(self, key: str, default: float, *, most: float = 1e6) -> float:
        """A number above 0."""
        rule = f"must be a number above 0, at most {most:g}"
        return float(self._take(key, default, lambda v: _is_number(v) and 0 < v <= most, rule))

    def seeds(self, key: str) -> list[int]:
        """Different seeds."""
        rule = "must be a list of different whole numbers of at least 0, for example [0, 1, 2]"
        return list(self._take(key, _MISSING, _are_seeds, rule))

    def settings(self, key: str) -> dict[str, str]:
        """Settings of an experiment by name, as an experiment file has their values."""
        found = self._take(key, {}, lambda v: isinstance(v, dict), 'must be a table of settings, "NAME" = VALUE')
        return {self._setting(key, name): self._literal(f"{key}.{name}", value) for name, value in found.items()}

    def grid(self, key: str) -> dict[str, list[str]]:
        """Lists of values of settings."""
        found = self._take(key, {}, lambda v: isinstance(v, dict), 'must be a table, "NAME" = [VALUE, VALUE]')
        made = {}
        for name, values in found.items():
            if not (isinstance(values, list) and 0 < len(values) <= _MOST):
                self.fail(f"{key}.{name}", values, "must be a list of values, for example [0.1, 1, 10]")
            texts = [self._literal(f"{key}.{name}", value) for value in values]
            if len(set(texts)) < len(texts):
                self.fail(f"{key}.{name}", values, "must have each value once")
            made[self._setting(key, name)] = texts
        return made

    def factors(self, key: str) -> dict[str, list[float]]:
        """Lists of factors of settings' defaults."""
        found = self._take(key, {}, lambda v: isinstance(v, dict), 'must be a table, "NAME" = [FACTOR, FACTOR]')
        for name, values in found.items():
            if not (_is_list(values, (int, float)) and values and all(_is_number(v) and v > 0 for v in values)):
                self.fail(f"{key}.{name}", values, "must be a list of factors above 0, for example [0.1, 1, 10]")
            if len(set(values)) < len(values):
                self.fail(f"{key}.{name}", values, "must have each factor once")
        return {self._setting(key, name): [float(value) for value in values] for name, values in found.items()}

    def optional(self, key: str) -> Table | None:
        """A table, or None if there is none."""
        found = self._take(key, None, lambda v: isinstance(v, dict), "must be a table")
        return None if found is None else Table(found, self._file, ".".join(filter(None, (self._at, key))))

    def tables(self, key: str) -> dict[str, Table]:
        """Tables by name."""
        rule = "must be a table of tables"
        found = self._take(key, {}, lambda v: isinstance(v, dict) and _is_list(list(v.values()), dict), rule)
        at = ".".join(filter(None, (self._at, key)))
        return {name: Table(content, self._file, f"{at}.{name}") for name, content in found.items()}

    def list_of_tables(self, key: str) -> list[Table]:
        """A list of tables, each written as `[[...]]`."""
        where = ".".join(filter(None, (self._at, key)))
        found = self._take(key, [], lambda v: _is_list(v, dict), f"must be a list of tables, each [[{where}]]")
        return [Table(content, self._file, f"{where}[{number}]") for number, content in enumerate(found)]

    def _take(self, key: str, default: Any, holds: Callable[[Any], bool], rule: str) -> Any:
        self._known.append(key)
        if key not in self._left:
            if default is _MISSING:
                where = ".".join(filter(None, (self._at, key)))
                raise ConfigError(f"{self._file}: {line(where)} is missing: it {rule}.")
            return default
        value = self._left.pop(key)
        if not holds(value):
            self.fail(key, value, rule)
        return value

    def _setting(self, key: str, name: str) -> str:
        plain = name.strip()
        if not plain or "=" in plain or not plain.isprintable():
            self.fail(key, name, "must name settings as in an experiment file, for example 'experiment.batch_size'")
        if plain in SET_BY_US:
            self.fail(f"{key}.{plain}", "...", "must not be set: the benchmark itself sets it in every trial")
        return plain

    def _literal(self, key: str, value: Any) -> str:
        """A value as an experiment file has it."""
        if isinstance(value, str):
            return value if value[:1] in ("@", "%", "[", "(") else repr(value)
        if isinstance(value, bool) or _is_number(value):
            return repr(value)
        if isinstance(value, list):
            return f"[{', '.join(self._literal(key, item) for item in value)}]"
        self.fail(key, value, "must be a number, a text, true, false, or a list of them")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_list(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MOST and all(isinstance(item, kind) for item in value)


def _are_seeds(value: Any) -> bool:
    whole = isinstance(value, list) and all(_is_whole(seed) and 0 <= seed < 2**31 for seed in value)
    return whole and 0 < len(value) <= _MOST and len(set(value)) == len(value)
