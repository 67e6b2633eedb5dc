"""Constraints that compile for a TPU and constraints that do not, loaded like any author's plugin."""

import ganlab
from ganlab.functional import slopes
from ganlab.lazy import keras
from ganlab.lazy import tensorflow as tf


def blurred(x):
    return tf.image.resize(tf.image.resize(x, (4, 4), method="bicubic"), x.shape[1:3], "bicubic")  # the bicubic line


class Blurred(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        return tf.square(critic(blurred(batch.real)))


class BlurredSlopes(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        return slopes(lambda x: critic(blurred(x)), batch.real)


class BlurredSlopesOfSlopes(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        return slopes(lambda x: slopes(lambda y: critic(blurred(y)), x), batch.real)


class Peers(ganlab.Constraint):
    """Communicates: three reductions in advance and, in the penalty, a gather that is differentiated."""

    def initial_state(self, weights):
        return {"scale": tf.ones([])}

    def advance(self, weights, state, batch, replica):
        size = tf.reduce_mean(tf.abs(batch.fake))
        return {"scale": replica.sum(size) + replica.mean(size) + replica.max(size)}

    def penalty(self, critic, batch, state, replica):
        scores = critic(batch.real)
        return tf.square(scores) * state["scale"] + replica.max(scores[0])


class Mistaken(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        return critic(batch.real)["nothing"]  # the mistaken line


def alone():
    """Gradient descent by each replica's own gradient."""

    class Alone(keras.optimizers.SGD):
        def _all_reduce_sum_gradients(self, grads_and_vars):
            return grads_and_vars

    return Alone(0.01)


@ganlab.hookimpl
def ganlab_constraints():
    return {
        "blurred": Blurred,
        "blurred_slopes": BlurredSlopes,
        "blurred_slopes_of_slopes": BlurredSlopesOfSlopes,
        "mistaken": Mistaken,
        "peers": Peers,
    }


@ganlab.hookimpl
def ganlab_optimizers():
    return {"alone": alone}
