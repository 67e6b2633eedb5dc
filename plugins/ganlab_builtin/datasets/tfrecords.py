"""Encoded images in TFRecord files, read by number."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import fingerprints
from ganlab.bounds import Ge, Local, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import existing, refusal
from ganlab_builtin.datasets.fixed_files import changed, stamp
from ganlab_builtin.datasets.pixels import decoded, from_bytes

IMAGE, LABEL, ABOUT, INDEX = "image/encoded", "image/class/label", "dataset.json", ".index.npy"
_PATTERNS = ("*.tfrecord", "*.tfrecord-*", "*.tfrecords")
_PARALLEL = 16  # images in work at a time; more were not faster
# A record is eight bytes of length, four of their checksum, the data, and four of its checksum.
_HEAD, _FOOT = 12, 4
_MOST_CLASSES = 2**31
_LARGEST_ABOUT = 1 << 24  # bytes of dataset.json
_PIECE = 1 << 16  # entries of an index that are checked at a time


class TFRecords(ganlab.Dataset):
    """The encoded images of `tf.train.Example` records in the TFRecord files of a folder.

    Files are taken in the order of their names, examples in that of the files. Any example is read by its number: where
    records begin is in a file `NAME.index.npy` beside each, as `ganlab dataset make` writes it, or is found by going
    through the file once. Images are PNG or JPEG files of one shape, and become [-1, 1]; they are decoded in parallel.
    The checksums of records are not read, as PNG has its own. A file that is written during training ends it.
    """

    def __init__(
        self,
        *,
        path: Annotated[str, Local()],
        image: str = IMAGE,
        label: str = LABEL,
        classes: Annotated[int, Ge(1), Lt(_MOST_CLASSES)] | None = None,
        first_class: Annotated[int, Ge(0), Lt(_MOST_CLASSES)] = 0,
    ) -> None:
        """Finds the records, and decodes the first.

        Args:
            path: The folder; a relative path is from the working directory.
            image: The feature that holds the encoded image.
            label: The feature that holds the class, one integer.
            classes: How many classes there are; None for as many as `dataset.json` of the folder names, or without that
                file for no labels.
            first_class: The number of the first class, 1 in some files of ImageNet.

        Raises:
            ConfigError: The folder does not exist, has no such file or a torn one, or its first example is no image.
        """
        root = existing("tfrecords", "path", path, "folder")
        files = sorted({file for pattern in _PATTERNS for file in root.glob(pattern) if file.suffix != ".npy"})
        self._path, self._image, self._label, self._first = path, image, label, first_class
        self._files = [os.fspath(file) for file in files]
        self._stamps = [stamp(file) for file in files]
        starts = [self._starts(file) for file in files]
        self._ends = np.cumsum([len(of_file) - 1 for of_file in starts])
        self.size = int(self._ends[-1]) if files else 0
        if not self.size:
            raise refusal("tfrecords", "path", path, f"has no record: none in files {' or '.join(_PATTERNS)}.")
        self._starts_of = starts
        self.class_names = self._recorded_names(root) if classes is None else []
        self.classes = classes or len(self.class_names) or None
        try:
            first = self._decoded(tf.constant(self._read(np.array([0]))[0]))
        except (tf.errors.OpError, ValueError) as error:
            raise refusal(
                "tfrecords",
                "path",
                path,
                f"begins with an example that has no PNG or JPEG image in its feature {image!r}: "
                f"{str(error).splitlines()[0]:.200}. Set datasets.tfrecords.image to the feature's name.",
            ) from None
        self.sample_shape = tuple(first.shape)

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The images with these numbers, `(n, height, width, channels)` float32; the seed is not used.

        Raises:
            tf.errors.InvalidArgumentError: A record cannot be decoded, or its image has another shape.
        """
        count = numbers.shape[0]
        read = tf.data.Dataset.from_tensor_slices(self._records(numbers))
        read = read.map(lambda record: tf.ensure_shape(self._decoded(record), self.sample_shape), _PARALLEL)
        return from_bytes(tf.ensure_shape(read.batch(count).get_single_element(), (count, *self.sample_shape)))

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The classes of the images with these numbers, `(n,)` int64, from 0."""
        count = numbers.shape[0]
        wanted = {self._label: tf.io.FixedLenFeature([], tf.int64)}
        labels = tf.io.parse_example(self._records(numbers), wanted)[self._label] - self._first
        known = tf.reduce_all((labels >= 0) & (labels < self.classes))
        rule = f"datasets.tfrecords: a label is not one of the {self.classes} classes from {self._first} on: "
        with tf.control_dependencies([tf.debugging.Assert(known, [rule, labels + self._first])]):
            return tf.ensure_shape(tf.identity(labels), (count,))

    def fingerprint(self) -> dict[str, Any]:
        """The files' names, and hashes of their sizes and of bytes of them (`ganlab.fingerprints.of_files`)."""
        names = [os.fsencode(Path(file).name) for file in self._files]
        return fingerprints.of_files(os.fsencode(Path(self._files[0]).parent) + b"/", names)

    def _records(self, numbers: tf.Tensor) -> tf.Tensor:
        records = tf.numpy_function(self._read, [numbers], tf.string, stateful=False)
        return tf.ensure_shape(records, (numbers.shape[0],))

    def _read(self, numbers: np.ndarray) -> np.ndarray:
        records = np.empty(len(numbers), object)
        places = np.searchsorted(self._ends, numbers, side="right")
        for i, (number, place) in enumerate(zip(numbers.tolist(), places.tolist(), strict=True)):
            starts = self._starts_of[place]
            at = number - (int(self._ends[place - 1]) if place else 0)
            begin, end = int(starts[at]), int(starts[at + 1])
            with open(self._files[place], "rb", buffering=0) as file:
                records[i] = os.pread(file.fileno(), end - begin - _HEAD - _FOOT, begin + _HEAD)
                if stamp(file.fileno()) != self._stamps[place]:
                    raise changed("tfrecords", self._files[place])
        return records

    def _decoded(self, record: tf.Tensor) -> tf.Tensor:
        parsed = tf.io.parse_single_example(record, {self._image: tf.io.FixedLenFeature([], tf.string)})
        return decoded(parsed[self._image])

    def _starts(self, file: Path) -> np.ndarray:
        """Where each record of a file begins, and where the last one ends."""
        if not file.is_file():
            raise self._torn(file, "is not a regular file")
        size = file.stat().st_size
        beside = file.with_name(file.name + INDEX)
        if beside.is_file():
            try:
                index = np.load(beside, mmap_mode="r", allow_pickle=False)  # of which a header may claim any size
            except (OSError, ValueError) as error:
                raise self._torn(beside, f"cannot be read: {error}") from None
            if index.ndim == 1 and index.dtype == np.int64 and index.size and index[0] == 0 and index[-1] == size:
                pieces = range(0, index.size - 1, _PIECE)
                if all((np.diff(index[at : at + _PIECE + 1]) > _HEAD + _FOOT).all() for at in pieces):
                    return np.array(index)
            raise self._torn(beside, f"is not the index of {file.name}")
        starts = [0]
        with open(file, "rb") as opened:
            while starts[-1] < size:
                head = opened.read(8)
                length = struct.unpack("<Q", head)[0] if len(head) == 8 else size
                end = starts[-1] + _HEAD + _FOOT + length
                if end > size or not length:  # no record is empty, but every hole of a sparse file would be many
                    raise self._torn(
                        file, f"is torn, or no TFRecord file: its record {len(starts) - 1} is empty or ends beyond it"
                    )
                opened.seek(end)
                starts.append(end)
        return np.array(starts, np.int64)

    def _torn(self, file: Path, rule: str) -> ganlab.ConfigError:
        return refusal("tfrecords", "path", self._path, f"has a file, {file.name!r}, that {rule}. Make it anew.")

    def _recorded_names(self, root: Path) -> list[str]:
        about = root / ABOUT
        if not about.is_file():
            return []
        try:
            with about.open("rb") as file:
                names = json.loads(file.read(_LARGEST_ABOUT))["classes"]
            if not (names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))):
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise self._torn(about, "is not what 'ganlab dataset make' writes") from None
        return names or []
