"""Checks that a run is resumed with the same experiment, unless changes are allowed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ganlab.errors import ConfigError, RunError
from ganlab.plugins.recipes import Recipe
from ganlab.runs.directory import CONFIG, OPERATIVE, RunDirectory, write_info
from ganlab.runs.listing import checkpoint_steps, checkpoints_gone
from ganlab.runs.origins import CODE, DATA, code_changes, data_changes, recorded
from ganlab.runs.sources import of_parts
from ganlab.support.atomic import write_text
from ganlab.support.terminal import line


def check_resumable(
    run: RunDirectory, recipe: Recipe, *, allow_changes: bool, data: Mapping[str, Any] | None = None
) -> list[str]:
    """Checks that a run can be resumed with an experiment.

    Args:
        run: The run.
        recipe: The experiment to resume it with.
        allow_changes: Whether the experiment, its code or its data may differ from those that the run started with.
        data: The dataset's fingerprint, from `origins.data_of`; None if it is not known yet.

    Returns:
        The differences: one line for each setting, module and fact about the data.

    Raises:
        RunError: The run is completed, its checkpoints were removed, its folder is not as ganlab wrote it, or the
            experiment, its code or its data have changed and `allow_changes` is false.
        ConfigError: The experiment has fewer steps than the newest checkpoint.
    """
    from ganlab import config

    run.check()
    info = run.info
    if gone := checkpoints_gone(run.path, info):
        config_file = line(shlex.quote(str(run.path / CONFIG)))
        raise RunError(
            f"{gone} So it cannot be resumed. Start a new run from its settings: ganlab run --gin {config_file}"
        )
    settings = config.flatten(recipe)  # with defaults, which the recipe does not have
    steps = int(settings["experiment.steps"])
    differing = {
        "another experiment": _differences(info.get("settings"), settings),
        "other code": code_changes(recorded(info, CODE), of_parts(recipe)),
        "other data": data_changes(recorded(info, DATA), data),
    }
    lines = [text for found in differing.values() for text in found]
    if lines and not allow_changes:
        what = " and with ".join(name for name, found in differing.items() if found)
        listed = "\n".join(f"  {text}" for text in lines)
        raise RunError(
            f"{run.path} began {'as' if differing['another experiment'] else 'with'} {what}:\n{listed}\n"
            "Resume it unchanged, pass --allow-changes (in Python: allow_changes=True), or start a new run."
        )
    if info.get("status") == "completed" and info.get("step", 0) >= steps:
        raise RunError(
            f"{run.path} is completed: there is nothing to resume. To train it further, raise the number of steps: "
            "--param experiment.steps=N --allow-changes."
        )
    newest = max(checkpoint_steps(run.path), default=0)
    if steps < newest:
        raise ConfigError(
            f"experiment.steps = {steps} is below the step of the newest checkpoint of {line(run.path)}, {newest}: "
            "there is nothing to train. Raise the steps: --param experiment.steps=N."
        )
    return lines


def take_changes(run: RunDirectory, recipe: Recipe, differing: list[str]) -> None:
    """Records the experiment that a run is resumed with, if it differs from the one before."""
    from ganlab import config

    if differing:
        settings = config.flatten(recipe)
        write_text(run.path / CONFIG, config.render(recipe))
        write_text(run.path / OPERATIVE, config.render(recipe, defaults=True))
        run.update(settings=settings, steps=settings["experiment.steps"])


def begin_again(run: RunDirectory) -> None:
    """Takes from run.json what a run had reached, because it is resumed from its first step, not from a checkpoint."""
    reached = ("metrics_step", "diagnostics", "health", "best")
    kept = {name: value for name, value in run.info.items() if name not in reached}
    write_info(run.path, {**kept, "step": 0, "metrics": {}, "evaluation": {}, "checkpointed": False})


def _differences(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> list[str]:
    if before is None:  # written by a version that did not record settings
        return []
    names = [*before, *(name for name in now if name not in before)]
    return [
        f"{name}: {_text(before.get(name))}, and now {_text(now.get(name))}"
        for name in names
        if before.get(name) != now.get(name)
    ]


def _text(value: Any) -> str:
    return "not set" if value is None else repr(value)
