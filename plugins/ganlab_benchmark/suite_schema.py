"""The keys of a suite, and what the value of each must be."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ganlab.errors import nearest
from ganlab.files import schema

TRAINING, COST, SENSITIVITY, CERTIFICATE = KINDS = ("training", "cost", "sensitivity", "certificate")
# What the benchmark itself sets in every trial.
_SET_BY_US = ("experiment.constraints", "experiment.steps", "experiment.seed")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_MOST = 1000

Rule = schema.Rule
FLAG, TEXT, WHOLE = schema.FLAG, schema.TEXT.called("a text in quotes"), schema.whole(1)
NAME = Rule("lower-case letters, digits and underscores, at most 40", lambda v: bool(_NAME.fullmatch(v)))
TEXTS = Rule("a list of texts", lambda v: _is_list(v, str))
SEEDS = Rule("a list of different whole numbers of at least 0, for example [0, 1, 2]", lambda v: _are_seeds(v))
SETTING = Rule(
    "a name of a setting as in an experiment file, for example 'experiment.batch_size'",
    lambda v: bool(v.strip()) and "=" not in v and v.isprintable(),
    lambda v: [("", v.strip(), Rule("left out: the benchmark itself sets it", lambda v: v not in _SET_BY_US))],
)
VALUE: Rule = Rule(
    "a number, a text, true, false, or a list of them",
    lambda v: isinstance(v, (str, bool)) or _is_number(v) or (isinstance(v, list) and all(map(VALUE.holds, v))),
)
VALUES = Rule(
    "a list of values, each once, for example [0.1, 1, 10]",
    lambda v: isinstance(v, list) and 0 < len(v) <= _MOST and len(set(map(literal, v))) == len(v),
    lambda v: schema.items(VALUE).parts(v),
)
FACTORS = Rule(
    "a list of factors above 0, each once, for example [0.1, 1, 10]",
    lambda v: _is_list(v, (int, float)) and len(set(v)) == len(v) > 0 and all(_is_number(x) and x > 0 for x in v),
)


def literal(value: Any) -> str:
    """A value as an experiment file has it."""
    if isinstance(value, str):
        return value if value[:1] in ("@", "%", "[", "(") else repr(value)
    return f"[{', '.join(map(literal, value))}]" if isinstance(value, list) else repr(value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_list(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MOST and all(isinstance(item, kind) for item in value)


def _are_seeds(value: Any) -> bool:
    whole = _is_list(value, int) and all(type(seed) is int and 0 <= seed < 2**31 for seed in value)
    return whole and len(set(value)) == len(value) > 0


def number(most: float = 1e6) -> Rule:
    """A number above 0."""
    return Rule(f"a number above 0, at most {most:g}", lambda v: _is_number(v) and 0 < v <= most)


def named(contents: str, names: Rule, values: Rule) -> Rule:
    """A table with names of one's own."""

    def parts(value: Mapping[str, Any]) -> Iterable[tuple[str, Any, Rule]]:
        for name, each in value.items():
            yield "NAME", name, names
            yield name, each, values

    return Rule(contents, lambda v: isinstance(v, dict) and len(v) <= _MOST, parts)


def keys(required: Mapping[str, Rule], optional: Mapping[str, Rule]) -> Rule:
    """A table with these keys and no others."""
    known = {**required, **optional}

    def parts(value: Mapping[str, Any]) -> Iterable[tuple[str, Any, Rule]]:
        yield from schema.fields(required, optional).parts(value)
        for key in value.keys() - known.keys():
            rule = f"left out: it is not a key of a suite.{nearest(key, known)} Keys here: {', '.join(known)}"
            yield key, value[key], Rule(rule, lambda v: False)

    return Rule("a table", lambda v: isinstance(v, dict), parts)


SETTINGS = named('a table of settings, "NAME" = VALUE', SETTING, VALUE)
FILES = named('a table, "NAME" = "WHERE ITS FILE IS FROM"', SETTING, TEXT)
_DATA = {"settings": SETTINGS, "files": FILES}
_ABOUT = {"title": TEXT, "about": TEXT}
_FIGURE = ({"better": schema.word("higher", "lower")}, {"label": TEXT, "about": TEXT})
FIGURE = keys(*_FIGURE)
TRAINED_FIGURE = keys({**_FIGURE[0], "metric": TEXT}, {**_FIGURE[1], "absolute": FLAG, "only": TEXTS})
TUNE = keys(
    {"figure": TEXT, "seeds": SEEDS},
    {
        "steps": WHOLE,
        "settings": SETTINGS,
        "grid": named('a table, "NAME" = [VALUE, VALUE]', SETTING, VALUES),
        "scale": named('a table, "NAME" = [FACTOR, FACTOR]', SETTING, FACTORS),
    },
)
REPORT = keys({"name": TEXT}, {"settings": SETTINGS})
_KIND = {"kind": schema.word(*KINDS), **_ABOUT}
_DERIVED = {**_KIND, "figures": named("a table of tables", NAME, FIGURE)}
TASKS = {
    TRAINING: keys(
        {"experiment": TEXT, "steps": WHOLE, "seeds": SEEDS},
        {
            **_KIND,
            "figures": named("a table of tables", NAME, TRAINED_FIGURE),
            **_DATA,
            "split": FLAG,
            "tuned_by": TEXT,
            "tune": TUNE,
            "report": schema.items(REPORT).called("a list of tables, each in double brackets"),
        },
    ),
    COST: keys({"experiment": TEXT}, {**_DERIVED, **_DATA, "rounds": WHOLE, "seconds": number()}),
    SENSITIVITY: keys({"of": TEXT}, {**_DERIVED, "within": number(1.0)}),
    CERTIFICATE: keys({"of": TEXT, "rungs": TEXTS}, {**_DERIVED, "seconds": number()}),
}


def _of_its_kind(task: Mapping[str, Any]) -> Iterable[tuple[str, Any, Rule]]:
    kind = task.get("kind", TRAINING)
    yield "kind", kind, _KIND["kind"]
    yield from TASKS[kind].parts(task)


TASK = Rule("a table", lambda v: isinstance(v, dict), _of_its_kind)
SUITE = keys({}, {**_ABOUT, "tasks": named("a table of tables", NAME, TASK)})
