"""The contents of sweep.json: the request for a sweep, and the settings that its search proposed.

`Request` declares each setting of a sweep once: its type, default, rule and help. The parameters of `ganlab.sweep`, the
options of `ganlab sweep` and the fields of sweep.json follow from it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast

from ganlab.commands import objects, several
from ganlab.errors import ConfigError
from ganlab.files import schema
from ganlab_sweep.space import parse_seeds

Given = TypeVar("Given")
Kept = TypeVar("Kept")


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of values.

    Attributes:
        schema: The rule for what a request keeps, and sweep.json holds.
        take: Turns a value and the setting's name into what a request keeps; a wrong value raises `ConfigError`.
    """

    schema: Any = None
    take: Callable[[Any, str], Any] = lambda value, name: value


class Setting(Generic[Given, Kept]):
    """A field of a request.

    Attributes:
        kind: The kind of its values.
        default: The value of a request that does not set it.
        about: Its help.
        python: Its help in Python, if that is another.
        option: Its option on the command line; empty if it has none, or one that other commands share.
        metavar: The placeholder there for its value.
        may_change: Whether a sweep may be resumed with another value.
        is_stored: Whether sweep.json has it under `asked`.
        is_given: Whether a user gives it.
    """

    def __init__(
        self,
        kind: Kind,
        default: Given,
        about: str = "",
        *,
        python: str = "",
        option: str = "",
        metavar: str | None = None,
        may_change: bool = False,
        is_stored: bool = True,
        is_given: bool = True,
    ) -> None:
        self.kind, self.default, self.about, self.python = kind, default, about, python or about
        self.option, self.metavar = option, metavar
        self.may_change, self.is_stored, self.is_given = may_change, is_stored, is_given

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, request: Any, owner: type) -> Kept:
        setting: Any = self.default if request is None else vars(request)[self.name]
        return cast(Kept, setting)

    def __set__(self, request: Any, value: Given) -> None:
        kept = self.kind.take(value, self.name)
        try:
            (self.kind.schema or schema.ANYTHING).check(list(kept) if isinstance(kept, tuple) else kept)
        except schema.InvalidError as error:
            rule = error.rule.replace("null", "None")
            raise ConfigError(f"{self.name} = {error.value!r:.80} must be {rule}.") from None
        vars(request)[self.name] = kept


def _texts_of_dict(written: Callable[[Any], str]) -> Callable[[Any, str], tuple[str, ...]]:
    """Takes a dict as texts `NAME=VALUE`; a tuple of such texts stays, as the command line and sweep.json give it."""

    def take(value: Any, name: str) -> tuple[str, ...]:
        if not isinstance(value, (Mapping, tuple, type(None))):
            raise ConfigError(f"{name} = {value!r:.80} must be a dict.")
        if not isinstance(value, Mapping):
            return value or ()
        return tuple(f"{key}={written(each)}" for key, each in value.items())

    return take


def _path_or_none(value: Any, name: str) -> str | None:
    return None if value is None else os.fspath(several.path(value, name))


def _seeds(value: Any, name: str) -> list[int]:
    if not isinstance(value, str):
        value = ",".join(map(str, several.whole_numbers(value, name)))
        if not value:
            return []
    return parse_seeds(value)


def literal(value: Any) -> str:
    """A value as an experiment file has it.

    Raises:
        ConfigError: No file can hold it.
    """
    if isinstance(value, str):
        return value if value[:1] in ("@", "%") else repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if unwritable := objects(value):
        raise ConfigError(
            f"{next(iter(unwritable.values()))!r:.80} was made in Python, and the trials of a sweep are processes of "
            "their own, which cannot make it again. Make it a component of a ganlab_plugins.py, and name it, for "
            "example '@constraints.mine()'."
        )
    return repr(value.item() if hasattr(value, "item") else value)


PATHS = Kind(schema.items(schema.PATH), several.paths)
PATH_OR_NONE = Kind(schema.null_or(schema.PATH), _path_or_none)
FOLDER = Kind(take=several.path)
TEXTS = Kind(schema.items(schema.TEXT), several.texts)
TEXT_OR_NONE = Kind(schema.null_or(schema.TEXT))
NAME = Kind(schema.WORD)
LISTS = Kind(schema.items(schema.TEXT), _texts_of_dict(lambda value: literal(several.values(value))))
RANGES = Kind(schema.items(schema.TEXT), _texts_of_dict(str))
VALUES = Kind(schema.items(schema.TEXT), _texts_of_dict(literal))
SEEDS = Kind(schema.items(schema.whole()), _seeds)
SEED = Kind(schema.whole(), several.whole_number)
COUNT = Kind(schema.whole(1), several.count)
COUNT_OR_NONE = Kind(schema.null_or(schema.whole(1)), several.count_or_none)
SECONDS = Kind(schema.null_or(schema.number(0, 1e11)), several.seconds_or_none)
SWITCH = Kind(schema.FLAG)

# What a user may give, and what a request keeps.
_Path = str | os.PathLike[str]
_Texts = Setting[str | Sequence[str], Sequence[str]]
_TextOrNone = Setting[str | None, str | None]
_Dict = Setting[Mapping[str, Any] | tuple[str, ...] | None, Sequence[str]]
_CountOrNone = Setting[int | None, int | None]


@dataclass(frozen=True)
class Request:
    """The description of a sweep; sweep.json has most of it under `asked`."""

    gin: Setting[_Path | Sequence[_Path], Sequence[str]] = Setting(
        PATHS,
        (),
        "The experiment file, by path or by the name of a shipped one, or several, of which later override earlier.",
    )
    _: KW_ONLY
    params: _Texts = Setting(
        TEXTS, (), "Overrides for all trials, each `NAME=VALUE`; one or several, as of every argument in the plural."
    )
    grid: _Dict = Setting(
        LISTS,
        (),
        "Values of a setting, written as in an experiment file.",
        python='The values of each setting: `{"constraints.gradient_penalty.weight": [0.1, 1, 10]}`. A text that '
        "begins with `@` or `%` is a component or a macro, as in an experiment file; so is one inside a list.",
        option="--grid",
        metavar="NAME=[VALUE, ...]",
    )
    ranges: _Dict = Setting(
        RANGES,
        (),
        "A range of numbers for a setting, for searches such as random; ':log' draws evenly on a log scale.",
        python="The range of each number, for searches such as random: "
        '`{"optimizers.adam.learning_rate": "1e-5..1e-2:log"}`.',
        option="--range",
        metavar="NAME=LOW..HIGH[:log]",
    )
    seeds: Setting[int | str | Sequence[int], Sequence[int]] = Setting(
        SEEDS,
        (),
        "Seeds, for example 0..4 or 0,3,7; by default the experiment's own.",
        option="--seeds",
        metavar="SEEDS",
    )
    jobs: Setting[int, int] = Setting(
        COUNT, 1, "Number of trials that run at a time; by default one.", option="--jobs", may_change=True
    )
    threads: _CountOrNone = Setting(
        COUNT_OR_NONE,
        None,
        "Threads per trial; by default this machine's cores divided by the number of jobs. Results depend on it in the "
        "last bits.",
        option="--threads",
        may_change=True,
        is_stored=False,
    )
    timeout: Setting[float | None, float | None] = Setting(
        SECONDS,
        None,
        "Time limit per trial, for example 90s, 30m or 2h; the trial then saves and is marked 'timed out'. No limit by "
        "default.",
        python="Time limit per trial in seconds; the trial then saves and is marked `timed out`. None for none.",
        option="--timeout",
        metavar="TIME",
        may_change=True,
    )
    launcher: Setting[str, str] = Setting(
        NAME,
        "local",
        "Launcher that starts trials; by default local: processes on this machine.",
        option="--launcher",
        metavar="NAME",
        may_change=True,
    )
    launcher_options: _Dict = Setting(
        VALUES,
        (),
        "A parameter of the launcher.",
        python="Its parameters.",
        option="--launcher-option",
        metavar="NAME=VALUE",
        may_change=True,
    )
    search: Setting[str, str] = Setting(
        NAME,
        "grid",
        "Search that chooses settings; by default grid: every combination.",
        option="--search",
        metavar="NAME",
    )
    search_options: _Dict = Setting(
        VALUES,
        (),
        "A parameter of the search.",
        python="Its parameters.",
        option="--search-option",
        metavar="NAME=VALUE",
    )
    search_seed: Setting[int, int] = Setting(
        SEED, 0, "Seed of the search; by default 0.", option="--search-seed", metavar="N"
    )
    budget: _CountOrNone = Setting(
        COUNT_OR_NONE, None, "Number of configurations that a search may try.", option="--budget", metavar="N"
    )
    objective: _TextOrNone = Setting(
        TEXT_OR_NONE,
        None,
        "The metric that decides, by its name in metrics.jsonl or the end of it, for example modes or critic/loss:max; "
        "smaller is better unless its evaluator declares the opposite or :max is added; with several seeds, its mean.",
        python="The metric that decides, by its name in metrics.jsonl or the end of it, with `:max` or `:min` where "
        "it is not known which values are better; with several seeds, its mean.",
        option="--objective --metric",
        metavar="METRIC",
    )
    maximize: Setting[bool, bool] = Setting(SWITCH, False, "Maximize the objective.", option="--maximize")
    runs: Setting[_Path, Path] = Setting(
        FOLDER, "runs", "Folder in which the sweep's folder is created.", option="--runs", is_stored=False
    )
    name: _TextOrNone = Setting(
        TEXT_OR_NONE,
        None,
        "Name of the sweep's folder; by default the experiment file's name and the time.",
        option="--name",
        is_stored=False,
    )
    no_plugin: _Texts = Setting(TEXTS, (), "Names of plugins to leave out.")
    plugin_file: Setting[_Path | None, str | None] = Setting(
        PATH_OR_NONE,
        None,
        "A plugin in one file; by default the `ganlab_plugins.py` beside the first experiment file.",
        may_change=True,
    )
    plugin_content: _TextOrNone = Setting(TEXT_OR_NONE, None, "The hash of its content.", is_given=False)

    @classmethod
    def settings(cls) -> dict[str, Setting[Any, Any]]:
        """The declarations, by name."""
        return {each.name: vars(cls)[each.name] for each in fields(cls)}

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        """Whether the objective is minimized or maximized."""
        return "maximize" if self.maximize else "minimize"

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Request:
        """A request from its fields in sweep.json, which are valid; others are ignored."""
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value := stored[name], list) else value
            for name, each in cls.settings().items()
            if each.is_stored and name in stored
        }
        return cls(**known)

    def as_json(self) -> dict[str, Any]:
        """The fields as sweep.json has them."""
        stored = {name: getattr(self, name) for name, each in self.settings().items() if each.is_stored}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in stored.items()}


@dataclass
class Proposed:
    """Settings that a search proposed, as sweep.json stores them under `proposals`.

    Attributes:
        settings: The settings.
        configuration: The name of their configuration, which other proposals may share; None if they are invalid.
        value: The objective's value, or the last one of a configuration that was given up; None if there is none.
        ended: Whether all trials of the configuration have ended.
        given_up: Whether the search gave the configuration up.
        last_step: The step of the report by which it did.
        error: Why the settings are invalid.
    """

    settings: Mapping[str, str]
    configuration: str | None = None
    value: float | None = None
    ended: bool = False
    given_up: bool = False
    last_step: int | None = None
    error: str = ""

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Proposed:
        """A proposal from its fields in sweep.json, which are valid; others are ignored."""
        proposal = cls(**{each.name: stored[each.name] for each in fields(cls) if each.name in stored})
        proposal.value = None if proposal.value is None else float(proposal.value)
        return proposal

    def as_json(self) -> dict[str, Any]:
        """The fields as sweep.json has them."""
        stored = asdict(self)
        return {
            name: value
            for name, value in stored.items()
            if name not in ("error", "last_step") or value not in ("", None)
        }
