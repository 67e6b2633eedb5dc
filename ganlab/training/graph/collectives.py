"""All-reduces that are traced in a time that does not grow with the graph, and sum in one order.

To differentiate `ReplicaContext.all_reduce` in a graph, TensorFlow looks for variables behind its results, and so walks
through all that the other replicas have computed: a synchronized normalization takes as long as all layers before it,
on each replica. The search ends where nothing can be differentiated.

Of three replicas or more, TensorFlow's AddN begins its sum with whichever input's memory is free at that moment, and
whether that of a value with other uses is free depends on chance. Inputs that nothing else uses are always free.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf


@contextlib.contextmanager
def own_all_reduces() -> Iterator[None]:
    """Context manager for a replica's context: all-reduces inside, anybody's, have no search and a fixed order.

    Results and gradients of every order stay the same: an all-reduce of stopped tensors has the all-reduce of its
    gradients as the gradient.
    """
    context = tf.distribute.get_replica_context()
    if tf.executing_eagerly() or context.num_replicas_in_sync == 1:
        yield
        return
    plain = context.all_reduce

    def all_reduce(reduce_op: Any, value: Any, options: Any = None) -> Any:
        tensors = tf.nest.flatten(value)
        if any(isinstance(tensor, tf.IndexedSlices) for tensor in tensors):  # not differentiated
            return plain(reduce_op, value, options)

        @tf.custom_gradient
        def reduced(*given: tf.Tensor) -> tuple[Any, Any]:
            inputs = [tf.stop_gradient(tensor) for tensor in given]
            if context.num_replicas_in_sync > 2:  # a sum of two has but one order
                inputs = [tf.raw_ops.Snapshot(input=tensor) for tensor in inputs]
            results = plain(reduce_op, inputs, options)
            return results, lambda *upstream: all_reduce(reduce_op, list(upstream), options)

        return tf.nest.pack_sequence_as(value, reduced(*tensors))

    context.all_reduce = all_reduce
    try:
        yield
    finally:
        del context.all_reduce
