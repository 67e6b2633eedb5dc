"""The weights of another run as the initial ones of this run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ganlab.errors import RunError
from ganlab.runs import RunDirectory
from ganlab.support.formatting import listed
from ganlab.training.graph.state import TrainingState
from ganlab.training.loading import find_checkpoint

_LISTED = 4


def start_from(
    source: str,
    state: TrainingState,
    say: Callable[[str], None],
    warn: Callable[[str], None],
    before: Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    """Gives both networks the weights of `experiment.start_from` that they have by name and shape.

    Args:
        source: The other run, `experiment.start_from`; empty for new weights.
        state: Its variables, before training.
        say: Called with a sentence on what was taken.
        warn: Called with a sentence on what did not fit.
        before: What run.json records of an earlier beginning: the same weights are taken, though that run may have
            trained further since.

    Returns:
        What run.json records: the run, the step, and the names that were taken, that the other run does not have, that
        it has in another shape, and that only it has; None if the experiment begins from new weights.

    Raises:
        RunError: There is no such run or checkpoint, it is damaged or not finite, or no weight fits.
    """
    if not source:
        return None
    again = before if before and before.get("run") == source else {}
    try:
        checkpoint = find_checkpoint(RunDirectory(source), again.get("step"))
    except RunError as error:
        raise RunError(f"experiment.start_from: {error}") from error
    if name := checkpoint.not_finite():
        raise RunError(
            f"experiment.start_from: the checkpoint {checkpoint.path} is of no use: its variable {name} is not finite."
        )
    there = {name: value for name, value in checkpoint.values() if _of_networks(name)}
    here = {name: tuple(v.shape) for name, v in state.variables().items() if _of_networks(name)}
    fits = {name: value for name, value in there.items() if here.get(name) == value.shape}
    if not fits:
        raise RunError(
            f"experiment.start_from = {source!r}: none of its {len(there)} weights has the name and "
            f"shape of one of this experiment's: {_some(here)}. Use the architecture of that run."
        )
    state.take_weights(fits)
    missing, left = sorted(set(here) - set(there)), sorted(set(there) - set(here))
    other_shape = sorted(name for name in set(here) & set(there) if name not in fits)
    say(f"Weights of {source}, step {checkpoint.step}: {len(fits)} of {len(here)} taken.")
    reasons = {
        "that run does not have": {name: here[name] for name in missing},
        "it has in another shape": {name: here[name] for name in other_shape},
        "only that run has": {name: there[name].shape for name in left},
    }
    did_not_fit = [f"{reason} {_some(names)}" for reason, names in reasons.items() if names]
    if did_not_fit:
        warn(f"What did not fit: {'; '.join(did_not_fit)}.")
    origin = {"run": source, "step": checkpoint.step, "taken": sorted(fits)}
    return {**origin, "missing": missing, "other_shape": other_shape, "left": left}


def _of_networks(name: str) -> bool:
    role, _, rest = name.partition("/")
    return role in ("critic", "generator") and rest.startswith(("weights/", "buffers/"))


def _some(shapes: Mapping[str, Any]) -> str:
    return listed([f"{name} {tuple(shape)}" for name, shape in shapes.items()], _LISTED)
