"""Conformance of losses: per example, in the right direction, finite."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
import tensorflow as tf

from ganlab.interfaces import Loss
from ganlab.plugins.blame import plugin_code
from ganlab.testing.conformance import check, fail
from ganlab.testing.trained import TrainedConformance

_REAL = np.array([-30.0, -2.0, -0.5, 0.0, 0.5, 2.0, 30.0], np.float32)
_FAKE = np.array([0.3, 20.0, 1.0, 0.0, -1.0, -20.0, -0.1], np.float32)


class LossConformance(TrainedConformance):
    """Checks a loss against its contract.

    class TestMine(LossConformance):
        def make(self):
            return Mine()
    """

    kind = "losses"
    _cause: ClassVar[str] = "return each example's own loss: the core divides by the global batch size."

    def make(self) -> Loss:
        """Makes the loss under test, a new one at every call. Authors write this method."""
        raise NotImplementedError(f"{type(self).__name__} needs a method make(self) that returns a new loss.")

    def _parts(self) -> dict[str, Any]:
        return {"loss": self.make()}

    def _losses(self, real: np.ndarray = _REAL, fake: np.ndarray = _FAKE) -> dict[str, tf.Tensor]:
        loss, name = self.make(), type(self.make()).__name__
        with plugin_code(name, "critic"):
            critic = loss.critic(tf.constant(real), tf.constant(fake))
        with plugin_code(name, "generator"):
            generator = loss.generator(tf.constant(fake))
        return {"critic": tf.convert_to_tensor(critic), "generator": tf.convert_to_tensor(generator)}

    @check(first=True)
    def test_shapes_and_dtypes(self) -> None:
        """One float32 value for each example."""
        for method, value in self._losses().items():
            if value.shape != _REAL.shape or value.dtype != tf.float32:
                fail(
                    f"{method} returns the shape {tuple(value.shape)}, {value.dtype.name}, for {len(_REAL)} scores; it "
                    f"must be ({len(_REAL)},), float32. Do not reduce over the batch: the core divides by its size."
                )

    @check()
    def test_rows_are_independent(self) -> None:
        """Row i depends on the scores of row i alone, or on statistics that do not depend on how a batch is split."""
        whole = self._losses()
        other = self._losses(
            np.append(_REAL[:-1], 1.0).astype(np.float32), np.append(_FAKE[:-1], 2.0).astype(np.float32)
        )
        for method, value in whole.items():
            if not np.allclose(other[method][:-1], value[:-1], rtol=1e-6, atol=1e-6):
                if self._on_two() is None:
                    pytest.skip(
                        f"{method} takes statistics over the batch of all replicas: two train as one device does."
                    )
                fail(
                    f"{method}: the loss of an example changes when another example's scores do, and two replicas do "
                    "not train as one device does. Take each score alone, or reduce statistics over replicas, with "
                    "tf.distribute.get_replica_context().all_reduce; a plain mean covers only the replica's batch."
                )

    @check()
    def test_values_and_gradients_are_finite(self) -> None:
        """Values and gradients are finite even for scores of plus and minus 30, where probabilities round to 0 or 1."""
        loss, real, fake = self.make(), tf.constant(_REAL), tf.constant(_FAKE)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch((real, fake))
            values = {"critic": loss.critic(real, fake), "generator": loss.generator(fake)}
        for method, value in values.items():
            slopes = tape.gradient(value, (real, fake), unconnected_gradients="zero")
            if not all(np.isfinite(x).all() for x in (value, *slopes)):
                fail(
                    f"{method} is not finite, or its gradient is not, for scores like {_REAL[0]:g} and "
                    f"{_FAKE[1]:g}. Use functions that are safe for large scores: tf.nn.softplus, "
                    "tf.nn.sigmoid_cross_entropy_with_logits."
                )

    @check()
    def test_the_critic_wants_real_scores_higher(self) -> None:
        """The critic's loss falls as real scores rise above fake ones, the generator's as its fakes score higher."""
        high, low = np.full(3, 0.5, np.float32), np.full(3, -0.5, np.float32)
        right, wrong = self._losses(high, low), self._losses(low, high)
        if not np.mean(right["critic"]) < np.mean(wrong["critic"]):
            fail(
                "critic is not lower where real examples score 0.5 and fakes -0.5 than the other way round. ganlab's "
                "critics score real examples higher: reverse the sign."
            )
        if not np.mean(wrong["generator"]) < np.mean(right["generator"]):
            fail("generator is not lower where fakes score 0.5 than where they score -0.5: reverse the sign.")
