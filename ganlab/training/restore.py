"""Restores a run's newest sound checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ganlab.composition import Experiment
from ganlab.errors import RunError
from ganlab.runs import RunDirectory
from ganlab.runs.directory import METRICS
from ganlab.runs.resuming import check_no_fork
from ganlab.support.formatting import counted
from ganlab.support.terminal import line
from ganlab.telemetry.jsonl_lines import rows
from ganlab.training.checkpoints import Checkpoint, Checkpoints, restore
from ganlab.training.graph.trainer import Trainer


def go_back(
    run: RunDirectory,
    experiment: Experiment,
    trainer: Trainer,
    say: Callable[[str], None],
    *,
    allow_changes: bool,
    mend: bool,
) -> Checkpoint | None:
    """Gives the trainer the state of a run's newest sound checkpoint.

    Args:
        run: The run.
        experiment: The experiment to resume with.
        trainer: The trainer whose state is restored.
        say: Called with a sentence for each damaged checkpoint, and by the chief if the run starts again.
        allow_changes: Whether to accept other metrics or replicas than the checkpoint's.
        mend: Whether to put damaged checkpoints aside, as the chief does.

    Returns:
        The checkpoint, or None if there is none and the run starts again.

    Raises:
        RunError: It does not fit the experiment, several workers do not find the same one, or a fork has none.
    """
    checkpoint = Checkpoints(run.path / "checkpoints").latest_sound(say, mend=mend)
    step = checkpoint.step if checkpoint else 0
    # In two numbers, because float32 has no whole numbers between some beyond 2^24.
    if not trainer.alike(divmod(step, 1 << 20)):
        raise RunError(
            f"The workers do not find the same newest checkpoint of {run.path}; this one finds that of step {step}. "
            "All of them must see the chief's folder of runs: use a shared folder."
        )
    if checkpoint is not None:
        if not allow_changes:
            checkpoint.check_fits(trainer.metrics, experiment.replicas)
        # The experiment's learning rate counts, which may be what has changed, and not the one that was saved.
        with trainer.state.own_rates() if allow_changes else contextlib.nullcontext():
            restore(checkpoint, trainer.state.variables())
        trainer.state.step = checkpoint.step
    else:
        check_no_fork(run.path, run.info)
        if mend:
            say(_from_the_start(run))
    return checkpoint


def _from_the_start(run: RunDirectory) -> str:
    which = "no sound checkpoint" if run.info.get("checkpointed") else "no checkpoint yet"
    count = sum(1 for _ in rows(run.path / METRICS, ()))
    are = "is" if count == 1 else "are"
    discarded = f", and its {counted(count, 'row')} of metrics {are} discarded" if count else ""
    return f"{line(run.path)} has {which}: training begins again from step 0{discarded}."
