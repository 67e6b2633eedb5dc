"""Constraints that use the whole contract, written as an outside author would."""

from __future__ import annotations

import ganlab
from ganlab.functional import as_matrix, example_norm, input_gradient, slopes
from ganlab.lazy import tensorflow as tf


def kernels(weights):
    return [name for name, weight in weights.items() if len(weight.shape) >= 2]


class WeightNorm(ganlab.Constraint):
    """Kernels of trained column norms (Salimans and Kingma, 2016, equation 2): gains are parameters."""

    def prepare(self, critic):
        self.names = [name for name, v in ganlab.functional.named_weights(critic).items() if len(v.shape) >= 2]
        if not self.names:
            raise ganlab.IncompatibleError("constraints.weight_norm: this critic has no kernel to normalize.")

    def parameters(self, weights):
        return {name: tf.norm(as_matrix(weights[name]), axis=0) for name in self.names}

    def reparameterize(self, weights, state):
        directions = {name: weights[name] / tf.norm(as_matrix(weights[name]), axis=0) for name in self.names}
        return {**weights, **{name: state[name] * directions[name] for name in self.names}}


class Dragan(ganlab.Constraint):
    """Slopes near the data, within the standard deviation of the global batch (Kodali et al., 2017).

    Also keeps a running mean of that deviation, and logs with every way to reduce.
    """

    def initial_state(self, weights):
        return {"deviation": tf.zeros([]), "updates": tf.zeros([], tf.int32)}

    def advance(self, weights, state, batch, replica):
        mean = replica.mean(tf.reduce_mean(batch.real))
        deviation = tf.sqrt(replica.mean(tf.reduce_mean(tf.square(batch.real - mean))))
        replica.log("deviation", deviation)
        return {"deviation": 0.5 * state["deviation"] + 0.5 * deviation, "updates": state["updates"] + 1}

    def penalty(self, critic, batch, state, replica):
        noise = replica.normal(batch.real.shape)
        slope = slopes(critic, batch.real + state["deviation"] * noise)
        for reduce in ("mean", "max", "min", "sum"):
            replica.log(f"slope_{reduce}", slope, reduce=reduce)
        return tf.square(slope - 1.0)


class MaxSlope(ganlab.Constraint):
    """The steepest slope of the global batch and the mean one, both by a collective inside the penalty."""

    def penalty(self, critic, batch, state, replica):
        slope = slopes(critic, batch.fake)
        steepest = replica.max(tf.reduce_max(slope))
        typical = replica.mean(tf.reduce_mean(slope))
        total = replica.sum(tf.reduce_sum(slope))
        value = tf.square(steepest - 1.0) + 0.1 * tf.square(typical) + 0.01 * tf.square(total / batch.size)
        return tf.fill([batch.real.shape[0]], value)


class GradientNormalization(ganlab.Constraint):
    """`critic / (slope + |critic|)` (Wu et al., 2021, equation 8)."""

    def transform(self, critic):
        def normalized(x):
            gradient, score = input_gradient(critic, x)
            return score / (example_norm(gradient) + tf.abs(score))

        return normalized


class Orthogonal(ganlab.Constraint):
    """`weight * ||W'W - 1||^2` over kernels (Brock et al., 2017), and a bound on the slope by Frobenius norms."""

    def __init__(self, *, weight: float = 0.1) -> None:
        self.weight = weight

    def weight_penalty(self, weights):
        total = tf.zeros([])
        for name in kernels(weights):
            gram = tf.matmul(as_matrix(weights[name]), as_matrix(weights[name]), transpose_a=True)
            total += tf.reduce_sum(tf.square(gram - tf.eye(gram.shape[0])))
        return self.weight * total

    def lipschitz_bound(self, weights):
        bound = 1.0
        for name in kernels(weights):
            bound *= tf.norm(weights[name])
        return bound


@ganlab.hookimpl
def ganlab_constraints():
    return {
        "weight_norm": WeightNorm,
        "running_dragan": Dragan,
        "max_slope": MaxSlope,
        "normalized_by_slope": GradientNormalization,
        "orthogonal": Orthogonal,
    }
