"""Random crops of the two photographs of scikit-learn, as files: colour without a download."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import fingerprints, functional
from ganlab.bounds import Ge, Le, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.digits import FILES
from ganlab_builtin.datasets.pixels import from_bytes

_PHOTOGRAPHS = ("china.jpg", "flower.jpg")
_HEIGHT, _WIDTH = 427, 640


class PhotoPatches(ganlab.Dataset):
    """Square crops at random places of two photographs, a temple and a flower, which are the classes.

    The photographs are `sklearn.datasets.load_sample_images`, 427 x 640 pixels (CC BY 2.0, by danielbuechele and by
    vultilion). An example's number decides its photograph and place.
    """

    classes = len(_PHOTOGRAPHS)

    def __init__(
        self, *, side: Annotated[int, Ge(1), Le(128)] = 32, size: Annotated[int, Ge(1), Lt(2**31)] = 60_000
    ) -> None:
        """Sets the size of the crops.

        Args:
            side: Their height and width in pixels.
            size: How many examples there are.
        """
        self.sample_shape = (side, side, 3)
        self.size, self._side = size, side

    @functools.cached_property
    def _pixels(self) -> np.ndarray:
        from PIL import Image  # a dependency of Matplotlib

        return np.stack([np.asarray(Image.open(FILES / name)) for name in _PHOTOGRAPHS])

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The crops with these numbers, `(n, side, side, 3)` float32; the seed is not used."""
        uniform = functional.example_uniform(numbers, 2, 0, stream=1)
        places = [
            tf.cast(uniform[:, i] * (length - self._side + 1), tf.int64) for i, length in enumerate((_HEIGHT, _WIDTH))
        ]
        steps = tf.range(self._side, dtype=tf.int64)
        rows = (places[0][:, None] + steps)[:, :, None]
        columns = (places[1][:, None] + steps)[:, None, :]
        index = (self.labels(numbers)[:, None, None] * _HEIGHT + rows) * _WIDTH + columns
        return from_bytes(tf.gather(self._pixels.reshape(-1, 3), index))

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The photographs that the crops are of, `(n,)` int64: 0 for the temple, 1 for the flower."""
        uniform = functional.example_uniform(numbers, 1, 0, stream=0)[:, 0]
        return tf.cast(uniform * self.classes, tf.int64)

    def fingerprint(self) -> dict[str, Any]:
        """The size of the crops, and hashes of the photographs, which depend on the JPEG decoder."""
        return {"side": self._side, "size": self.size, "photographs": fingerprints.of_array(self._pixels)}
