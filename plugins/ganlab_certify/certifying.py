"""How steep a critic is: certificates from above, an attack from below."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from ganlab.functional import named_weights
from ganlab.runs import RunDirectory
from ganlab_certify.attacks import attacked_constant, tiled_constant
from ganlab_certify.models import open_model
from ganlab_certify.rounded import Rounding, rounding_of
from ganlab_certify.rungs import RUNGS, Rung, ladder

# Starts of the attack: half examples, half samples.
_STARTS, _STEPS = 1000, 100
# Numbers of the starts of an attack on a file's critic.
_NUMBERS = 2**25

Box = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Certified:
    """Bounds of a critic's Lipschitz constant in the Euclidean norm.

    Attributes:
        step: Generator updates done; None for a model's file.
        lower: The steepest slope that the attack or a certificate found: the constant is at least this.
        seconds: How long the attack took.
        rungs: The certificates, from the cheapest to the tightest.
        rounding: What the precision of training adds to them; None if it is float32.
    """

    step: int | None
    lower: float
    seconds: float
    rungs: list[Rung]
    rounding: Rounding | None = None

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
    classes = (experiment.dataset.classes or 1) if state.critic.network.conditional else 1

    def critic(x: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        return scorer.critic(effective, labels if state.critic.network.conditional else None)(x)

    box = starts.min(axis=0), starts.max(axis=0)
    asked = RUNGS if rungs is None else rungs
    climbed = functools.partial(certificates, state, effective, seconds, box, asked)
    found = _bounded(state.step, critic, classes, starts, climbed, seconds)
    precision = run.recipe(only=("precision",)).arguments.get("precision", "float32")
    if precision == "float32" or state.critic.stack.wrapping:
        return found
    radius = float(np.linalg.norm(starts.reshape(len(starts), -1), axis=1).max())
    return replace(found, rounding=rounding_of(state.critic.network.model, effective, precision, radius))


def certify_model(
    path: str | os.PathLike[str],
    *,
    seconds: float = 60.0,
    rungs: Sequence[str] | None = None,
    box: tuple[float, float] | None = None,
) -> Certified:
    """Bounds the Lipschitz constant of the critic in a file: `.keras`, ONNX, or safetensors and a description.

    Args:
        path: The file. Its first input is the example, and a second one the label as ones and zeros. Labels vary over
            the classes, and the bound holds for each.
        seconds: As for `ganlab.Run.certify`.
        rungs: Likewise.
        box: The least and the largest value of a number of an example, for the rung `box`; the attack starts there.
            None starts it at normal numbers.

    Raises:
        ConfigError: The file cannot be used, or a rung is unknown.
        MissingDependencyError: It is an ONNX file, and `onnx` is not installed.
    """
    model = open_model(Path(path))()
    weights = {name: variable.value for name, variable in named_weights(model).items()}
    sides, random = model.inputs[0].shape[1:], np.random.default_rng(0)
    count = max(2, min(_STARTS, _NUMBERS // math.prod(sides)))
    shape = (count, *sides)
    starts = random.standard_normal(shape) if box is None else random.uniform(*box, size=shape)
    classes = [each.shape[1] for each in model.inputs[1:]]

    def critic(x: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        given = [x, *(tf.one_hot(labels, each) for each in classes)] if classes else x
        return tf.reshape(model(given, training=False), [-1])

    def climbed() -> list[Rung]:
        ends = None if box is None else (np.full(sides, box[0]), np.full(sides, box[1]))
        return ladder(model, weights, seconds=seconds, box=ends, rungs=RUNGS if rungs is None else tuple(rungs))

    return _bounded(None, critic, sum(classes) or 1, starts.astype(np.float32), climbed, seconds)


def _bounded(
    step: int | None,
    critic: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    classes: int,
    starts: np.ndarray,
    climbed: Callable[[], list[Rung]],
    seconds: float,
) -> Certified:
    began = time.monotonic()
    # Every class in turn; certificates hold for all.
    labels, images = tf.range(len(starts), dtype=tf.int64) % classes, starts.ndim == 4
    lower = tiled_constant(critic, starts, classes, seconds=seconds / 2) if images else 0.0
    left = seconds - (time.monotonic() - began)
    lower = max(lower, attacked_constant(lambda x: critic(x, labels), starts, steps=_STEPS, seconds=left))
    taken, rungs = time.monotonic() - began, climbed()
    return Certified(step, max([lower, *(rung.lower for rung in rungs)]), taken, rungs)


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
    with found.bounding():
        state = TrainingState(experiment)
    restore(found, state.variables())
    state.step = found.step
    return experiment, state
