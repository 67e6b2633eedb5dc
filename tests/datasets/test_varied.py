"""Images that vary from one epoch to the next, against numpy."""

import numpy as np
import pytest
import tensorflow as tf
from making import architecture as networks
from making import dataset as made
from small import small

import ganlab
from ganlab.training.graph.inputs import Inputs


def digits():
    return made("digits")


def varied(**arguments):
    return made("varied", **{"dataset": digits()} | arguments)


def images(dataset, count=400, epoch=None):
    numbers = tf.range(count, dtype=tf.int64)
    epochs = {} if epoch is None else {"epochs": tf.fill([count], tf.constant(epoch, tf.int64))}
    return np.asarray(dataset.examples(numbers, 3, **epochs))


def mirrored(found, plain):
    there, back = (np.abs(found - other).max(axis=(1, 2, 3)) == 0 for other in (plain, plain[:, :, ::-1]))
    assert np.all(there | back)
    return back & ~there


def test_half_of_the_images_are_mirrored_and_others_in_the_next_epoch():
    dataset, plain = varied(flip=True), images(digits())
    first, second, third = (mirrored(images(dataset, epoch=epoch), plain) for epoch in (0, 1, 2))
    for one in (first, second, third):
        assert 150 < one.sum() < 250  # 400 coins: five standard deviations are 50
    for one, other in ((first, second), (second, third), (first, third)):
        assert 150 < np.sum(one != other) < 250
    np.testing.assert_array_equal(images(dataset), images(dataset, epoch=0))


def test_bytes_become_intervals_that_fill_the_range():
    dataset = varied(dequantize=True)
    plain = np.asarray(images(digits()), np.float64)
    found = np.asarray(images(dataset), np.float64)
    noise = (found + 1) * 128 - np.round((plain + 1) * 127.5)
    assert noise.min() > -1e-4
    assert noise.max() < 1 + 1e-4
    assert noise.mean() == pytest.approx(0.5, abs=0.01)
    assert noise.std() == pytest.approx(12**-0.5, abs=0.01)
    assert found.min() >= -1
    assert found.max() <= 1
    again = (np.asarray(images(dataset, epoch=1), np.float64) + 1) * 128 - np.round((plain + 1) * 127.5)
    assert abs(np.corrcoef(noise.ravel(), again.ravel())[0, 1]) < 0.03


def test_training_counts_the_epochs(cpus):
    class Counted(ganlab.Dataset):
        sample_shape, size = (2,), 12

        def examples(self, numbers, seed, epochs=None):
            return tf.cast(tf.stack([numbers, epochs], axis=1), tf.float32)

    inputs = Inputs(small(2, dataset=Counted(), critic_steps=2, batch_size=4))
    seen = [np.asarray(inputs.examples(tf.constant(step, tf.int64), r)) for step in range(6) for r in range(2)]
    numbers, epochs = np.reshape(seen, (-1, 2)).T
    assert len(numbers) == 48
    for epoch in range(4):
        np.testing.assert_array_equal(np.sort(numbers[epochs == epoch]), np.arange(12))


class Negatives(ganlab.Dataset):
    """Images to be made from their negatives, asked for by their numbers."""

    sample_shape, source_shape, condition_shape, size = (3, 4, 1), (3, 4, 1), (1,), 12

    def examples(self, numbers, seed):
        return tf.reshape(ganlab.functional.example_uniform(numbers, 12, seed), [-1, 3, 4, 1])

    def sources(self, numbers, seed):
        return -self.examples(numbers, seed)

    def conditions(self, numbers, seed):
        return tf.cast(numbers, tf.float32)[:, None]


def test_pairs_and_conditions_stay_together_in_every_epoch(cpus):
    dataset, plain = varied(dataset=Negatives(), flip=True), images(Negatives(), 12)
    architecture = networks("mlp", width=4, depth=1, source=True, conditions=True)
    inputs = Inputs(small(2, dataset=dataset, architecture=architecture, seed=3))
    rows = [inputs.of(tf.constant(step, tf.int64), r) for step in range(3) for r in range(2)]
    real, source, asked = (np.concatenate([row[name][0] for row in rows]) for name in ("real", "source", "conditions"))
    np.testing.assert_array_equal(source, -real)
    turned = mirrored(real, plain[asked[:, 0].astype(int)])
    assert 8 < turned.sum() < 28  # 36 coins
    first, second = (turned[at][np.argsort(asked[at, 0])] for at in (slice(12), slice(12, 24)))
    assert np.any(first != second)


def test_what_cannot_vary_is_refused():
    with pytest.raises(ganlab.ConfigError, match=r"datasets\.varied\.dataset .* must be images"):
        varied(dataset=made("gaussian_ring"), flip=True)
    with pytest.raises(ganlab.ConfigError, match="has no effect with flip = False and dequantize = False"):
        varied()
