"""How steep a run's critic is: certificates from above, an attack from below."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from ganlab import composition
from ganlab.composition import Experiment
from ganlab.lipschitz import Rung, attacked_constant, ladder
from ganlab.lipschitz.rungs import RUNGS
from ganlab.runs import RunDirectory
from ganlab.training.checkpoints import restore
from ganlab.training.graph.sampling import Sampler, Scorer, label_frequencies, real_examples
from ganlab.training.graph.state import TrainingState
from ganlab.training.loading import Step, find_checkpoint

# Starts of the attack: half examples, half samples.
_STARTS, _STEPS = 1000, 100


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
    rungs: Sequence[str] = RUNGS,
) -> Certified:
    """`ganlab.Run.certify`, which has the documentation; the rung `box` has that of a thousand examples and samples."""
    experiment, state = restored(run, checkpoint)
    scorer = Scorer(state)
    effective = scorer.effective()
    starts = np.concatenate([real_examples(experiment, _STARTS // 2), sampler(experiment, state)(_STARTS // 2, seed=0)])
    began = time.monotonic()
    # Certificates hold for every label, and an attack under one of them is a bound from below.
    labels = tf.zeros([len(starts)], tf.int64) if state.critic.conditional else None
    lower = attacked_constant(scorer.critic(effective, labels), starts, steps=_STEPS, seconds=seconds)
    taken = time.monotonic() - began
    if state.stack.wrapping:
        note = f"Constraint {state.stack.wrapping[0]} changes the critic's function, which these bounds do not know."
        return Certified(state.step, lower, taken, [Rung(name, None, 0.0, note) for name in rungs])
    box = starts.min(axis=0), starts.max(axis=0)
    climbed = ladder(state.critic.model, effective, seconds=seconds, box=box, rungs=tuple(rungs))
    return Certified(state.step, lower, taken, climbed)


def restored(run: RunDirectory, checkpoint: Step = None) -> tuple[Experiment, TrainingState]:
    """The experiment of a run and the state at a checkpoint, for looking at the critic: one device, float32."""
    found = find_checkpoint(run, checkpoint)
    read = composition.parameters().keys() - {"strategy", "evaluators", "diagnostics"}
    parts = {name: composition.make(value) for name, value in run.recipe(only=tuple(read)).arguments.items()}
    # Bounds are of the map in float32: rounding to bfloat16 is not Lipschitz at all.
    parts["precision"] = "float32"
    tf.config.experimental.enable_tensor_float_32_execution(False)
    experiment = composition.experiment(**parts, strategy=tf.distribute.get_strategy())
    state = TrainingState(experiment)
    restore(found, state.variables())
    state.step = found.step
    return experiment, state


def sampler(experiment: Experiment, state: TrainingState) -> Sampler:
    """Draws from the generator with the weights that samples are drawn with."""
    frequencies = label_frequencies(experiment.dataset, experiment.seed) if state.generator.conditional else None
    latent_dim = int(experiment.architecture.latent_dim)
    return Sampler(state.generator, state.sampling_weights, latent_dim, frequencies, buffers=state.sampling_buffers)
