"""Holds the gradient of a penalty on slopes against central differences."""

import tensorflow as tf


def departure(critic, x):
    """The error of the gradient of a penalty on slopes against central differences, relative to the slope; float64.

    It is taken along one direction for each weight, the gradient's own.
    """
    weights = critic.trainable_variables

    def penalty():
        with tf.GradientTape() as tape:
            tape.watch(x)
            scores = critic(x)
        gradient = tf.reshape(tape.gradient(scores, x), [len(x), -1])
        return tf.reduce_sum(tf.square(tf.norm(gradient, axis=1) - 1))

    with tf.GradientTape() as tape:
        value = penalty()
    worst = 0.0
    for weight, gradient in zip(weights, tape.gradient(value, weights), strict=True):
        # A weight without a gradient is moved along random numbers: the penalty must not change.
        direction = tf.random.stateless_normal(weight.shape, [3, 4], dtype=tf.float64)
        if gradient is not None and tf.norm(gradient) > 1e-8:
            direction = gradient
        direction /= tf.norm(direction)
        before, step = tf.identity(weight), 1e-5
        sides = []
        for sign in (1, -1):
            weight.assign(before + sign * step * direction)
            sides.append(penalty())
        weight.assign(before)
        slope = (sides[0] - sides[1]) / (2 * step)
        along = tf.reduce_sum(direction * gradient) if gradient is not None else 0.0
        worst = max(worst, float(abs(slope - along) / (abs(slope) + 1e-3)))
    return worst
