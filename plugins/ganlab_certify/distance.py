"""An interval for the distance between the data and the generator of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from ganlab import Dataset, Experiment
from ganlab.commands import plugin_code, selector_of
from ganlab.engine import Sampler, Scorer, Step, TrainingState, examples_of, sampler
from ganlab.errors import ConfigError, ContractError, RunError
from ganlab.runs import RunDirectory
from ganlab_certify.certifying import Box, certificates, restored
from ganlab_certify.interval import Lipschitz, Samples, W1Interval, w1_interval

# Numbers that no training reaches, apart for samples that choices are made on and for those that bound.
_CHOOSING, _HELD_OUT = 2**40, 2**41
# Seeds of latent vectors; training and pictures use streams of their own.
_CHOOSING_SEED, _HELD_OUT_SEED = 2**20, 2**20 + 1
# A finite dataset of at most so many examples is taken as a whole.
_WHOLE = 16_384
_IMAGE_RANK = 3
# Of the samples' range, added on each side to the box in which all others are assumed to lie.
_MARGIN = 0.25
_PIECE = 1024


@dataclass(frozen=True)
class CertifiedDistance:
    """An interval for the Wasserstein-1 distance between a run's data and its generator, in the Euclidean norm.

    Attributes:
        step: Generator updates done.
        interval: The interval, and what its ends rest on.
        critic_constant: The certified bound of the critic's Lipschitz constant; None if there is none.
        assumptions: What must be true for the interval to be, one sentence each.
    """

    step: int
    interval: W1Interval
    critic_constant: float | None
    assumptions: list[str]


def certify_distance(
    run: RunDirectory,
    *,
    checkpoint: Step = None,
    samples: int = 16_384,
    confidence: float = 0.95,
    box: tuple[float, float] | None = None,
    seconds: float = 60.0,
) -> CertifiedDistance:
    """`ganlab.Run.certify_distance`, which has the documentation; see also `ganlab.transport.w1_interval`."""
    if samples < 16:
        raise ConfigError(f"samples = {samples!r} must be at least 16.")
    if box is not None and not (math.isfinite(box[0]) and math.isfinite(box[1]) and box[0] < box[1]):
        raise ConfigError(f"box = {box!r} must be two finite numbers, the lower one first.")
    experiment, state = restored(run, checkpoint)
    draw = sampler(experiment, state)
    choosing = _drawn(experiment, draw, samples, _CHOOSING, _CHOOSING_SEED)
    held_out = _drawn(experiment, draw, samples, _HELD_OUT, _HELD_OUT_SEED)
    shape = tuple(experiment.dataset.sample_shape)
    ends, said = _box(choosing, shape, box)
    for drawn in (choosing, held_out):
        _check_inside(drawn, ends)
    critic = _critic(state, experiment, ends, seconds)
    interval = w1_interval(
        choosing,
        held_out,
        diameter=float(np.linalg.norm((ends[1] - ends[0]).astype(np.float64))),
        functions={} if critic is None else {"critic": critic},
        confidence=confidence,
    )
    return CertifiedDistance(
        step=state.step,
        interval=interval,
        critic_constant=None if critic is None else critic.constant,
        assumptions=[said, *_assumptions(experiment.dataset, held_out)],
    )


def _drawn(experiment: Experiment, draw: Sampler, count: int, first: int, seed: int) -> Samples:
    dataset = experiment.dataset
    if dataset.size is None:
        numbers = np.arange(first, first + count)
        together = _coupled(experiment, numbers)
        fake = draw(count, seed=seed) if together is None else together
        return Samples(examples_of(dataset, numbers, experiment.seed), fake, together=together is not None)
    if dataset.size <= _WHOLE:
        everything = examples_of(dataset, np.arange(dataset.size), experiment.seed)
        return Samples(everything, draw(count, seed=seed), complete=True)
    numbers = np.random.default_rng(seed).integers(dataset.size, size=count)
    return Samples(examples_of(dataset, numbers, experiment.seed), draw(count, seed=seed))


def _coupled(experiment: Experiment, numbers: np.ndarray) -> np.ndarray | None:
    architecture = experiment.architecture
    method = getattr(architecture, "coupled", None)
    if method is None:  # an architecture need not be derived from ganlab's class
        return None
    pieces = [tf.constant(numbers[i : i + _PIECE]) for i in range(0, len(numbers), _PIECE)]
    with plugin_code(selector_of(architecture), "coupled"):
        parts = [method(piece, experiment.seed) for piece in pieces]
        if any(part is None for part in parts):
            return None
        samples = np.concatenate([np.asarray(part, np.float32) for part in parts])
    shape = (len(numbers), *experiment.dataset.sample_shape)
    if samples.shape != shape:
        raise ContractError(
            f"{selector_of(architecture)}: coupled returns samples of shape {samples.shape}; it must return {shape}."
        )
    return samples


def _critic(state: TrainingState, experiment: Experiment, ends: Box, seconds: float) -> Lipschitz | None:
    """The critic and its certified constant; None if it has none."""
    scorer, shape = Scorer(state, experiment.dataset.classes), tuple(experiment.dataset.sample_shape)
    climbed = certificates(state, scorer.effective(), seconds, ends)
    bounds = [rung.bound for rung in climbed if rung.bound is not None and 0 < rung.bound < math.inf]
    return Lipschitz(lambda x: scorer(x.reshape(-1, *shape)), min(bounds)) if bounds else None


def _box(choosing: Samples, shape: tuple[int, ...], box: tuple[float, float] | None) -> tuple[Box, str]:
    which = "an example or a sample"
    if box is None and len(shape) == _IMAGE_RANK:
        box, which = (-1.0, 1.0), "an image"
    if box is not None:
        low, high = (np.full(shape, end, np.float32) for end in box)
        return (low, high), f"Every value of {which} lies in [{box[0]:g}, {box[1]:g}]."
    low = np.minimum(choosing.real.min(axis=0), choosing.fake.min(axis=0))
    high = np.maximum(choosing.real.max(axis=0), choosing.fake.max(axis=0))
    margin = _MARGIN * (high - low)
    said = f"Examples and samples lie in the box of {len(choosing.fake):,} of them, {_MARGIN:.0%} wider on each side."
    return (low - margin, high + margin), said


def _check_inside(samples: Samples, ends: Box) -> None:
    for kind, points in (("examples", samples.real), ("samples of the generator", samples.fake)):
        inside = ((points >= ends[0]) & (points <= ends[1])).reshape(len(points), -1).all(axis=1)
        if not inside.all():
            worst = float(np.abs(points).max())
            raise RunError(
                f"{(~inside).sum():,} of {len(points):,} {kind} lie outside the box that the interval assumes; the "
                f"largest value is {worst:.4g}. Give a larger one with --box LOW HIGH."
            )


def _assumptions(dataset: Dataset, held_out: Samples) -> list[str]:
    data = "Examples with numbers that training does not reach are distributed as those of training."
    if dataset.size is not None:
        data = f"The data are the dataset's {dataset.size:,} examples, each as likely, and not what they came from."
    pairs = ["The architecture's `coupled` gives samples distributed as the generator's."] if held_out.together else []
    return [data, *pairs, "Pseudorandom numbers are as good as random, and the rounding of float32 does not matter."]
