"""Components that break the rules that `graph` and `resume` check."""

import itertools

import numpy as np

import ganlab
from ganlab.lazy import tensorflow as tf


class Peers(ganlab.Constraint):
    """Communicates with the other replicas in its penalty."""

    def penalty(self, critic, batch, state, replica):
        return tf.square(critic(batch.real) - replica.mean(tf.reduce_mean(critic(batch.fake))))


class MixesExamples(ganlab.Constraint):
    """Compares the scores of the examples that it is given with their mean."""

    def penalty(self, critic, batch, state, replica):
        scores = critic(batch.real)
        return tf.square(scores - tf.reduce_mean(scores))


class FollowsTheWeights(ganlab.Constraint):
    """Weighs its penalty by a state that advance computes from the weights."""

    def initial_state(self, weights):
        return {"size": tf.zeros([])}

    def advance(self, weights, state, batch, replica):
        return {"size": tf.add_n([tf.reduce_sum(tf.square(w)) for w in weights.values()])}

    def penalty(self, critic, batch, state, replica):
        return state["size"] * tf.square(critic(batch.real))


class Masked(ganlab.Constraint):
    """Takes the examples with a positive score, a number that varies."""

    def penalty(self, critic, batch, state, replica):
        scores = critic(batch.real)
        return scores * tf.reduce_sum(tf.boolean_mask(scores, scores > 0))  # the masked line


class Bicubic(ganlab.Constraint):
    """Resizes by an operation without an XLA kernel."""

    def penalty(self, critic, batch, state, replica):
        return tf.square(critic(tf.image.resize(batch.real, (8, 8), method="bicubic")))  # the bicubic line


class OwnNoise(ganlab.Constraint):
    """Draws its own numbers, which are the same on CPU kernels and differ under XLA."""

    def penalty(self, critic, batch, state, replica):
        return critic(batch.real) * tf.random.stateless_normal([batch.real.shape[0]], seed=[1, 2])


class Frozen(ganlab.Constraint):
    """Counts its calls in Python, which a graph does not repeat."""

    def __init__(self):
        self._calls = itertools.count(1)

    def penalty(self, critic, batch, state, replica):
        return critic(batch.real) * float(next(self._calls))


class Forgetful(ganlab.Dataset):
    """Points that depend on the number of previous calls."""

    sample_shape, size = (2,), None

    def __init__(self):
        self._calls = 0

    def _next(self, numbers):
        self._calls += 1
        return np.full((len(numbers), 2), self._calls / 10, np.float32)

    def examples(self, numbers, seed):
        points = tf.numpy_function(self._next, [numbers], tf.float32)
        return tf.ensure_shape(points, (numbers.shape[0], 2))


@ganlab.hookimpl
def ganlab_constraints():
    return {
        "peers": Peers,
        "mixes_examples": MixesExamples,
        "follows_the_weights": FollowsTheWeights,
        "masked": Masked,
        "bicubic": Bicubic,
        "own_noise": OwnNoise,
        "frozen": Frozen,
    }


@ganlab.hookimpl
def ganlab_datasets():
    return {"forgetful": Forgetful}
