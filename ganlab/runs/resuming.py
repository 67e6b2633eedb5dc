"""Checks that a run is resumed with the same experiment, unless changes are allowed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ganlab.bounds import has_mark
from ganlab.errors import ConfigError, RunCompletedError, RunError
from ganlab.plugins.annotations import annotation
from ganlab.plugins.manager import component
from ganlab.plugins.recipes import Recipe
from ganlab.runs.changes import STEPS
from ganlab.runs.directory import CONFIG, OPERATIVE, RunDirectory, write_info
from ganlab.runs.given import differences
from ganlab.runs.origins import CODE, DATA, code_changes, data_changes, recorded
from ganlab.runs.sources import of_parts
from ganlab.runs.status import checkpoint_steps, checkpoints_gone
from ganlab.support.atomic import write_text
from ganlab.support.formatting import listed
from ganlab.support.terminal import line


def check_resumable(
    run: RunDirectory,
    recipe: Recipe,
    *,
    allow_changes: bool,
    data: Mapping[str, Any] | None = None,
    changed_by_steps: Callable[[int, int], Sequence[str]] = lambda before, done: (),
) -> tuple[list[str], int | None]:
    """Checks that a run can be resumed with an experiment.

    More steps are no other experiment where all that was trained is the same with them, nor is another folder with the
    same data.

    Args:
        run: The run.
        recipe: The experiment to resume it with.
        allow_changes: Whether the experiment, its code or its data may differ from those that the run started with.
        data: The dataset's fingerprint, from `origins.data_of`; None if it is not known yet.
        changed_by_steps: Names what depends on the number of steps in the steps that are trained, given the earlier
            number and how many are trained. As a default nothing does: TensorFlow, which finds it, may not run yet.

    Returns:
        The differences, one line for each setting, module and fact about the data; and the earlier number of steps if
        the experiment differs by more steps alone.

    Raises:
        RunError: The run is completed, its checkpoints were removed, its folder is not as ganlab wrote it, or the
            experiment, its code or its data have changed and `allow_changes` is false.
        ConfigError: The experiment has fewer steps than the newest checkpoint.
    """
    from ganlab import config

    run.check()
    info = run.info
    newest = max(checkpoint_steps(run.path), default=0)
    if not newest:
        check_no_fork(run.path, info)
    if gone := checkpoints_gone(run.path, info):
        config_file = line(shlex.quote(str(run.path / CONFIG)))
        raise RunError(
            f"{gone} So it cannot be resumed. Start a new run from its settings: ganlab run --gin {config_file}"
        )
    settings = config.flatten(recipe)  # with defaults, which the recipe does not have
    steps, before = int(settings[STEPS]), int(info.get("steps", settings[STEPS]))
    stored = info.get("settings") if recorded(info, DATA) else None
    moved = {name: stored[name] for name in _data_paths(recipe) if name in stored} if stored else {}
    differing = {
        "another experiment": differences(info.get("settings"), settings | moved),
        "other code": code_changes(recorded(info, CODE), of_parts(recipe)),
        "other data": data_changes(recorded(info, DATA), data),
    }
    lines = [text for found in differing.values() for text in found]
    longer = len(lines) == 1 and lines[0].startswith(f"{STEPS}: ") and before < steps
    if longer and (names := changed_by_steps(before, newest)):
        lines[0] += f", on which {listed(names)} {'depends' if len(names) == 1 else 'depend'}"
        differing["another experiment"], longer = lines, False
    if lines and not (longer or allow_changes):
        what = " and with ".join(name for name, found in differing.items() if found)
        below = "\n".join(f"  {text}" for text in sorted(lines, key=lambda text: text.startswith(f"{STEPS}: ")))
        raise RunError(
            f"{run.path} began {'as' if differing['another experiment'] else 'with'} {what}:\n{below}\n"
            "Resume it unchanged, pass --allow-changes (in Python: allow_changes=True), or start a new run."
        )
    if info.get("status") == "completed" and info.get("step", 0) >= steps:
        raise RunCompletedError(
            f"{run.path} is completed: there is nothing to resume. To train it further, raise the number of steps: "
            "--param experiment.steps=N."
        )
    if steps < newest:
        raise ConfigError(
            f"experiment.steps = {steps} is below the step of the newest checkpoint of {line(run.path)}, {newest}: "
            "there is nothing to train. Raise the steps: --param experiment.steps=N."
        )
    return lines, before if longer else None


def _data_paths(recipe: Recipe) -> Iterator[str]:
    """The settings that say where the files of data lie; whether these are the same, the fingerprint says."""
    for name, value in recipe.arguments.items():
        if isinstance(value, Recipe) and value.kind == "datasets":
            yield from _data_paths(value)
        elif recipe.kind and has_mark(annotation(component(recipe.kind, recipe.name).make, name), "local"):
            yield f"{recipe.selector}.{name}"


def check_no_fork(path: Path, info: Mapping[str, Any]) -> None:
    """Checks that a run without a sound checkpoint may begin again from step 0, which a fork never did.

    Raises:
        RunError: It is a fork.
    """
    if forked := info.get("forked_from"):
        parent, at = str(forked.get("run")), forked.get("step")
        raise RunError(
            f"{line(path)} is a fork of {line(parent)} at step {line(str(at))} and has no sound checkpoint, so it "
            "cannot be resumed: its steps before are not its own. Remove it and fork again: "
            f"ganlab fork {line(shlex.quote(parent))} --at {line(str(at))}"
        )


def take_changes(run: RunDirectory, recipe: Recipe) -> None:
    """Records the experiment that a run is resumed with, if it differs from the one before."""
    from ganlab import config

    settings = config.flatten(recipe)
    if differences(run.info.get("settings"), settings):
        write_text(run.path / CONFIG, config.render(recipe))
        write_text(run.path / OPERATIVE, config.render(recipe, defaults=True))
        run.update(settings=settings, steps=settings[STEPS])


def begin_again(run: RunDirectory) -> None:
    """Takes from run.json what a run had reached, because it is resumed from its first step, not from a checkpoint."""
    reached = ("metrics_step", "diagnostics", "health", "best")
    kept = {name: value for name, value in run.info.items() if name not in reached}
    write_info(run.path, {**kept, "step": 0, "metrics": {}, "evaluation": {}, "checkpointed": False})
