import json
import os
import subprocess
import sys
import urllib.error

import keras
import numpy as np
import pytest
from ganlab_builtin.datasets import KerasImages
from idxfiles import write

import ganlab

RANDOM = np.random.default_rng(0)
TRAIN = RANDOM.integers(0, 256, (6, 28, 28), np.uint8)
TEST = RANDOM.integers(0, 256, (4, 28, 28), np.uint8)


@pytest.fixture
def loads(monkeypatch):
    """Replaces what Keras loads by arrays or an error."""

    def place(name, train, test=None):
        def load_data():
            if isinstance(train, Exception):
                raise train
            return (train, np.zeros(len(train))), (test, np.zeros(len(test)))

        monkeypatch.setattr(getattr(keras.datasets, name), "load_data", load_data)

    return place


# Keras reads the path of its folder when it is imported, so its own cache is tried in a separate process; the missing
# proxy stands for having no network.
OWN_CACHE = """
import json
import ganlab
import tensorflow as tf
from ganlab_builtin.datasets import KerasImages
images = KerasImages(name="fashion_mnist", split="test")
try:
    KerasImages(name="mnist")
except ganlab.MissingDependencyError as error:
    message = str(error)
rows = images.examples(tf.constant([2, 0], tf.int64), 0)
print(json.dumps([images.size, rows.numpy().tolist(), message]))
"""


@pytest.mark.slow
def test_the_cache_of_keras_is_read_and_a_missing_file_is_named(tmp_path):
    folder = tmp_path / "datasets" / "fashion-mnist"
    folder.mkdir(parents=True)
    for name, images in (("train", TRAIN), ("t10k", TEST)):
        write(folder / f"{name}-images-idx3-ubyte.gz", images, packed=True)
        write(folder / f"{name}-labels-idx1-ubyte.gz", np.zeros(len(images)), packed=True)
    given = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9") | {"no_proxy": ""}
    given |= {"KERAS_HOME": str(tmp_path)}
    command = [sys.executable, "-c", OWN_CACHE]
    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    size, rows, message = json.loads(done.stdout.splitlines()[-1])
    assert size == 4
    np.testing.assert_allclose(rows, TEST[[2, 0]][..., None] / 127.5 - 1, atol=1e-6)
    assert message.startswith("datasets.keras.name = 'mnist' could not be loaded: URL fetch failure on ")
    assert f"mnist.npz as {tmp_path / 'datasets' / 'mnist.npz'}." in message


def test_splits_and_shapes(loads, through_pipeline):
    colour = RANDOM.integers(0, 256, (5, 32, 32, 3), np.uint8)
    loads("cifar10", colour, colour[:2])
    cifar = KerasImages(name="cifar10")
    assert (cifar.size, cifar.sample_shape) == (5, (32, 32, 3))
    np.testing.assert_allclose(through_pipeline(cifar, [4, 1], batch=2), colour[[4, 1]] / 127.5 - 1, atol=1e-6)
    assert KerasImages(name="cifar10", split="test").size == 2


def test_resize_brings_images_to_one_side(loads, through_pipeline):
    loads("mnist", TRAIN, TEST)
    mnist = KerasImages(name="mnist", resize=14)
    assert mnist.sample_shape == (14, 14, 1)
    # Half the side, antialiased: along each axis an inner pixel is 1/8, 3/8, 3/8, 1/8 of the four about it.
    kernel = np.array([1, 3, 3, 1]) / 8
    expected = kernel @ (TRAIN[3, 5:9, 7:11] / 127.5 - 1) @ kernel
    assert through_pipeline(mnist, [3], batch=1)[0, 3, 4, 0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("fashion_mnist", "t10k-images-idx3-ubyte.gz as ~/.keras/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz"),
        ("cifar10", "cifar-10-python.tar.gz as ~/.keras/datasets/cifar-10-batches-py-target_archive"),
        ("cifar100", "cifar-100-python.tar.gz as ~/.keras/datasets/cifar-100-python-target_archive"),
    ],
)
def test_files_that_cannot_be_downloaded_can_be_copied(name, file, loads, monkeypatch):
    monkeypatch.delenv("KERAS_HOME", raising=False)
    loads(name, urllib.error.URLError("no route to host"))
    with pytest.raises(ganlab.MissingDependencyError) as error:
        KerasImages(name=name)
    assert f"datasets.keras.name = {name!r} could not be loaded: <urlopen error no route to host>." in str(error.value)
    assert file in str(error.value)


def test_the_fingerprint_sees_one_pixel_and_one_label(loads, monkeypatch):
    loads("mnist", TRAIN, TEST)
    before = KerasImages(name="mnist").fingerprint()
    other = TRAIN.copy()
    other[3, 5, 5] ^= 1
    loads("mnist", other, TEST)
    after = KerasImages(name="mnist").fingerprint()
    assert (before["rows"] != after["rows"], before["labels"] == after["labels"]) == (True, True)
    labels = np.arange(len(TRAIN))
    monkeypatch.setattr(keras.datasets.mnist, "load_data", lambda: ((TRAIN, labels), (TEST, labels[:4])))
    assert KerasImages(name="mnist").fingerprint()["labels"] != before["labels"]
