"""Draws samples from a run's generator after training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ganlab.errors import ConfigError
from ganlab.exporting.latents import SMALLEST_TRUNCATION, Array, spherical, truncated
from ganlab.runs import RunDirectory
from ganlab.training.graph import noise
from ganlab.training.loading import Trained, keep_precision, load_trained


@dataclass(frozen=True)
class Drawn:
    """Samples and what they were drawn from.

    Attributes:
        samples: `(n, *sample_shape)` float32.
        latents: `(n, latent_dim)` float32.
        seed: The seed of the latent vectors.
        step: The generator updates of the checkpoint.
    """

    samples: Array
    latents: Array
    seed: int
    step: int


def draw(
    run: RunDirectory,
    n: int,
    *,
    seed: int | None = None,
    truncation: float | None = None,
    checkpoint: int | None = None,
) -> Drawn:
    """Draws from the generator of a checkpoint, or from its average if the run keeps one.

    Sample i of a seed is the same however many are drawn, and the same that training drew with that seed at that step.

    Args:
        run: A run with a checkpoint, finished or not.
        n: The number of samples.
        seed: The seed of the samples; None for the run's own, with which the pictures of training were drawn.
        truncation: Redraws every entry of a latent vector that is larger, by absolute value; None for none.
        checkpoint: A step that has a checkpoint; None for the newest.

    Raises:
        RunError: The checkpoint does not exist, or does not fit the recorded experiment.
        ConfigError: The truncation is too small.
    """
    trained = _open(run, checkpoint, truncation)
    seed = trained.seed if seed is None else seed
    latents = _latents(trained, n, seed, truncation)
    return Drawn(trained.sample.from_latents(latents), latents, seed, trained.step)


def interpolate(
    run: RunDirectory,
    rows: int,
    columns: int,
    *,
    seed: int | None = None,
    truncation: float | None = None,
    checkpoint: int | None = None,
) -> Drawn:
    """Rows of samples along the spherical path from one latent vector to another.

    Args:
        run: A run with a checkpoint, finished or not.
        rows: The number of paths; row r goes from the seed's latent vector 2r to 2r + 1.
        columns: Samples per row, both ends included.
        seed: As in `draw`.
        truncation: Likewise, of the ends.
        checkpoint: Likewise.

    Returns:
        `rows * columns` samples, row by row.

    Raises:
        RunError: As in `draw`.
        ConfigError: Likewise.
    """
    trained = _open(run, checkpoint, truncation)
    seed = trained.seed if seed is None else seed
    ends = _latents(trained, 2 * rows, seed, truncation)
    latents = spherical(ends[::2], ends[1::2], columns).reshape(rows * columns, -1)
    return Drawn(trained.sample.from_latents(latents), latents, seed, trained.step)


def _open(run: RunDirectory, checkpoint: int | None, truncation: float | None) -> Trained:
    if truncation is not None and not truncation >= SMALLEST_TRUNCATION:
        raise ConfigError(f"truncation = {truncation!r} must be at least {SMALLEST_TRUNCATION}; 0.5 to 2 are usual.")
    trained = load_trained(run, checkpoint=checkpoint)
    keep_precision(trained)
    return trained


def _latents(trained: Trained, n: int, seed: int, truncation: float | None) -> Array:
    first = trained.sample.latents(n, seed).numpy()
    if truncation is None:
        return np.asarray(first)

    def redraw(number: int) -> Array:
        shape = (n, trained.latent_dim)
        return np.asarray(noise.whole("normal", shape, seed=seed, stream=noise.LATENT, number=number))

    return truncated(first, redraw, truncation)
