"""The order of reads and updates of variables, kept where TensorFlow's graph optimizer would lose it."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from ganlab.training.graph.values import Values


def after_reads(gradients: Sequence[tf.Tensor], values: Values) -> list[tf.Tensor]:
    """Gradients that exist only when all values that the update computes with have been read.

    An update of a variable waits for the reads before it through control edges. The dependency optimizer drops such an
    edge where another path leads from the read to the update, takes the sum of all gradients over the replicas for
    one operation in doing so, and then divides that operation by gradient: the path is gone, and the edge with it. It
    hits the weights of a layer that reach the gradients of other layers but not their own, for example a linear last
    layer under a loss linear in the critic's outputs. These were read too late now and then.
    """
    with tf.control_dependencies(tf.nest.flatten(values)):
        return [tf.identity(gradient) for gradient in gradients]
