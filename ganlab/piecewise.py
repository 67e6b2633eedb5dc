"""Skips the curvature of rectifiers, which is zero, in graphs.

The gradient of a rectifier is a mask, whose own gradient is zero. TensorFlow returns it as a tensor of zeros, which
then goes back through every layer below: a fifth of the matrix products and convolutions of a gradient penalty multiply
zeros. Under `without_curvature` the masks are marked, and `tf.gradients` finds no path behind them. The sums are the
same, without terms that are zero.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

from ganlab.lazy import tensorflow as tf

_MASKS = {"ReluGrad": "GanlabReluMask", "LeakyReluGrad": "GanlabLeakyReluMask"}


@contextlib.contextmanager
def without_curvature() -> Iterator[None]:
    """Context manager: gradients of rectifiers taken inside have no second derivative for `tf.gradients` in a graph."""
    if tf.executing_eagerly():
        yield
        return
    _register()
    with tf.compat.v1.get_default_graph().gradient_override_map(_MASKS):
        yield


@functools.cache
def _register() -> None:
    @tf.RegisterGradient(_MASKS["ReluGrad"])
    def relu(op: tf.Operation, gradient: tf.Tensor) -> tuple[tf.Tensor, None]:
        return tf.raw_ops.ReluGrad(gradients=gradient, features=op.inputs[1]), None

    @tf.RegisterGradient(_MASKS["LeakyReluGrad"])
    def leaky_relu(op: tf.Operation, gradient: tf.Tensor) -> tuple[tf.Tensor, None]:
        alpha = op.get_attr("alpha")
        return tf.raw_ops.LeakyReluGrad(gradients=gradient, features=op.inputs[1], alpha=alpha), None
