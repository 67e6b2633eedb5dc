"""The row rule: row i of a penalty depends on example i alone, not on its place in the batch or on other examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
import tensorflow as tf

from ganlab import Batch
from ganlab.engine import Draws
from ganlab_verify.lab import FLOOR
from ganlab_verify.testing.critic_bench import Bench

# Relative to the largest value: the float32 rounding of sums in another order.
_ROUNDING = 1e-4
# A few roundings of float32 relative to an input, and how often inputs are moved by up to that.
_MOVE, _MOVES = 1e-5, 8
_MIXES = (
    "Row i may depend on example i alone: take each example's own value instead of averaging, normalizing or sorting "
    "over the batch (the core divides by the global batch size), and reduce statistics of the data in advance, with "
    "replica.mean, replica.sum or replica.max."
)

Rows = Callable[[Draws, Batch], tf.Tensor]


def unruly(bench: Bench) -> Iterator[str]:
    """Checks the row rule; yields one message for each violation."""
    scores: Rows = lambda draws, batch: bench.transform(draws)(batch.real)  # noqa: E731
    yield from _Rule(bench, "transform", "score", scores).broken()
    if bench.penalty(bench.draws()) is None:
        return

    def penalty(draws: Draws, batch: Batch) -> tf.Tensor:
        value = bench.penalty(draws, batch=batch, replicas=batch.size // batch.real.shape[0])
        return tf.convert_to_tensor(0.0 if value is None else value)

    yield from _Rule(bench, "penalty", "penalty", penalty).broken()


class _Rule:
    """The row rule for the rows that one method returns."""

    def __init__(self, bench: Bench, method: str, what: str, rows: Rows) -> None:
        self._bench, self._method, self._what, self._rows = bench, method, what, rows
        self._draws = bench.draws()
        self._whole = rows(self._draws, bench.batch).numpy()

    def broken(self) -> Iterator[str]:
        """One message for each way in which the rule is broken."""
        batch, whole = self._bench.batch, self._whole
        if not self._draws.collective:  # a dependence on other examples through replica is allowed
            yield from self._of_others()
            yield from self._of_the_batch()
        order = np.random.default_rng(1).permutation(len(whole))
        permuted = self._rows(self._again(order), _taken(batch, order)).numpy()
        if not self._near(permuted, order):
            yield (
                f"{self._method}: the {self._what} of an example changes when examples and their random numbers change "
                "places. It depends on the place in the batch: on numbers drawn with a seed of the plugin's own, which "
                "are the same on every replica, or on a constant for each row. Draw from replica.uniform or "
                "replica.normal."
            )

    def _of_others(self) -> Iterator[str]:
        batch, whole, every = self._bench.batch, self._whole, np.arange(len(self._whole))
        changed = replace(batch, real=_moved(batch.real), fake=_moved(batch.fake), latent=_moved(batch.latent))
        other = self._rows(self._again(every), changed).numpy()
        if not self._near(other[1:], every[1:]):
            row = 1 + int(np.argmax(np.abs(other[1:] - whole[1:])))
            yield (
                f"{self._method}: the {self._what} of example {row} changes from {whole[row]:.6g} to {other[row]:.6g} "
                f"when example 0 changes: examples are mixed. {_MIXES}"
            )

    def _of_the_batch(self) -> Iterator[str]:
        half = np.arange(len(self._whole) // 2)
        values = self._rows(self._again(half), _taken(self._bench.batch, half)).numpy()
        if self._near(values, half):
            return
        for factor, how in (
            (2.0, "divided by the number of examples, or multiplied by replica.count"),
            (0.5, "multiplied by the number of examples, or divided by replica.count"),
        ):
            if self._near(values, half, factor):
                yield (
                    f"{self._method}: the {self._what} of an example is {factor:g} times as large on two replicas, "
                    f"where each has half as many examples: it is {how}. Return each example's own value, neither "
                    "averaged nor scaled: the core divides by the global batch size."
                )
                return
        yield (
            f"{self._method}: the {self._what} of an example changes when its replica has half as many examples: it "
            f"depends on the other examples, or on their number. {_MIXES}"
        )

    def _again(self, rows: np.ndarray) -> Draws:
        """The same random numbers for the same examples, in another order or for fewer of them."""
        return self._bench.draws(local_batch=len(rows), given=[tf.gather(value, rows) for value in self._draws.taken])

    def _near(self, values: np.ndarray, rows: np.ndarray, factor: float = 1.0) -> bool:
        """Whether these are the values of these rows, times a factor, but for rounding."""
        expected = factor * self._whole[rows]
        if values.shape != expected.shape:
            return False
        allowed = max(_ROUNDING * float(np.abs(expected).max(initial=0.0)), FLOOR)
        off = np.abs(values - expected)
        # Rounding decides more where a row is near a jump or a threshold, such as a kink of a rectifier in its way.
        return bool(np.all(off <= allowed) or np.all(off <= allowed + 2.0 * factor * self._unsteadiness[rows]))

    @cached_property
    def _unsteadiness(self) -> np.ndarray:
        """How far each row moves when its own inputs move by as little as rounding moves what comes of them."""
        random, batch = np.random.default_rng(2), self._bench.batch
        every, largest = np.arange(len(self._whole)), np.zeros(len(self._whole))
        for _ in range(_MOVES):
            named = {"real": batch.real, "fake": batch.fake, "latent": batch.latent}
            nudged = {name: x * random.uniform(1 - _MOVE, 1 + _MOVE, x.shape) for name, x in named.items()}
            moved = self._rows(self._again(every), replace(batch, **nudged)).numpy()
            largest = np.maximum(largest, np.abs(moved - self._whole))
        return largest


def _taken(batch: Batch, rows: np.ndarray) -> Batch:
    by_row = {name: getattr(batch, name) for name in ("real", "fake", "labels", "latent")}
    return replace(batch, **{name: tf.gather(x, rows) for name, x in by_row.items() if x is not None})


def _moved(x: tf.Tensor) -> tf.Tensor:
    return tf.concat([1.0 - 0.5 * x[:1], x[1:]], axis=0)
