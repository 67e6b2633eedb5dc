"""The contents of sweep.json: the request for a sweep, and the settings that its search proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal


@dataclass(frozen=True)
class Request:
    """The description of a sweep, as sweep.json stores it under `asked`.

    Attributes:
        gin: Experiment files.
        params: Overrides, each `NAME=VALUE`.
        grid: Values of settings, each `NAME=[VALUE, ...]` as in an experiment file.
        range: Ranges of numbers, each `NAME=LOW..HIGH` with `:log` for a log scale.
        seeds: The seeds; none for the experiment's own.
        jobs: Number of trials that run at a time.
        timeout: Time limit per trial in seconds, or None.
        launcher: The launcher's name.
        launcher_options: Its parameters, each `NAME=VALUE`.
        search: The search's name.
        search_options: Its parameters, each `NAME=VALUE`.
        search_seed: Its seed.
        budget: Number of configurations that it may try, or None.
        objective: The metric that it optimizes, or None.
        direction: Whether it minimizes or maximizes.
        no_plugin: Names of plugins to leave out.
        plugin_file: A plugin in one file, or None.
        plugin_content: The hash of its content, or None.
    """

    gin: Sequence[str] = ()
    params: Sequence[str] = ()
    grid: Sequence[str] = ()
    range: Sequence[str] = ()
    seeds: Sequence[int] = ()
    jobs: int = 1
    timeout: float | None = None
    launcher: str = "local"
    launcher_options: Sequence[str] = ()
    search: str = "grid"
    search_options: Sequence[str] = ()
    search_seed: int = 0
    budget: int | None = None
    objective: str | None = None
    direction: Literal["minimize", "maximize"] = "minimize"
    no_plugin: Sequence[str] = ()
    plugin_file: str | None = None
    plugin_content: str | None = None

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Request:
        """A request from its fields in sweep.json, which are valid; others are ignored."""
        return cls(**{each.name: stored[each.name] for each in fields(cls) if each.name in stored})

    def as_json(self) -> dict[str, Any]:
        """The fields as sweep.json has them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


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
        found = cls(**{each.name: stored[each.name] for each in fields(cls) if each.name in stored})
        found.value = None if found.value is None else float(found.value)
        return found

    def as_json(self) -> dict[str, Any]:
        """The fields as sweep.json has them."""
        found = asdict(self)
        return {
            name: value
            for name, value in found.items()
            if name not in ("error", "last_step") or value not in ("", None)
        }
