"""How steep a run's critic is: certificates from above, an attack from below."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

import ganlab
from ganlab.engine import (
    Scorer,
    Step,
    TrainingState,
    find_checkpoint,
    first_examples,
    make,
    parameters,
    restore,
    sampler,
)
from ganlab.runs import RunDirectory
from ganlab_certify.attacks import attacked_constant
from ganlab_certify.rungs import RUNGS, Rung, ladder

# Starts of the attack: half examples, half samples.
_STARTS, _STEPS = 1000, 100

Box = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Certified:
    """Bounds of a critic's Lipschitz constant in the Euclidean norm.

    Attributes:
        step: Generator updates done.
        lower: The steepest slope that was found: the constant is at least this.
        seconds: How long that search took.
        rungs: The certificates, from the cheapest to the tightest.
    """

    step: int
    lower: float
    seconds: float
    rungs: list[Rung]

    @property
    def upper(self) -> float | None:
        """The least bound that holds everywhere; None if no rung suits the critic."""
        return min((r.bound for r in self.rungs if r.bound is not None and r.name != "box"), default=None)


def certify(
    run: RunDirectory,
    *,
    checkpoint: Step = None,
    seconds: float = 60.0,
    rungs: Sequence[str] | None = None,
) -> Certified:
    """`ganlab.Run.certify`, which has the documentation; the rung `box` has that of a thousand examples and samples."""
    experiment, state = restored(run, checkpoint)
    scorer = Scorer(state)
    effective = scorer.effective()
    real = first_examples(experiment.dataset, _STARTS // 2, experiment.seed)
    starts = np.concatenate([real, sampler(experiment, state)(_STARTS // 2, seed=0)])
    began = time.monotonic()
    # Certificates hold for every label, and an attack under one of them is a bound from below.
    labels = tf.zeros([len(starts)], tf.int64) if state.critic.network.conditional else None
    lower = attacked_constant(scorer.critic(effective, labels), starts, steps=_STEPS, seconds=seconds)
    taken = time.monotonic() - began
    box = starts.min(axis=0), starts.max(axis=0)
    climbed = certificates(state, effective, seconds, box, RUNGS if rungs is None else rungs)
    return Certified(state.step, lower, taken, climbed)


def certificates(
    state: TrainingState, effective: Mapping[str, tf.Tensor], seconds: float, box: Box, rungs: Sequence[str] = RUNGS
) -> list[Rung]:
    """The ladder of a run's critic; no rung suits one whose function a constraint changes."""
    if wrapping := state.critic.stack.wrapping:
        note = f"Constraint {wrapping[0]} changes the critic's function, which these bounds do not know."
        return [Rung(name, None, 0.0, note) for name in rungs]
    return ladder(state.critic.network.model, effective, seconds=seconds, box=box, rungs=tuple(rungs))


def restored(run: RunDirectory, checkpoint: Step = None) -> tuple[ganlab.Experiment, TrainingState]:
    """The experiment of a run and the state at a checkpoint, for looking at the critic: one device, float32."""
    found = find_checkpoint(run, checkpoint)
    read = parameters().keys() - {"strategy", "evaluators", "diagnostics"}
    parts = {name: make(value) for name, value in run.recipe(only=tuple(read)).arguments.items()}
    # Bounds are of the map in float32: rounding to bfloat16 is not Lipschitz at all.
    parts["precision"] = "float32"
    tf.config.experimental.enable_tensor_float_32_execution(False)
    experiment = ganlab.experiment(**parts, strategy=tf.distribute.get_strategy())
    state = TrainingState(experiment)
    restore(found, state.variables())
    state.step = found.step
    return experiment, state
