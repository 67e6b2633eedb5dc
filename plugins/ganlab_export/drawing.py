"""Draws samples from a run's generator after training."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from ganlab.bounds import Ge, violation
from ganlab.engine import Step, Trained, keep_precision, load_trained, noise
from ganlab.errors import ConfigError
from ganlab.runs import RunDirectory
from ganlab_export.labels import class_numbers
from ganlab_export.latents import SMALLEST_TRUNCATION, Array, spherical, truncated

_COUNT = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class Drawn:
    """Samples and what they were drawn from.

    Attributes:
        samples: `(n, *sample_shape)` float32.
        latents: `(n, latent_dim)` float32.
        labels: Their classes, `(n,)` int64, or weights of classes, `(n, classes)`; None if unconditional.
        given: Their conditions and sources by name, `(n, ...)` float32, for a generator that takes them.
        seed: The seed of the latent vectors.
        step: The generator updates of the checkpoint.
    """

    samples: Array
    latents: Array
    seed: int
    step: int
    labels: Array | None = None
    given: Mapping[str, Array] = field(default_factory=dict)


def draw(
    run: RunDirectory,
    n: int,
    *,
    seed: int | None = None,
    truncation: float | None = None,
    checkpoint: Step = None,
    labels: int | str | Sequence[int | str] | None = None,
    conditions: Sequence[Sequence[float]] = (),
) -> Drawn:
    """Draws from the generator of a checkpoint, or from its average if the run keeps one.

    Sample i of a seed is the same however many are drawn, and the same that training drew with that seed at that step.

    Args:
        run: A run with a checkpoint, finished or not.
        n: The number of samples.
        seed: The seed of the samples; None for the run's own, with which the pictures of training were drawn.
        truncation: Redraws every entry of a latent vector that is larger, by absolute value; None for none.
        checkpoint: A step that has a checkpoint, "best" by `experiment.keep_best`, or None for the newest.
        labels: The classes of a conditional generator, by number or name, in turn; None for those of the data.
        conditions: The conditions of its samples, used in turn; none for those of examples.

    Raises:
        RunError: The checkpoint does not exist, or does not fit the recorded experiment.
        ConfigError: The number or the truncation is too small, or there is no such class or condition.
    """
    _check_numbers(n=n)
    trained = _open(run, checkpoint, truncation)
    seed = trained.seed if seed is None else seed
    latents = _latents(trained, n, seed, truncation)
    checked = _checked_labels(trained, class_numbers(run, labels))
    asked = {} if checked is None else {"labels": np.resize(checked, n)}
    return _drawn(trained, latents, seed, trained.sample.given(n, seed, 0, {**asked, **_asked(trained, conditions, n)}))


def interpolate(
    run: RunDirectory,
    rows: int,
    columns: int,
    *,
    seed: int | None = None,
    truncation: float | None = None,
    checkpoint: Step = None,
    labels: int | str | Sequence[int | str] | None = None,
    conditions: Sequence[Sequence[float]] = (),
) -> Drawn:
    """Rows of samples along the path from one latent vector to another: spherical, or straight if they are not normal.

    Args:
        run: A run with a checkpoint, finished or not.
        rows: The number of paths; row r goes from the seed's latent vector 2r to 2r + 1.
        columns: Samples per row, both ends included.
        seed: As in `draw`.
        truncation: Likewise, of the ends.
        checkpoint: Likewise.
        labels: The class of each row of a conditional generator, used in turn, the first ones by default. With two and
            a generator that takes weights of classes, every row goes from the first class to the second.
        conditions: The conditions of each row, used in turn, those of examples by default.

    Returns:
        `rows * columns` samples, row by row.

    Raises:
        RunError: As in `draw`.
        ConfigError: Likewise.
    """
    _check_numbers(rows=rows, columns=columns)
    trained = _open(run, checkpoint, truncation)
    seed = trained.seed if seed is None else seed
    ends = _latents(trained, 2 * rows, seed, truncation)
    starts, ends = ends[::2], ends[1::2]
    path = spherical(starts, ends, columns) if trained.sample.normal else np.linspace(starts, ends, columns, axis=1)
    latents = path.reshape(rows * columns, -1).astype(np.float32)
    classes = _along(trained, _checked_labels(trained, class_numbers(run, labels)), rows, columns)
    given = trained.sample.given(rows, seed, 0, _asked(trained, conditions, rows))
    given = {name: np.repeat(x, columns, axis=0) for name, x in given.items()}
    return _drawn(trained, latents, seed, given if classes is None else {**given, "labels": classes})


def _drawn(trained: Trained, latents: Array, seed: int, given: Mapping[str, Array]) -> Drawn:
    rest = {name: np.asarray(x, np.float32) for name, x in given.items() if name != "labels"}
    samples = trained.sample.from_latents(latents, **given)
    return Drawn(samples, latents, seed, trained.step, given.get("labels"), rest)


def _asked(trained: Trained, conditions: Sequence[Sequence[float]], n: int) -> dict[str, Array]:
    """The requested conditions of n samples, by name, checked; empty if there are none."""
    if not conditions:
        return {}
    first, rows = ",".join(f"{x:g}" for x in conditions[0]), trained.sample.rows.get("conditions")
    if rows is None:
        raise ConfigError(f"The generator takes no conditions: it cannot be asked for the condition {first}.")
    if len(rows.shape) != 1:
        raise ConfigError(
            f"condition = {first} is a list of numbers, and the generator takes conditions of shape {rows.shape}. "
            "Leave it out, and samples have the conditions of examples."
        )
    for one in conditions:
        if len(one) != rows.shape[0]:
            raise ConfigError(
                f"condition = {','.join(f'{x:g}' for x in one)} has the length {len(one)}; the generator's conditions "
                f"have {rows.shape[0]}."
            )
        if not all(abs(x) <= float(np.finfo(np.float32).max) for x in one):
            raise ConfigError(f"condition = {','.join(f'{x:g}' for x in one)} must have finite numbers in float32.")
    return {"conditions": np.resize(np.asarray(conditions, np.float32), (n, rows.shape[0]))}


def _check_numbers(**numbers: int) -> None:
    for name, number in numbers.items():
        if problem := violation(number, _COUNT):
            raise ConfigError(f"{name} = {number!r} {problem}")


def _checked_labels(trained: Trained, labels: Sequence[int]) -> Array | None:
    """The requested labels, checked; None if there are none."""
    if not labels:
        return None
    classes = trained.sample.classes
    if classes is None:
        raise ConfigError(f"The generator is unconditional: it cannot be asked for the label {labels[0]}.")
    unknown = [label for label in labels if not 0 <= label < classes]
    if unknown:
        raise ConfigError(f"label = {unknown[0]} must be a class of the data, from 0 to {classes - 1}.")
    return np.asarray(labels, np.int64)


def _along(trained: Trained, labels: Array | None, rows: int, columns: int) -> Array | None:
    """The labels of paths: one for each row, or from one class to another."""
    classes = trained.sample.classes
    if classes is None:
        return None
    if labels is None or len(labels) != 2 or trained.network.classes is None:
        return np.repeat(np.resize(np.arange(classes) if labels is None else labels, rows), columns)
    share = np.linspace(0.0, 1.0, columns, dtype=np.float32)[:, None]
    first, last = np.eye(classes, dtype=np.float32)[labels]
    return np.tile((1.0 - share) * first + share * last, (rows, 1))


def _open(run: RunDirectory, checkpoint: Step, truncation: float | None) -> Trained:
    if truncation is not None and not (isinstance(truncation, numbers.Real) and truncation >= SMALLEST_TRUNCATION):
        raise ConfigError(f"truncation = {truncation!r} must be at least {SMALLEST_TRUNCATION}; 0.5 to 2 are usual.")
    trained = load_trained(run, checkpoint=checkpoint)
    if truncation is not None and not trained.sample.normal:
        raise ConfigError(
            f"truncation = {truncation!r} cuts normal latent vectors, and the architecture makes others of them "
            "(`latent`). Leave it out."
        )
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
