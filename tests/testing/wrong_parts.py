"""Components that break their contracts, each in one way."""

import time
from typing import ClassVar

import keras
import numpy as np
from ganlab_verify.testing import parts

import ganlab
from ganlab.lazy import tensorflow as tf


class Forgetful(ganlab.Dataset):
    """Points that depend on the number of previous calls."""

    sample_shape, size = (2,), None

    def __init__(self):
        self._calls = 0

    def _next(self, numbers):
        self._calls += 1
        return np.full((len(numbers), 2), self._calls / 10, np.float32)

    def examples(self, numbers, seed):
        return tf.ensure_shape(tf.numpy_function(self._next, [numbers], tf.float32), (numbers.shape[0], 2))


class ByPlace(ganlab.Dataset):
    sample_shape, size = (2,), None

    def examples(self, numbers, seed):
        return tf.random.stateless_normal([numbers.shape[0], 2], [seed, 1])


class ShiftedLabels(ganlab.Dataset):
    sample_shape, size, classes = (2,), 30, 3

    def examples(self, numbers, seed):
        return tf.cast(tf.stack([numbers, numbers], axis=1), tf.float32) / 30.0

    def labels(self, numbers):
        return numbers % 3 + 1


class LabelsByPlace(ShiftedLabels):
    def labels(self, numbers):
        return tf.range(numbers.shape[0], dtype=tf.int64) % 3


class Bytes(ganlab.Dataset):
    """Images from 0 to 255."""

    sample_shape, size = (8, 8, 1), 20

    def examples(self, numbers, seed):
        return tf.tile(tf.cast(numbers, tf.float32)[:, None, None, None] * 10.0, [1, 8, 8, 1])


class Timed(ganlab.Dataset):
    sample_shape, size = (2,), None

    def examples(self, numbers, seed):
        return tf.ones([numbers.shape[0], 2])

    def fingerprint(self):
        return {"object": id(self), "time": time.time_ns()}


class Doubles(ganlab.Dataset):
    sample_shape, size = (2,), None

    def examples(self, numbers, seed):
        return tf.tile(tf.cast(numbers, tf.float64)[:, None], [1, 2])


class ReducedLoss(parts.Wasserstein):
    def critic(self, real_scores, fake_scores):
        return tf.reduce_mean(fake_scores - real_scores)


class TurnedLoss(ganlab.Loss):
    def critic(self, real_scores, fake_scores):
        return real_scores - fake_scores

    def generator(self, fake_scores):
        return fake_scores


class TurnedByNetworks(parts.Wasserstein):
    """The same, where the method takes networks that every experiment has."""

    def critic(self, real_scores, fake_scores, batch, networks):
        return real_scores - fake_scores + 0.0 * networks["critic"](batch.fake)


class OwnWidth(parts.Wasserstein):
    """Takes an output of two numbers."""

    outputs = ("code",)

    def critic(self, real_scores, fake_scores, batch):
        return fake_scores - real_scores + tf.reduce_sum(batch.real_outputs["code"] * tf.ones([7, 2]), axis=1)


class EncodingEvaluator(ganlab.Evaluator):
    def evaluate(self, sample, dataset, run):
        _, encoded = sample.networks()["encoder"]
        return {"length": float(np.mean(encoded(sample(8, seed=0)) ** 2))}


class RelativeLoss(parts.Wasserstein):
    def critic(self, real_scores, fake_scores):
        return tf.nn.softplus(tf.reduce_mean(fake_scores) - real_scores)


class OverflowingLoss(parts.Wasserstein):
    """Uses an exponential instead of a softplus."""

    def critic(self, real_scores, fake_scores):
        return tf.math.log(1.0 + tf.exp(5.0 * (fake_scores - real_scores)))


KEPT = []


class KeepsInItsModule(parts.Wasserstein):
    def critic(self, real_scores, fake_scores):
        KEPT[:] = [real_scores]
        return fake_scores - real_scores


class KeepsOnItself(parts.Wasserstein):
    def critic(self, real_scores, fake_scores):
        self.last = real_scores
        return fake_scores - real_scores


class CountsCalls(parts.Wasserstein):
    calls = 0

    def critic(self, real_scores, fake_scores):
        self.calls += 1
        return (fake_scores - real_scores) * (2.0 if self.calls > 2 else 1.0)


class OwnDraws(parts.Wasserstein):
    def critic(self, real_scores, fake_scores):
        return tf.random.uniform(real_scores.shape) * (fake_scores - real_scores)


class CenteredByBatch(ganlab.Augmentation):
    def apply(self, x, state, replica):
        return x - tf.reduce_mean(x, axis=0, keepdims=True)


class OneShift(ganlab.Augmentation):
    """Shifts by numbers of its own, by the place in the batch."""

    def apply(self, x, state, replica):
        return x + tf.random.stateless_normal(x.shape, seed=[1, 2])


class Rounded(ganlab.Augmentation):
    """Rounds, which has no gradient."""

    def apply(self, x, state, replica):
        return tf.round(4.0 * x) / 4.0


class LocalCount(ganlab.Augmentation):
    """Keeps a statistic of the replica's own examples."""

    def initial_state(self):
        return {"strength": tf.constant(0.1)}

    def apply(self, x, state, replica):
        return x * (1.0 + state["strength"])

    def advance(self, state, scores, replica):
        return {"strength": 0.1 * tf.reduce_mean(tf.tanh(scores))}


class BeginsElsewhere(ganlab.Schedule):
    start = 1.0

    def value(self, step, steps):
        return 2.0 - step / steps


class FrozenSchedule(ganlab.Schedule):
    """Counts its calls in Python."""

    start = 0.0

    def __init__(self):
        self.calls = -1

    def value(self, step, steps):
        self.calls += 1
        return 0.0 * step + (0.0 if self.calls == 0 else float(self.calls))


class Endless(ganlab.Schedule):
    start = 1.0

    def value(self, step, steps):
        return steps / (steps - step)


def with_critic(*layers):
    """Networks whose critic has layers, each of a function, before its last one."""

    def critic(sample_shape):
        return keras.Sequential([keras.Input(sample_shape), *(make() for make in layers), keras.layers.Dense(1)])

    return parts.Networks(critic)


def unseeded():
    """Draws its initial weights from a generator of its own."""

    def initial(shape, dtype=None):
        return tf.constant(np.random.default_rng().normal(size=shape), tf.float32)

    return with_critic(lambda: keras.layers.Dense(4, kernel_initializer=initial))


def mixing_critic():
    return with_critic(
        lambda: keras.layers.Dense(4, activation="tanh"),
        lambda: keras.layers.Lambda(lambda h: h - tf.reduce_mean(h, axis=0)),
    )


def own_noise():
    return with_critic(lambda: keras.layers.Dropout(0.5))


class IgnoresLabels(ganlab.Architecture):
    """Takes labels and leaves them in the networks named here."""

    latent_dim, conditional = 3, True

    def __init__(self, *, of: str = "critic"):
        self.of = of

    def _network(self, role, x, width):
        y = keras.Input((), dtype="int64")
        embedded = keras.layers.Embedding(8, 4, embeddings_initializer="zeros")(y)
        if role in self.of:
            embedded = keras.layers.Lambda(lambda e: 0.0 * e)(embedded)
        return keras.Model([x, y], keras.layers.Dense(width)(keras.layers.Concatenate()([x, embedded])))

    def generator(self, sample_shape):
        return self._network("generator", keras.Input((3,)), sample_shape[0])

    def critic(self, sample_shape):
        return self._network("critic", keras.Input(sample_shape), 1)


class CenteredLatents(parts.Networks):
    def __init__(self):
        super().__init__(parts.critic)

    def latent(self, uniform, normal):
        return normal - tf.reduce_mean(normal, axis=0)


class BrightImages(parts.Networks):
    def __init__(self):
        super().__init__(parts.critic)

    def generator(self, sample_shape):
        z = keras.Input((self.latent_dim,))
        x = keras.layers.Dense(int(np.prod(sample_shape)), kernel_initializer="ones")(z)
        return keras.Model(z, keras.layers.Reshape(sample_shape)(x))


class RandomEvaluator(ganlab.Evaluator):
    def evaluate(self, sample, dataset, run):
        return {"mean": float(sample(10, 0).mean() + np.random.default_rng().normal())}


class ListEvaluator(ganlab.Evaluator):
    def evaluate(self, sample, dataset, run):
        return [1.0]


class NanEvaluator(ganlab.Evaluator):
    def evaluate(self, sample, dataset, run):
        return {"ratio": float("nan")}


class LimitedEvaluator(ganlab.Evaluator):
    """Takes a percentage for a share."""

    better: ClassVar = {"share": "max"}

    def evaluate(self, sample, dataset, run):
        return {"share": 50.0}

    def limits(self, dataset):
        return {"share": (0.0, 1.0)}


class MisspeltEvaluator(LimitedEvaluator):
    """Declares the better direction of a figure that it does not return."""

    better: ClassVar = {"shares": "max"}


class Forgotten(keras.optimizers.SGD):
    """Leaves an argument out of its configuration."""

    def __init__(self, learning_rate=0.01, brake=1.0, **kwargs):
        super().__init__(learning_rate=learning_rate * brake, **kwargs)
        self.brake = brake

    def get_config(self):
        return {**super().get_config(), "brake": self.brake}


class ClipsPerReplica(keras.optimizers.SGD):
    def apply(self, grads, trainable_variables=None):
        super().apply([tf.clip_by_norm(gradient, 1e-3) for gradient in grads], trainable_variables)


class Climbs(keras.optimizers.SGD):
    def update_step(self, gradient, variable, learning_rate):
        super().update_step(-gradient, variable, learning_rate)
