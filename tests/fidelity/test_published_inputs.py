"""The pixels that published experiments train on are those that their programs make of the same bytes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from ganlab import composition, config, functional

pytestmark = pytest.mark.usefixtures("cpus")

FILES = {path.stem: path for path in config.shipped_gin_files() if path.parent.name == "published"}
# pfnet-research/sngan_projection, datasets/cifar10.py: b / 128 - 1 and a uniform number from 0 to 1 / 128;
# igul222/improved_wgan_training, gan_cifar_resnet.py: 2 (b / 256 - 1 / 2) and the same.
DEQUANTIZED = ("projection_cifar10", "sngan_cifar10", "wgan_gp_cifar10_resnet")
# torch-mimicry, R3GAN, data-efficient-gans and improved_wgan_training's gan_cifar.py: 2 (b / 255 - 1 / 2).
SCALED = ("mimicry_sngan_32", "mimicry_wgan_gp_32", "r3gan_cifar10", "diff_augment_cifar10", "wgan_gp_cifar10_dcgan")
BYTES = np.arange(256)
PIXELS = 32 * 32 * 3
# Five standard errors of the mean of PIXELS numbers that are uniform in [0, 1 / 128).
ERROR = 5 / 128 / np.sqrt(12 * PIXELS)


@pytest.fixture
def pixels(monkeypatch):
    """The pixels that a file makes of images of one byte each, in its second epoch: `(256, 32 * 32 * 3)`."""
    images = np.broadcast_to(BYTES[:, None, None, None], (256, 32, 32, 3)).astype(np.uint8)
    labels = np.zeros((256, 1), np.int64)
    monkeypatch.setattr(keras.datasets.cifar10, "load_data", lambda: ((images, labels), (images, labels)))

    def pixels(name, *params):
        dataset = composition.make(config.load([FILES[name]], list(params)).arguments["dataset"])
        numbers = tf.range(256, dtype=tf.int64)
        found = functional.call(dataset.examples, numbers, 0, epochs=tf.ones_like(numbers))
        return found.numpy().astype(np.float64).reshape(256, PIXELS)

    return pixels


def dequantized(found):
    """Whether pixels are spread evenly over the 128th that belongs to each byte."""
    low = BYTES / 128 - 1
    inside = (found >= low[:, None] - 1e-6) & (found <= low[:, None] + 1 / 128 + 1e-6)
    centred = np.abs(found.mean(axis=1) - low - 0.5 / 128) <= ERROR
    return bool(inside.all() and centred.all() and np.allclose(found.std(axis=1), 1 / 128 / np.sqrt(12), rtol=0.1))


@pytest.mark.parametrize("name", DEQUANTIZED)
def test_bytes_are_dequantized(pixels, name):
    assert dequantized(pixels(name))


@pytest.mark.parametrize("name", DEQUANTIZED)
def test_a_missing_dequantization_is_caught(pixels, name):
    params = ["datasets.varied.dequantize=False", "datasets.varied.flip=True"]  # one of them has to be set
    assert not dequantized(pixels(name, *params))


@pytest.mark.parametrize("name", SCALED)
def test_bytes_are_scaled_alone(pixels, name):
    found = pixels(name)
    np.testing.assert_allclose(found, np.repeat(2 * (BYTES / 255 - 0.5)[:, None], PIXELS, axis=1), atol=1e-6)
    assert not dequantized(found)
