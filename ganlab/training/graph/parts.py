"""A loop over the microbatches of an update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def in_turn(parts: int, body: Callable[..., Any], first: tuple[Any, ...]) -> Any:
    """Calls `body(i, *variables) -> (i + 1, *variables)` for each part in turn, as a loop of the graph.

    Returns the last values of the variables.
    """
    return tf.while_loop(lambda i, *_: i < parts, body, (tf.constant(0), *first), parallel_iterations=1)[1:]


def summed(totals: Sequence[tf.Tensor], gradients: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The sums of a loop's variables and the gradients of its present part.

    TensorFlow's memory optimizer keeps a sum of three large tensors in a temporary variable. Where one of them is
    a variable of a loop, the temporary variable is created once too often, and the next time the loop runs it "already
    exists" (tensorflow/tensorflow#23780). So another operation stands between the variable and the gradient, which is
    such a sum itself, or the two would be joined.
    """
    return [t + tf.ensure_shape(g, t.shape) for t, g in zip(totals, gradients, strict=True)]
