"""The row rule: row i of a penalty depends on example i alone, not on its place in the batch or on other examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import tensorflow as tf

from ganlab.interfaces import Batch
from ganlab.testing.critic_bench import Bench, Noted
from ganlab.testing.trainings import FLOOR

# Relative to the largest value: the float32 rounding of sums in another order.
_ROUNDING = 1e-4
_MIXES = (
    "Row i may depend on example i alone: take each example's own value instead of averaging, normalizing or sorting "
    "over the batch (the core divides by the global batch size), and reduce statistics of the data in advance, with "
    "replica.mean, replica.sum or replica.max."
)

Rows = Callable[[Noted, Batch], tf.Tensor]


def unruly(bench: Bench) -> Iterator[str]:
    """Checks the row rule; yields one message for each violation."""
    scores: Rows = lambda draws, batch: bench.transform(draws)(batch.real)  # noqa: E731
    yield from _broken(bench, "transform", "score", scores)
    if bench.penalty(bench.draws()) is None:
        return

    def penalty(draws: Noted, batch: Batch) -> tf.Tensor:
        value = bench.penalty(draws, batch=batch, replicas=batch.size // batch.real.shape[0])
        return tf.convert_to_tensor(0.0 if value is None else value)

    yield from _broken(bench, "penalty", "penalty", penalty)


def _broken(bench: Bench, method: str, what: str, rows: Rows) -> Iterator[str]:
    draws, batch = bench.draws(), bench.batch
    whole = rows(draws, batch).numpy()
    if not draws.collective:  # a dependence on other examples through replica is allowed
        yield from _of_others(bench, method, what, rows, draws, whole)
        yield from _of_the_batch(bench, method, what, rows, draws, whole)
    order = np.random.default_rng(1).permutation(len(whole))
    permuted = rows(_again(bench, draws, order), _taken(batch, order)).numpy()
    if not _near(permuted, whole[order]):
        yield (
            f"{method}: the {what} of an example changes when examples and their random numbers change places. It "
            "depends on the place in the batch: on numbers drawn with a seed of the plugin's own, which are the same "
            "on every replica, or on a constant for each row. Draw from replica.uniform or replica.normal."
        )


def _of_others(bench: Bench, method: str, what: str, rows: Rows, draws: Noted, whole: np.ndarray) -> Iterator[str]:
    batch, every = bench.batch, np.arange(len(whole))
    changed = replace(batch, real=_moved(batch.real), fake=_moved(batch.fake), latent=_moved(batch.latent))
    other = rows(_again(bench, draws, every), changed).numpy()
    if not _near(other[1:], whole[1:]):
        row = 1 + int(np.argmax(np.abs(other[1:] - whole[1:])))
        yield (
            f"{method}: the {what} of example {row} changes from {whole[row]:.6g} to {other[row]:.6g} when example 0 "
            f"changes: examples are mixed. {_MIXES}"
        )


def _of_the_batch(bench: Bench, method: str, what: str, rows: Rows, draws: Noted, whole: np.ndarray) -> Iterator[str]:
    half = np.arange(len(whole) // 2)
    found = rows(_again(bench, draws, half), _taken(bench.batch, half)).numpy()
    if _near(found, whole[half]):
        return
    for factor, how in (
        (2.0, "divided by the number of examples, or multiplied by replica.count"),
        (0.5, "multiplied by the number of examples, or divided by replica.count"),
    ):
        if _near(found, factor * whole[half]):
            yield (
                f"{method}: the {what} of an example is {factor:g} times as large on two replicas, where each has half "
                f"as many examples: it is {how}. Return each example's own value, neither averaged nor scaled: the "
                "core divides by the global batch size."
            )
            return
    yield (
        f"{method}: the {what} of an example changes when its replica has half as many examples: it depends on the "
        f"other examples, or on their number. {_MIXES}"
    )


def _again(bench: Bench, draws: Noted, rows: np.ndarray) -> Noted:
    """The same random numbers for the same examples, in another order or for fewer of them."""
    return bench.draws(local_batch=len(rows), given=[tf.gather(value, rows) for value in draws.taken])


def _taken(batch: Batch, rows: np.ndarray) -> Batch:
    by_row = {name: getattr(batch, name) for name in ("real", "fake", "labels", "latent")}
    return replace(batch, **{name: tf.gather(x, rows) for name, x in by_row.items() if x is not None})


def _moved(x: tf.Tensor) -> tf.Tensor:
    return tf.concat([1.0 - 0.5 * x[:1], x[1:]], axis=0)


def _near(one: np.ndarray, other: np.ndarray) -> bool:
    scale = float(np.abs(other).max()) if other.size else 0.0
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0, atol=max(_ROUNDING * scale, FLOOR)))
