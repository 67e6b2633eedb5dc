"""Conformance of augmentations: by example, differentiable, the same on any number of replicas."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from ganlab import Augmentation, Dataset
from ganlab.engine import Augmentations, Draws
from ganlab.errors import IncompatibleError
from ganlab_verify.lab import FLOOR
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import check, fail
from ganlab_verify.testing.trained import TrainedConformance

_ROUNDING = 1e-5


class AugmentationConformance(TrainedConformance):
    """Checks an augmentation against its contract.

    class TestMine(AugmentationConformance):
        def make(self):
            return Mine()

    Attributes:
        sample_shape: The shape of the kit's examples; None for the first that it accepts, vectors or images.
    """

    kind, role = "augmentations", Augmentation
    sample_shape: ClassVar[tuple[int, ...] | None] = None
    _cause: ClassVar[str] = "draw from replica, by example, and reduce in advance what depends on data."

    def _parts(self) -> dict[str, Any]:
        return {"augmentations": [self.make()], "dataset": self._dataset()}

    def _dataset(self) -> Dataset:
        return self.once("dataset", self._accepted)

    def _accepted(self) -> Dataset:
        if self.sample_shape is not None:
            return parts.dataset(self.sample_shape)
        try:
            self._applied(parts.Points())
        except IncompatibleError:
            return parts.Images()
        return parts.Points()

    def _applied(self, dataset: Dataset, draws: Draws | None = None, x: tf.Tensor | None = None) -> tf.Tensor:
        """The changed examples, the first of the dataset unless others are given."""
        return self._with_side(dataset, draws, x)[0]

    def _with_side(
        self, dataset: Dataset, draws: Draws | None = None, x: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        made = self.make()
        applied = Augmentations([made], [type(made).__name__])
        given = self._examples(dataset) if x is None else x
        changed, side = applied.apply({"real": given}, applied.initialize(), draws or _draws())
        return changed["real"], side

    @staticmethod
    def _examples(dataset: Dataset) -> tf.Tensor:
        return tf.convert_to_tensor(dataset.examples(tf.range(parts.BATCH, dtype=tf.int64), 0))

    @check(first=True)
    def test_shapes_and_finite_values(self) -> None:
        """It returns finite examples of the shape and dtype that it was given."""
        if not np.isfinite(self._applied(self._dataset())).all():
            fail("apply returned values that are not finite.")

    @check()
    def test_rows_are_independent(self) -> None:
        """Row i depends on example i and its random numbers alone, whatever its place in the batch."""
        dataset, draws = self._dataset(), _draws()
        x = self._examples(dataset)
        whole = self._applied(dataset, draws, x).numpy()
        other = self._applied(dataset, _again(draws, np.arange(len(whole))), tf.concat([1.0 - 0.5 * x[:1], x[1:]], 0))
        if not _near(other.numpy()[1:], whole[1:]):
            fail("apply: examples change when example 0 does. Change each example by itself, without batch statistics.")
        for rows, how in (
            (np.random.default_rng(1).permutation(len(whole)), "examples and their random numbers change places"),
            (np.arange(len(whole) // 2), "its replica has half as many examples"),
        ):
            if not _near(self._applied(dataset, _again(draws, rows), tf.gather(x, rows)).numpy(), whole[rows]):
                fail(
                    f"apply: an example changes otherwise when {how}. Draw from replica.uniform or replica.normal, a "
                    "row of numbers for each example."
                )

    @check()
    def test_side_outputs_are_drawn(self) -> None:
        """Side outputs do not depend on the examples: a row's holds for the real example and for the sample."""
        dataset = self._dataset()
        x = self._examples(dataset)
        _, side = self._with_side(dataset, x=x)
        _, other = self._with_side(dataset, x=1.0 - 0.5 * x)
        if bad := [name for name, value in side.items() if not np.array_equal(value, other[name])]:
            fail(
                f"apply returns {bad[0]} by what the examples are; it must be drawn, because real examples and samples "
                "have different values and one side output a row. Draw it from replica.uniform or replica.normal."
            )

    @check()
    def test_gradients_reach_the_examples(self) -> None:
        """The generator learns through it: its gradient by the examples exists, is finite and is not all zero."""
        dataset = self._dataset()
        x = self._examples(dataset)
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(tf.square(1.0 + self._applied(dataset, x=x)))
        gradient = tape.gradient(total, x)
        if gradient is None or not np.any(gradient):
            fail("No gradient reaches the examples, so the generator cannot learn. Use differentiable operations.")
        if not np.isfinite(gradient).all():
            fail("The gradient by the examples is not finite.")


def _draws(**given: Any) -> Draws:
    made = {"local_batch": parts.BATCH, **given}
    return Draws(seed=0, step=tf.constant(0, tf.int64), replica=tf.constant(0, tf.int32), **made)


def _again(draws: Draws, rows: np.ndarray) -> Draws:
    """The same random numbers for the same examples, in another order or for fewer of them."""
    return _draws(local_batch=len(rows), given=[tf.gather(value, rows) for value in draws.taken])


def _near(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.allclose(one, other, rtol=0, atol=max(_ROUNDING * float(np.abs(other).max()), FLOOR)))
