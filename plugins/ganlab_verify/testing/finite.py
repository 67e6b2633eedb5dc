"""Checks the values and gradients of a constraint at points where they are often not finite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from ganlab import Critic
from ganlab_verify.testing.critic_bench import Bench

_SAFE = (
    "tf.norm, tf.sqrt and divisions by a norm have no finite gradient there: use ganlab.functional.slopes or "
    "example_norm, or add a small number under the root."
)


def gradients(
    bench: Bench, *, of: str = "reparameterize, transform and penalty", roles: Sequence[str] = ("critic", "generator")
) -> Iterator[str]:
    """Checks the gradients of the first updates; yields one message for each mistake.

    Args:
        bench: The bench.
        of: The code that must be differentiable, for messages.
        roles: The networks whose gradients are checked.
    """
    for role in roles:
        by_name = bench.critic_gradients() if role == "critic" else bench.generator_gradients()
        bad = [name for name, value in by_name.items() if not np.isfinite(value).all()]
        if bad:
            yield (
                f"The {role}'s gradient by {', '.join(bad[:3])} is not finite in the first update, where biases are "
                "zero. Look for a norm, a root, a logarithm or a division at zero."
            )
        elif not any(np.any(value) for value in by_name.values()):
            yield (
                f"The {role}'s gradient is zero: it is stopped somewhere. Use differentiable operations in {of} (no "
                ".numpy(), no integer casts, tf.stop_gradient only around values that are held fixed)."
            )


def at_zero_gradient(bench: Bench) -> Iterator[str]:
    """Checks a critic that is zero everywhere, in float32 and bfloat16; yields a message for values not finite."""
    for dtype in (tf.float32, tf.bfloat16):
        slope = tf.zeros([int(np.prod(bench.batch.real.shape[1:]))])
        draws = bench.draws()
        with tf.GradientTape() as tape:
            tape.watch((slope, bench.batch.real))
            transformed = bench.transform(draws, _linear(slope, dtype))
            scores = transformed(bench.batch.real)
            penalty = bench.penalty(draws, critic=transformed)
            total = tf.reduce_sum(scores) + (0.0 if penalty is None else tf.reduce_sum(penalty))
        by_weights, by_samples = tape.gradient(total, (slope, bench.batch.real), unconnected_gradients="zero")
        values = {"penalty": penalty, "the score after transform": scores}
        values |= {"its gradient by the critic's weights": by_weights, "its gradient by the samples": by_samples}
        for what, value in values.items():
            if value is not None and not np.isfinite(np.asarray(value, np.float32)).all():
                yield (
                    f"Where the critic's gradient is zero (a constant critic, as with dead units), {what} is not "
                    f"finite{' in bfloat16' if dtype == tf.bfloat16 else ''}. {_SAFE}"
                )
                return


def at_slope(bench: Bench, slope: float) -> np.ndarray | None:
    """The penalty of a linear critic of a given slope, `(batch,)`; None if the constraint has no penalty."""
    size = int(np.prod(bench.batch.real.shape[1:]))
    direction = np.random.default_rng(0).normal(size=size)
    direction *= slope / np.linalg.norm(direction)
    linear = _linear(tf.constant(direction, tf.float32), tf.float32)
    value = bench.penalty(bench.draws(), critic=linear)
    return None if value is None else value.numpy()


def _linear(slope: tf.Tensor, dtype: tf.DType) -> Critic:
    def critic(x: tf.Tensor) -> tf.Tensor:
        flat = tf.cast(tf.reshape(x, [x.shape[0], -1]), dtype)
        return tf.cast(tf.linalg.matvec(flat, tf.cast(slope, dtype)), tf.float32)

    return critic
