"""Constraints that break the contract, each in one way, for tests of the conformance kit."""

import random

import numpy as np

import ganlab
from ganlab.functional import input_gradient, interpolate, slopes
from ganlab.lazy import tensorflow as tf


class ScalarPenalty(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        return tf.reduce_mean(tf.square(slopes(critic, batch.real) - 1.0))


class DividedByTheLocalBatch(ganlab.Constraint):
    """Divides by the examples of its replica, as a mean would, and keeps the shape."""

    def penalty(self, critic, batch, state, replica):
        return tf.square(slopes(critic, batch.real) - 1.0) / batch.real.shape[0]


class ScaledByReplicas(ganlab.Constraint):
    """The same mistake, computed in another way."""

    def penalty(self, critic, batch, state, replica):
        return tf.square(slopes(critic, batch.real) - 1.0) * replica.count


class AveragedPerReplica(ganlab.Constraint):
    """Gives every example the square of the mean slope of its replica."""

    def penalty(self, critic, batch, state, replica):
        mean = tf.reduce_mean(slopes(critic, batch.real))
        return tf.fill([batch.real.shape[0]], tf.square(mean - 1.0))


class SumsItsState(ganlab.Constraint):
    """Scales by a sum over replicas in place of a mean."""

    def initial_state(self, weights):
        return {"spread": tf.constant(0.0)}

    def advance(self, weights, state, batch, replica):
        return {"spread": replica.sum(tf.reduce_mean(tf.abs(batch.real)))}

    def penalty(self, critic, batch, state, replica):
        return state["spread"] * tf.square(slopes(critic, batch.real) - 1.0)


class WrongSide(ganlab.Constraint):
    """Penalizes slopes below one in place of those above."""

    def penalty(self, critic, batch, state, replica):
        return tf.square(tf.nn.relu(1.0 - slopes(critic, batch.real)))


class VariableInPenalty(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        weight = tf.Variable(10.0)
        return weight * tf.square(slopes(critic, batch.real) - 1.0)


class NanAtZero(ganlab.Constraint):
    """Takes a norm that has no gradient at zero."""

    def penalty(self, critic, batch, state, replica):
        gradient, _ = input_gradient(critic, batch.real)
        return tf.square(tf.norm(gradient, axis=1) - 1.0)


class NormalizesByANorm(ganlab.Constraint):
    def transform(self, critic):
        def normalized(x):
            gradient, score = input_gradient(critic, x)
            return score / tf.norm(gradient, axis=1)

        return normalized


class StopsPartOfItsGradient(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        slope = slopes(critic, batch.real)
        return tf.square(slope) * tf.stop_gradient(slope)


class PythonRandom(ganlab.Constraint):
    """Draws from Python, which a compiled step runs only once."""

    def penalty(self, critic, batch, state, replica):
        return random.random() * tf.square(slopes(critic, batch.real) - 1.0)


class NumpyRandom(ganlab.Constraint):
    """Starts from numpy's random numbers, which differ in every process."""

    def initial_state(self, weights):
        return {"u": tf.constant(np.random.normal(size=3), tf.float32)}


class TensorFlowRandom(ganlab.Constraint):
    """Draws from TensorFlow, each replica its own numbers."""

    def penalty(self, critic, batch, state, replica):
        a = tf.random.uniform([batch.real.shape[0]])
        return tf.square(slopes(critic, interpolate(batch.real, batch.fake, a)) - 1.0)


class FixedSeed(ganlab.Constraint):
    """Draws with a seed of its own, which gives every replica the same numbers."""

    def penalty(self, critic, batch, state, replica):
        seed = tf.stack([7, tf.cast(batch.step, tf.int32)])
        a = tf.random.stateless_uniform([batch.real.shape[0]], seed=seed)
        return tf.square(slopes(critic, interpolate(batch.real, batch.fake, a)) - 1.0)


class LocalStatistic(ganlab.Constraint):
    """Uses the deviation of its replica's examples instead of that of the data."""

    def initial_state(self, weights):
        return {"deviation": tf.zeros([])}

    def advance(self, weights, state, batch, replica):
        return {"deviation": tf.math.reduce_std(batch.real)}

    def penalty(self, critic, batch, state, replica):
        noise = replica.normal(batch.real.shape)
        return tf.square(slopes(critic, batch.real + state["deviation"] * noise) - 1.0)


class MixesExamples(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        scores = critic(batch.real)
        return tf.square(scores - tf.reduce_mean(scores))


class MixingTransform(ganlab.Constraint):
    def transform(self, critic):
        def normalized(x):
            scores = critic(x)
            return scores / (1e-3 + tf.math.reduce_std(scores))

        return normalized


class KeepsOnSelf(ganlab.Constraint):
    def __init__(self):
        self.mean = 0.0

    def penalty(self, critic, batch, state, replica):
        slope = slopes(critic, batch.real)
        self.mean = 0.9 * self.mean + 0.1 * tf.reduce_mean(slope)
        return tf.square(slope - 1.0)


KEPT = {}


class KeepsInItsModule(ganlab.Constraint):
    """Passes a tensor from one method to another by a global name."""

    def advance(self, weights, state, batch, replica):
        KEPT["mean"] = tf.reduce_mean(batch.real)
        return state

    def penalty(self, critic, batch, state, replica):
        return tf.square(slopes(critic, batch.real)) + 0.0 * replica.normal([batch.real.shape[0]])


class VariableInPrepare(ganlab.Constraint):
    def prepare(self, critic):
        self.updates = tf.Variable(0.0, trainable=False)


class KeepsAVariable(ganlab.Constraint):
    def __init__(self):
        self.updates = tf.Variable(0.0, trainable=False)

    def advance(self, weights, state, batch, replica):
        self.updates.assign_add(1.0)
        return state

    def penalty(self, critic, batch, state, replica):
        return self.updates * tf.square(slopes(critic, batch.real) - 1.0)


class PythonInTheStep(ganlab.Constraint):
    """Computes in Python, which works neither under XLA nor on a TPU."""

    def penalty(self, critic, batch, state, replica):
        far = tf.numpy_function(lambda x: np.abs(x).max(axis=1), [batch.real], tf.float32)
        return tf.ensure_shape(far, [batch.real.shape[0]]) * tf.square(critic(batch.real))


class RewardsSteepness(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        return -0.1 * tf.square(slopes(critic, batch.real))


class NoEffect(ganlab.Constraint):
    """Stops the gradient that is its purpose."""

    def penalty(self, critic, batch, state, replica):
        return tf.stop_gradient(tf.square(slopes(critic, batch.real) - 1.0))


class StopsTheGenerator(ganlab.Constraint):
    def transform(self, critic):
        return lambda x: critic(tf.stop_gradient(x))


class NoBound(ganlab.Constraint):
    """Returns 1 for a critic that is steeper."""

    def lipschitz_bound(self, weights):
        return 1.0


class Bfloat16Penalty(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        return tf.cast(tf.square(slopes(critic, batch.real) - 1.0), tf.bfloat16)


class EditsItsWeights(ganlab.Constraint):
    def advance(self, weights, state, batch, replica):
        for name in weights:
            weights[name] = 0.5 * weights[name]
        return state


class Unwritable(ganlab.Constraint):
    """Takes a function as a parameter, which experiment files cannot express."""

    def __init__(self, *, of=lambda x: x):
        self.of = of


class TakesAnything(ganlab.Constraint):
    def __init__(self, **options):
        self.options = options


class NoConvolutions(ganlab.Constraint):
    """Fails on kernels that are not matrices."""

    def weight_penalty(self, weights):
        return sum(tf.reduce_sum(w @ tf.transpose(w)) for w in weights.values() if len(w.shape) >= 2)


class Talkative(ganlab.Constraint):
    def diagnose(self, metrics):
        return 3
