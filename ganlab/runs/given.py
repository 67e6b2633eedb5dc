"""Checks that an experiment from Python is the one that a run was trained with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ganlab.errors import ConfigError, RunError
from ganlab.runs.origins import CODE, DATA, code_changes, data_changes, data_of, recorded
from ganlab.runs.sources import of_parts
from ganlab.support.terminal import line
from ganlab.telemetry.jsonl import to_json

if TYPE_CHECKING:
    from ganlab.composition import Experiment


def check_settings(path: Path, info: Mapping[str, Any], experiment: Experiment) -> None:
    """Refuses an experiment with other settings than a run records.

    Raises:
        RunError: A setting differs.
    """
    from ganlab import config

    _refuse(path, differences(info.get("settings"), config.flatten(experiment.recipe)))


def check_given(path: Path, info: Mapping[str, Any], experiment: Any) -> None:
    """Refuses what is not the experiment of a run: its settings, its code and its data are compared.

    Raises:
        ConfigError: It is not an experiment.
        RunError: Something differs.
    """
    from ganlab.composition import Experiment

    if not isinstance(experiment, Experiment):
        raise ConfigError(
            f"experiment = {experiment!r:.80} must be the experiment that the run was trained with, as "
            "ganlab.experiment(...) makes it."
        )
    check_settings(path, info, experiment)
    changed = code_changes(recorded(info, CODE), of_parts(experiment.recipe))
    _refuse(path, changed + data_changes(recorded(info, DATA), data_of(experiment.dataset, experiment.source)))


def differences(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> list[str]:
    """The settings that differ between those that run.json has and others, one line each."""
    if before is None:  # written by a version that did not record settings
        return []
    now = json.loads(json.dumps(to_json(dict(now))))
    names = [*before, *(name for name in now if name not in before)]
    return [
        f"{name}: {_text(before.get(name))}, and now {_text(now.get(name))}"
        for name in names
        if before.get(name) != now.get(name)
    ]


def _refuse(path: Path, lines: list[str]) -> None:
    if lines:
        listed = "\n".join(f"  {text}" for text in lines)
        raise RunError(
            f"{line(path)} was not trained with this experiment:\n{listed}\nPass the one that it was trained with. If "
            "the run was changed since, open it anew: ganlab.Run(PATH)."
        )


def _text(value: Any) -> str:
    return "not set" if value is None else repr(value)
