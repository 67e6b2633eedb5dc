"""Trains and tests the classifier: the same numbers on any number of replicas, up to rounding."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import ganlab
from ganlab.lazy import keras
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    import tensorflow

_TEST_BATCH = 500
_REPORT_SECONDS = 10.0


@dataclass(frozen=True)
class Settings:
    """The settings that, with the data, determine a trained classifier; `Classifier` documents each."""

    updates: int
    batch_size: int
    learning_rate: float
    width: int
    features: int
    shift: int
    hold_out: int
    seed: int


def split(size: int, hold_out: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of training and of held-out examples, which depend only on these numbers."""
    numbers = np.arange(size)
    return numbers[numbers % hold_out != 0], numbers[numbers % hold_out == 0]


def train(
    model: keras.Model, dataset: ganlab.Dataset, settings: Settings, report: Callable[[int], None] = lambda done: None
) -> None:
    """Trains a model from `network.build`, made under the strategy in use, on the examples that are not held out.

    Every few seconds, `report` is called with the number of updates done.
    """
    strategy = tf.distribute.get_strategy()
    training, _ = split(_size(dataset), settings.hold_out)
    size = min(settings.batch_size, len(training))
    with strategy.scope():
        schedule = keras.optimizers.schedules.CosineDecay(settings.learning_rate, settings.updates, name="cosine")
        adam = keras.optimizers.Adam(schedule, name="adam")
        adam.build(model.trainable_variables)

    @tf.function(autograph=False)
    def step(images: Any, labels: Any, weights: Any) -> None:
        strategy.run(update, args=(model, adam, images, labels, weights))

    per_epoch = len(training) // size
    reported_at = time.monotonic()
    for number in range(settings.updates):
        epoch, at = divmod(number, per_epoch)
        shuffled = np.random.default_rng([settings.seed, 0, epoch]).permutation(training)
        images, labels = _read(dataset, shuffled[at * size : (at + 1) * size])
        moved = shifted(images, settings.shift, np.random.default_rng([settings.seed, 1, number]))
        step(*filled(moved, labels, size))
        if time.monotonic() - reported_at >= _REPORT_SECONDS:
            report(number + 1)
            reported_at = time.monotonic()


def accuracy(model: keras.Model, dataset: ganlab.Dataset, hold_out: int) -> float:
    """The fraction of held-out examples that a model classifies correctly: counted in every replica, and summed."""
    strategy = tf.distribute.get_strategy()
    _, numbers = split(_size(dataset), hold_out)

    @tf.function(autograph=False)
    def count(images: Any, labels: Any, weights: Any) -> Any:
        counts = strategy.run(correct, args=(model, images, labels, weights))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, counts, axis=None)

    size = min(_TEST_BATCH, len(numbers))
    batches = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    return sum(float(count(*filled(*_read(dataset, some), size))) for some in batches) / len(numbers)


def update(
    model: keras.Model,
    adam: keras.optimizers.Optimizer,
    images: tensorflow.Tensor,
    labels: tensorflow.Tensor,
    weights: tensorflow.Tensor,
) -> None:
    """One update, on one replica; `weights` are 1 for an example and 0 for a row that fills the batch up.

    The loss is this replica's sum of examples' losses over the weight of the global batch, because the optimizer sums
    gradients over replicas: the sum is the gradient of the global batch's mean, on any number of them.
    """
    total = tf.reduce_sum(weights)
    with tf.GradientTape() as tape:
        _, logits = model(share(images), training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=share(labels), logits=logits)
        loss = tf.reduce_sum(share(weights) * losses) / total
    adam.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)


def correct(
    model: keras.Model, images: tensorflow.Tensor, labels: tensorflow.Tensor, weights: tensorflow.Tensor
) -> tensorflow.Tensor:
    """The number of examples in this replica's share that are classified correctly; arguments as in `update`."""
    _, logits = model(share(images), training=False)
    correct_rows = tf.equal(tf.argmax(logits, axis=1), share(labels))
    return tf.reduce_sum(share(weights) * tf.cast(correct_rows, tf.float32))


def share(x: tensorflow.Tensor) -> tensorflow.Tensor:
    """This replica's rows of a batch whose rows divide over all replicas."""
    context = tf.distribute.get_replica_context()
    rows = x.shape[0] // context.num_replicas_in_sync
    first = tf.cast(context.replica_id_in_sync_group, tf.int32) * rows
    return tf.slice(x, [first] + [0] * (len(x.shape) - 1), [rows, *x.shape[1:]])


def shifted(images: np.ndarray, pixels: int, random: np.random.Generator) -> np.ndarray:
    """Images shifted by up to so many pixels either way, each by its own amount; edges are repeated."""
    count, height, width = images.shape[:3]
    down, right = random.integers(-pixels, pixels + 1, size=(2, count, 1))
    rows = np.clip(np.arange(height) + down, 0, height - 1)
    columns = np.clip(np.arange(width) + right, 0, width - 1)
    return images[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]


def filled(images: np.ndarray, labels: np.ndarray, size: int) -> tuple[tensorflow.Tensor, ...]:
    """At most `size` images, labels and weights in rows that divide over the replicas, filled up at weight 0."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    rows = -(-size // replicas) * replicas
    weights = (np.arange(rows) < len(images)).astype(np.float32)
    return (
        tf.constant(np.resize(images, (rows, *images.shape[1:]))),
        tf.constant(np.resize(labels, rows)),
        tf.constant(weights),
    )


def _read(dataset: ganlab.Dataset, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wanted = tf.constant(numbers, tf.int64)
    return np.asarray(dataset.examples(wanted, 0)), np.asarray(dataset.labels(wanted), np.int64)


def _size(dataset: ganlab.Dataset) -> int:
    assert dataset.size is not None
    return dataset.size
