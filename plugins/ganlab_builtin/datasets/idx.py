"""Images in IDX files, the format of MNIST, EMNIST and Fashion-MNIST."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from typing import Annotated, Any, BinaryIO

import numpy as np

import ganlab
from ganlab import fingerprints
from ganlab.bounds import Ge, Le, Local, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import existing, refusal
from ganlab_builtin.datasets.pixels import from_bytes, gather, square

_BYTES_OF_RANK = b"\0\0\x08"  # begins a file of bytes; the number of its axes follows
_MOST = 1 << 30  # bytes of a file's values; the largest part of EMNIST has 640 million
_PIECE = 1 << 20
_PACKING = 1032  # no byte of deflate unpacks to more


class Idx(ganlab.Dataset):
    """The grey images of an IDX file, with the labels of another: MNIST's own files, and those of sets made like it.

    A file may be packed with gzip, whatever its name. It is read whole, at most 1 GiB of values, which must be as many
    as its header says. Bytes 0 to 255 become [-1, 1].
    """

    def __init__(
        self,
        *,
        images: Annotated[str, Local()],
        labels: Annotated[str, Local()] | None = None,
        classes: Annotated[int, Ge(1), Le(256)] | None = None,
        first_class: Annotated[int, Ge(0), Lt(256)] = 0,
        transpose: bool = False,
        resize: Annotated[int, Ge(1), Lt(2**31)] | None = None,
    ) -> None:
        """Reads the files.

        Args:
            images: The file of images, for example `train-images-idx3-ubyte.gz`; a relative path is from the working
                directory.
            labels: The file of their labels, for example `train-labels-idx1-ubyte.gz`; None for no labels.
            classes: How many classes there are; None for as many as the largest label needs.
            first_class: The number of the first class, 1 for EMNIST's letters.
            transpose: Whether rows are columns, as in EMNIST's files.
            resize: The side in pixels that the square in the middle of each image is resized to, by antialiased
                bilinear interpolation; None leaves images as they are.

        Raises:
            ConfigError: A file is not there, is no such file, or is truncated, or the labels are not one for each
                image.
        """
        read = _read("images", images, 3)
        self._images = np.ascontiguousarray(read.swapaxes(1, 2)) if transpose else read
        height, width = self._images.shape[1:]
        self.sample_shape = (resize or height, resize or width, 1)
        self.size, self._resize = len(self._images), resize
        if labels is None:
            return
        found = _read("labels", labels, 1).astype(np.int64)
        if len(found) != self.size:
            rule = f"has {len(found)} labels, and {images!r} has {self.size} images: each must have one."
            raise refusal("idx", "labels", labels, rule)
        self._labels = found - first_class
        self.classes = int(self._labels.max()) + 1 if classes is None else classes
        wrong = (self._labels < 0) | (self._labels >= self.classes)
        if wrong.any():
            at = int(wrong.argmax())
            rule = (
                f"has label {found[at]} at number {at}, and classes are {first_class} to "
                f"{first_class + max(self.classes, 1) - 1}. Set datasets.idx.first_class and datasets.idx.classes."
            )
            raise refusal("idx", "labels", labels, rule)

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The images with these numbers, `(n, *sample_shape)` float32; the seed is not used."""
        shape = (numbers.shape[0], *self._images.shape[1:])
        images = from_bytes(gather(self._images.__getitem__, numbers, shape, np.uint8))[..., None]
        return images if self._resize is None else square(images, self._resize)

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The classes of the images with these numbers, `(n,)` int64 from 0."""
        return tf.gather(self._labels, numbers)

    def fingerprint(self) -> dict[str, Any]:
        """Hashes of the images and of the labels."""
        facts: dict[str, Any] = {"shape": list(self._images.shape), "rows": fingerprints.of_array(self._images)}
        return facts if self.classes is None else {**facts, "labels": fingerprints.of_array(self._labels)}


class _UnusableError(Exception):
    """The file is not one of this format."""


def _read(parameter: str, path: str, rank: int) -> np.ndarray:
    """The bytes of a file, as an array of so many axes."""
    file = existing("idx", parameter, path)
    try:
        with ganlab.open_regular(file) as opened:
            return _values(opened, rank)
    except _UnusableError as error:
        raise refusal("idx", parameter, path, f"{error}.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise refusal("idx", parameter, path, f"cannot be read: {error}. Download or copy it anew.") from None


def _values(opened: BinaryIO, rank: int) -> np.ndarray:
    size, packed = os.fstat(opened.fileno()).st_size, opened.read(2) == b"\x1f\x8b"
    opened.seek(0)
    file: Any = gzip.GzipFile(fileobj=opened) if packed else opened
    magic, begins = _BYTES_OF_RANK + bytes([rank]), 4 + 4 * rank
    header = file.read(begins)
    if header[:4] != magic or len(header) < begins:
        kind = "images" if rank == 3 else "labels"
        raise _UnusableError(
            f"begins with the bytes {header[:4].hex(' ') or '(none)'}; an IDX file of {kind} begins with "
            f"{magic.hex(' ')} and {'sizes' if rank > 1 else 'a size'} of 4 bytes"
        )
    sides = struct.unpack(f">{rank}I", header[4:])
    total, shape = math.prod(sides), " x ".join(map(str, sides))
    if not 0 < total <= _MOST:
        raise _UnusableError(f"says that it has {shape} values; there must be at least one and at most {_MOST:,}")
    # Before memory is taken for what a header claims.
    possible = size * _PACKING if packed else size - begins
    if total > possible:
        raise _UnusableError(f"is truncated: it says that it has {shape} values, and {size:,} bytes cannot hold them")
    values, at = np.empty(total, np.uint8), 0
    while at < total:
        if not (came := file.readinto(values.data[at : at + _PIECE])):
            raise _UnusableError(f"is truncated: it says that it has {shape} values, and ends after {at:,}")
        at += came
    if file.read(1):
        raise _UnusableError(f"says that it has {shape} values, and has more")
    return values.reshape(sides)
