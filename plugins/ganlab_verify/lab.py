"""A lab for tests: small experiments on logical CPUs, trained by the engine itself step by step, and compared."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import ganlab
from ganlab.engine import Checkpoint, Checkpoints, Trainer, TrainingState, restore
from ganlab.files import scratch_folder
from ganlab_verify.testing import parts
from ganlab_verify.trace import norm

# How far two trainings of one experiment may be apart after a few updates, element by element: float32's rounding, also
# in sums in another order. A factor in a gradient that moves weights by hundredths is far outside.
RELATIVE, ABSOLUTE = 5e-5, 5e-6
# The rounding left where numbers of order one cancel: smaller differences are ignored.
FLOOR = 1e-6
# Where a rectifier's input is within rounding of its kink, two right trainings may take different sides, and then their
# gradients differ by much more than rounding. A start that is moved by this part of its weights has other such inputs.
_MOVED, _STARTS = 1e-4, 5


def strategy(replicas: int) -> tf.distribute.Strategy:
    """A strategy of `replicas` logical CPUs; 0 for one device without mirroring."""
    if replicas == 0:
        return tf.distribute.OneDeviceStrategy("/CPU:0")
    # Summing on one device uses no collective groups, so strategies of several sizes can follow one another.
    devices = [f"/CPU:{i}" for i in range(replicas)]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


def sgd(rate: float = 0.01) -> keras.optimizers.Optimizer:
    """Plain gradient descent, which does not hide a factor in the gradient."""
    return keras.optimizers.SGD(learning_rate=rate)


def experiment(*, replicas: int = 0, rates: tuple[float, float] = (0.01, 0.01), **given: Any) -> ganlab.Experiment:
    """The kit's experiment with some of its parts replaced.

    Args:
        replicas: The number of replicas; 0 for one device without mirroring.
        rates: The learning rates of gradient descent, for the critic and for the generator.
        given: The parts and settings to replace, as `ganlab.experiment` takes them.
    """
    own = {
        "dataset": parts.Points(),
        "architecture": parts.Networks(parts.critic),
        "loss": parts.Wasserstein(),
        "strategy": given.get("strategy") or strategy(replicas),
        "critic_optimizer": sgd(rates[0]),
        "generator_optimizer": sgd(rates[1]),
        "batch_size": parts.BATCH,
        "critic_steps": 1,
        "steps": 1000,
        "jit": "off",
    }
    return ganlab.experiment(**{**own, **given})


class Training:
    """An experiment while it trains.

    Attributes:
        trainer: The engine's trainer.
        rows: Every metric of every iteration and replica so far, `(iterations, replicas, metrics)`.
        start: Every variable by name, before the first iteration.
    """

    def __init__(self, experiment: ganlab.Experiment, state: TrainingState | None = None) -> None:
        self._still: dict[str, np.ndarray] | None = None
        self.trainer = Trainer(experiment, state)
        self.rows: np.ndarray = np.zeros((0, experiment.replicas, 0), np.float32)
        self.start = self.values

    @property
    def state(self) -> TrainingState:
        """The variables in training."""
        return self.trainer.state

    def train(self, count: int) -> Training:
        """Trains `count` more iterations; returns itself."""
        rows = self.trainer.train(count)
        self.rows = np.concatenate([self.rows, rows]) if len(self.rows) else rows
        return self

    @property
    def values(self) -> dict[str, np.ndarray]:
        """Every variable by name."""
        if self._still is not None:
            return self._still
        return {name: variable.numpy() for name, variable in self.state.variables().items()}

    def still(self, values: dict[str, np.ndarray] | None = None) -> Training:
        """A snapshot of this training, with its or these values, that does not change if it continues."""
        snapshot = copy.copy(self)
        snapshot._still = self.values if values is None else values
        return snapshot

    def assign(self, values: Mapping[str, np.ndarray], *, step: int = 0) -> None:
        """Sets every variable, and the step of training."""
        for name, variable in self.state.variables().items():
            variable.assign(values[name])
        self.state.step = step
        self.rows = self.rows[:0]

    def again(self, count: int, *, moved: int) -> Training:
        """Trains by the same trainer from other initial weights.

        Args:
            count: How many iterations to train.
            moved: The seed of the change of the networks' weights.

        Returns:
            The training, of which `start` is the same as here.
        """
        again = copy.copy(self)
        again._still = None
        again.assign(perturbed(self.start, moved, _MOVED))
        return again.train(count)

    def metric(self, tag: str) -> np.ndarray:
        """One metric, `(iterations, replicas)`."""
        return self.rows[:, :, [metric.tag for metric in self.trainer.metrics].index(tag)]

    def reduced(self) -> dict[str, np.ndarray]:
        """Every metric over replicas, `(iterations,)` by tag."""
        reductions: dict[str, Any] = {"mean": np.mean, "max": np.max, "min": np.min, "sum": np.sum}
        return {m.tag: reductions[m.reduce](self.metric(m.tag), axis=1) for m in self.trainer.metrics}

    def unequal(self) -> list[str]:
        """The names of variables whose copies on the replicas are not bit for bit equal."""
        bits = self.trainer.sums.bits
        return [name for name, sums in zip(self.state.variables(), bits.T, strict=True) if len(set(sums)) > 1]

    def not_finite(self) -> list[str]:
        """The names of variables and metrics that are not finite."""
        values = {**self.values, **{f"metric {tag}": value for tag, value in self.reduced().items()}}
        return [name for name, value in values.items() if not np.isfinite(value).all()]

    def save(self, folder: Path) -> Checkpoint:
        """Writes a checkpoint as runs do."""
        pending = np.zeros((0, self.trainer.experiment.replicas, 0), np.float32)
        metrics, replicas = self.trainer.metrics, self.trainer.experiment.replicas
        return Checkpoints(folder).save(
            self.state.step, self.state.variables(), pending, metrics=metrics, replicas=replicas
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restores a checkpoint as resumed runs do."""
        restore(checkpoint, self.state.variables())
        self.state.step = checkpoint.step


def resumed(training: Training, before: int, after: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Trains with a checkpoint in between, restores it and trains its second part again.

    Args:
        training: A training; afterwards it is at the end of the second attempt.
        before: Iterations before the checkpoint.
        after: Iterations after it.

    Returns:
        Every variable at the end, uninterrupted and after restoring.
    """
    with scratch_folder("ganlab-conformance-") as folder:
        training.train(before)
        checkpoint = training.save(Path(folder))
        straight = training.train(after).values
        rows = training.rows
        training.restore(checkpoint)
    again = training.train(after).values
    training.rows = rows
    return straight, again


def differing(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> list[str]:
    """The names of variables that are not bit for bit equal."""
    return [name for name, value in one.items() if value.tobytes() != other[name].tobytes()]


def lasting_departure(one: Training, other: Training) -> str | None:
    """The first difference of two trainings, unless there is none from a further start, as where a rectifier chose.

    Args:
        one: A training; afterwards its trainer is at the end of another one.
        other: Another one of as many iterations; afterwards it may be at the end of another one.

    Returns:
        A phrase for the first difference beyond rounding, if every start leads to one; None if not.
    """
    first = next(departures(one, other), None)
    further = ([training.again(len(one.rows), moved=seed) for training in (one, other)] for seed in range(_STARTS))
    lasts = first is not None and all(next(departures(*pair), None) for pair in further)
    return first if lasts else None


def departures(one: Training, other: Training) -> Iterator[str]:
    """Finds differences of two trainings beyond rounding: metrics by iteration, then variables; a phrase for each."""
    metrics, others = one.reduced(), other.reduced()
    for iteration in range(len(one.rows)):
        # A loss is the difference of larger numbers, for example a penalty less a distance, and rounds as they do.
        losses = max(abs(float(metrics[tag][iteration])) for tag in metrics if not tag.startswith("constraints/"))
        for tag, values in metrics.items():
            a, b = float(values[iteration]), float(others[tag][iteration])
            if not _near(np.asarray(a), np.asarray(b), 0.0 if tag.startswith("constraints/") else losses):
                yield f"the metric {tag} is {b:.6g} instead of {a:.6g} in iteration {iteration + 1}"
    mine, theirs = one.values, other.values
    for name, value in mine.items():
        if not _near(value, theirs[name]):
            apart = np.abs(np.asarray(value, np.float64) - theirs[name]).max()
            yield f"{name} is off by up to {apart:.2g} after {len(one.rows)} iterations"


def distance(one: Training, other: Training) -> float:
    """The distance of two trainings' networks, as a fraction of how far the first has moved."""
    names = [name for name in one.start if "/weights/" in name]
    mine, theirs = one.values, other.values
    moved = norm(mine[name] - one.start[name] for name in names)
    return norm(mine[name] - theirs[name] for name in names) / moved if moved else math.inf


def perturbed(values: Mapping[str, np.ndarray], seed: int, by: float) -> dict[str, np.ndarray]:
    """Values of which the networks' weights are moved, each up or down by a part `by` of itself; others stay."""
    random = np.random.default_rng(seed)

    def moved(value: np.ndarray) -> np.ndarray:
        return (value * (1 + by * random.choice([-1.0, 1.0], size=value.shape))).astype(value.dtype)

    return {name: moved(value) if "/weights/" in name else value for name, value in values.items()}


def _near(a: np.ndarray, b: np.ndarray, scale: float = 0.0) -> bool:
    scale = max(scale, float(np.abs(a).max()) if a.size else 0.0)
    return bool(np.allclose(b, a, rtol=RELATIVE, atol=max(ABSOLUTE * scale, FLOOR)))
