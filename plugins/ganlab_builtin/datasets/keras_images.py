"""The small image sets that Keras downloads and caches."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import numpy as np

import ganlab
from ganlab import fingerprints
from ganlab.bounds import Ge, Lt
from ganlab.lazy import keras
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import refusal
from ganlab_builtin.datasets.pixels import from_bytes, gather, square

_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets"
# The files that Keras looks for in its folder `datasets`, by set: (file, source).
_FILES = {
    "mnist": [("mnist.npz", f"{_ORIGIN}/mnist.npz")],
    "fashion_mnist": [
        (f"fashion-mnist/{name}-ubyte.gz", f"{_ORIGIN}/{name}-ubyte.gz")
        for name in ("train-labels-idx1", "train-images-idx3", "t10k-labels-idx1", "t10k-images-idx3")
    ],
    "cifar10": [("cifar-10-batches-py-target_archive", "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz")],
    "cifar100": [("cifar-100-python-target_archive", "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz")],
}


class KerasImages(ganlab.Dataset):
    """One of the image sets that come through `keras.datasets`, downloaded once into Keras' folder.

    `mnist` and `fashion_mnist` are 28 x 28 grey, `cifar10` and `cifar100` 32 x 32 colour images, in [-1, 1].
    """

    def __init__(
        self,
        *,
        name: Literal["mnist", "fashion_mnist", "cifar10", "cifar100"],
        split: Literal["train", "test"] = "train",
        resize: Annotated[int, Ge(1), Lt(2**31)] | None = None,
    ) -> None:
        """Loads the set, and downloads it if Keras does not have it yet.

        Args:
            name: The set.
            split: Its training or its test images.
            resize: The side in pixels that images are resized to, by antialiased bilinear interpolation, for example 32
                for MNIST with an architecture that halves five times; None leaves them as they are.

        Raises:
            ConfigError: The set or the split is unknown.
            MissingDependencyError: The files are missing and cannot be downloaded; the message lists the files and
                where to put them.
        """
        if name not in _FILES:
            raise refusal("keras", "name", name, f"must be one of {', '.join(map(repr, _FILES))}.")
        if split not in ("train", "test"):
            raise refusal("keras", "split", split, "must be 'train' or 'test'.")
        images, labels = _load(name)[0 if split == "train" else 1]
        self._images = images[..., None] if images.ndim == 3 else images
        self._resize = resize
        height, width, channels = self._images.shape[1:]
        self.sample_shape = (resize or height, resize or width, channels)
        self.size = len(self._images)
        self._labels = np.asarray(labels, np.int64).reshape(-1)  # CIFAR's come as a column
        self.classes = 100 if name == "cifar100" else 10

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The images with these numbers, `(n, *sample_shape)` float32; the seed is not used."""
        shape = (numbers.shape[0], *self._images.shape[1:])
        images = from_bytes(gather(self._images.__getitem__, numbers, shape, np.uint8))
        return images if self._resize is None else square(images, self._resize)

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The classes of the images in Keras' numbering, `(n,)` int64; the fine ones of `cifar100`."""
        return tf.gather(self._labels, numbers)

    def fingerprint(self) -> dict[str, Any]:
        """Hashes of the images, as Keras keeps them, and of the labels."""
        images, labels = fingerprints.of_array(self._images), fingerprints.of_array(self._labels)
        return {"shape": list(self._images.shape), "rows": images, "labels": labels}


def _load(name: str) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Images and labels of the two splits."""
    try:
        train, test = getattr(keras.datasets, name).load_data()
    # Keras raises a bare Exception for a failed download, and various errors for a broken file.
    except Exception as error:
        if isinstance(error, ganlab.GanlabError):  # no Keras at all
            raise
        folder = os.path.join(os.environ.get("KERAS_HOME", "~/.keras"), "datasets")
        files = "; ".join(f"{origin} as {os.path.join(folder, file)}" for file, origin in _FILES[name])
        raise ganlab.MissingDependencyError(
            f"datasets.keras.name = {name!r} could not be loaded: {error}. Without a network, copy the files there by "
            f"hand: {files}."
        ) from error
    return train, test
