"""Components that break the rules that `graph` and `resume` check."""

import itertools

import numpy as np
from right_constraints import FollowsTheWeights
from wrong_constraints import KeepsInItsModule, MixesExamples, TensorFlowRandom
from wrong_parts import Forgetful, IgnoresLabels

import ganlab
from ganlab.lazy import tensorflow as tf


class Peers(ganlab.Constraint):
    """Communicates with the other replicas in its penalty."""

    def penalty(self, critic, batch, state, replica):
        return tf.square(critic(batch.real) - replica.mean(tf.reduce_mean(critic(batch.fake))))


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


class OfNumpy(ganlab.Constraint):
    """Draws from numpy's generator in Python code that the step calls."""

    def penalty(self, critic, batch, state, replica):
        shape = [batch.real.shape[0]]
        drawn = tf.numpy_function(lambda: np.random.random(shape).astype("float32"), [], tf.float32)  # the numpy line
        return critic(batch.real) * tf.ensure_shape(drawn, shape)


class Counting(ganlab.Constraint):
    """Calls Python code that repeats itself."""

    def penalty(self, critic, batch, state, replica):
        shape = [batch.real.shape[0]]
        drawn = tf.numpy_function(lambda: np.ones(shape, "float32"), [], tf.float32)
        return 0.01 * critic(batch.real) * tf.ensure_shape(drawn, shape)


class RandomPoints(ganlab.Dataset):
    sample_shape, size = (2,), None

    def examples(self, numbers, seed):
        drawn = tf.numpy_function(lambda n: np.random.random((len(n), 2)).astype("float32"), [numbers], tf.float32)
        return tf.ensure_shape(drawn, [numbers.shape[0], 2])


class Frozen(ganlab.Constraint):
    """Counts its calls in Python, which a graph does not repeat."""

    def __init__(self):
        self._calls = itertools.count(1)

    def penalty(self, critic, batch, state, replica):
        return critic(batch.real) * float(next(self._calls))


class OneHot(ganlab.Dataset):
    """One letter of eight, by the bits of a number."""

    sample_shape, size = (8,), None

    def examples(self, numbers, seed):
        return tf.one_hot(tf.cast(8.0 * ganlab.functional.example_uniform(numbers, 1, seed)[:, 0], tf.int32), 8)


@ganlab.hookimpl
def ganlab_constraints():
    return {
        "peers": Peers,
        "mixes_examples": MixesExamples,
        "follows_the_weights": FollowsTheWeights,
        "masked": Masked,
        "bicubic": Bicubic,
        "own_noise": OwnNoise,
        "unseeded": TensorFlowRandom,
        "frozen": Frozen,
        "keeping": KeepsInItsModule,
        "of_numpy": OfNumpy,
        "counting": Counting,
    }


@ganlab.hookimpl
def ganlab_datasets():
    return {"forgetful": Forgetful, "one_hot": OneHot, "random_points": RandomPoints}


@ganlab.hookimpl
def ganlab_architectures():
    return {"deaf": IgnoresLabels}
