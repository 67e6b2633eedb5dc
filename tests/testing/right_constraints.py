"""Constraints that are right but unusual: the kit must let them pass."""

import ganlab
from ganlab.functional import slopes
from ganlab.lazy import tensorflow as tf


class Dragan(ganlab.Constraint):
    """Slopes near the data, within the standard deviation of the global batch (Kodali et al., 2017).

    Also keeps a running mean of that deviation and a count, and logs with every reduction.
    """

    def __init__(self, *, weight: float = 1.0) -> None:
        self.weight = weight

    def initial_state(self, weights):
        return {"deviation": tf.zeros([]), "updates": tf.zeros([], tf.int32)}

    def advance(self, weights, state, batch, replica):
        mean = replica.mean(tf.reduce_mean(batch.real))
        deviation = tf.sqrt(replica.mean(tf.reduce_mean(tf.square(batch.real - mean))))
        replica.log("deviation", deviation)
        return {"deviation": 0.5 * state["deviation"] + 0.5 * deviation, "updates": state["updates"] + 1}

    def penalty(self, critic, batch, state, replica):
        slope = slopes(critic, batch.real + state["deviation"] * replica.normal(batch.real.shape))
        for reduce in ("mean", "max", "min", "sum"):
            replica.log(f"slope_{reduce}", slope, reduce=reduce)
        return self.weight * tf.square(slope - 1.0)


class Lazy(ganlab.Constraint):
    every = 3

    def penalty(self, critic, batch, state, replica):
        slope = slopes(critic, batch.real)
        replica.log("slope", slope)
        return 0.1 * tf.square(slope)


class FollowsTheWeights(ganlab.Constraint):
    """Weighs its penalty by the weights as they were before the update, which are not part of its gradient."""

    def initial_state(self, weights):
        return {"size": tf.zeros([])}

    def advance(self, weights, state, batch, replica):
        return {"size": sum(tf.reduce_sum(tf.square(w)) for w in weights.values())}

    def penalty(self, critic, batch, state, replica):
        return 0.01 * state["size"] * tf.square(slopes(critic, batch.real))


class Frobenius(ganlab.Constraint):
    """Acts on the weights alone, with a true bound for a critic whose activations have slopes of at most 1."""

    def prepare(self, critic):
        self._dense = all("conv" not in layer.name for layer in critic.layers)

    def weight_penalty(self, weights):
        return 0.05 * sum(tf.reduce_sum(tf.square(w)) for w in weights.values() if len(w.shape) >= 2)

    def lipschitz_bound(self, weights):
        if not self._dense:
            return None
        return tf.reduce_prod([tf.norm(w) for w in weights.values() if len(w.shape) >= 2])


class NeedsNoise(ganlab.Constraint):
    """Needs noisy layers, and compares two passes."""

    def prepare(self, critic):
        if not any(isinstance(layer, ganlab.layers.Dropout) for layer in critic.layers):
            raise ganlab.IncompatibleError("constraints.needs_noise needs a ganlab.layers.Dropout in the critic.")

    def penalty(self, critic, batch, state, replica):
        return tf.square(critic(batch.real) - critic(batch.real))


class Nothing(ganlab.Constraint):
    """Does nothing at all."""
