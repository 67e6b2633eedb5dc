"""Images from TensorFlow Datasets, read by number."""

from __future__ import annotations

import re
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import functional
from ganlab.bounds import Ge, Gt, Local, Lt
from ganlab.errors import nearest
from ganlab.lazy import require
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import refusal
from ganlab_builtin.datasets.pixels import from_bytes, gather, random_square, resized, square

# "huggingface:mnist", "kubric:movi_a"; in "mnist:3.0.1" it is the version that follows.
_NAMESPACE = re.compile(r"[^/:]+:(?![\d*])")
_CROP = 103  # stream of random numbers


class TfdsImages(ganlab.Dataset):
    """The images of a set in TensorFlow Datasets, through `tfds.data_source`, which reads any example by its number.

    Needs `pip install -e '.[tfds]'`, and the set prepared in a format with random access (array_record), as
    `tfds.data_source` prepares it. Images are bytes and become [-1, 1].
    """

    def __init__(
        self,
        *,
        name: str,
        split: str = "train",
        data_dir: Annotated[str, Local()] | None = None,
        key: str = "image",
        labels: str | None = None,
        crop: Annotated[int, Ge(1), Lt(2**31)] | None = None,
        random_crop: Annotated[float, Gt(0), Lt(1)] | None = None,
        resize: Annotated[int, Ge(1), Lt(2**31)] | None = None,
        download: bool = False,
    ) -> None:
        """Opens the set and looks at its first example.

        Args:
            name: The set's name, with configuration and version if need be: `celeb_a`, `lsun/bedroom:3.1.0`.
            split: A split in TensorFlow Datasets' notation, for example `train` or `train[:90%]`.
            data_dir: The folder of prepared sets, which is only read; None for TensorFlow Datasets' default, which the
                environment variable `TFDS_DATA_DIR` sets.
            key: The feature that holds the image.
            labels: The feature that holds the class, `label` in most sets; None for no labels.
            crop: The side in pixels of the square that is cut out of the middle of each image, with black around it
                where an image is smaller; None for the largest that the image has.
            random_crop: The smallest share of an image's area, for squares cut out at random and anew in every epoch:
                their side is uniform from there up to the largest. It needs `resize`. An image without such a square is
                resized whole. None for the middle.
            resize: The side in pixels that the square of each image is resized to, by antialiased bilinear
                interpolation; None leaves images as they are, which must then be of one shape unless `crop` is set.
            download: Whether to download and prepare a missing set in the default folder, which can be many gigabytes.

        Raises:
            MissingDependencyError: TensorFlow Datasets is not installed, or the set is not prepared.
            ConfigError: The set, split or feature is unknown, the set is code from elsewhere, or a feature is not an
                image or a class.
        """
        if _NAMESPACE.match(name):
            rule = "names a set of a namespace, whose code would be downloaded and executed; use one of TensorFlow"
            raise refusal("tfds", "name", name, f"{rule} Datasets' own.")
        if download and data_dir is not None:
            rule = (
                "is only read, and with download a set would be written: set TFDS_DATA_DIR in the environment instead."
            )
            raise refusal("tfds", "data_dir", data_dir, rule)
        self._source = _open(name, split, data_dir, download)
        if len(self._source) == 0:
            raise refusal("tfds", "split", split, f"of {name!r} is empty; there must be an example.")
        first = self._source[0]
        for parameter, feature in (("key", key), ("labels", labels)):
            if feature is not None and feature not in first:
                rule = f"must be a feature of {name!r}: {', '.join(first)}.{nearest(feature, first)}"
                raise refusal("tfds", parameter, feature, rule)
        if random_crop is not None and (crop is not None or resize is None):
            rule = "needs datasets.tfds.resize and excludes datasets.tfds.crop. Set the one and leave out the other."
            raise refusal("tfds", "random_crop", random_crop, rule)
        shape, dtype = np.shape(first[key]), np.asarray(first[key]).dtype
        if len(shape) != 3 or dtype != np.uint8:
            raise refusal(
                "tfds", "key", key, f"must be an image, (height, width, channels) of uint8; it is {shape} of {dtype}."
            )
        self._name, self._key, self._crop, self._random_crop, self._resize = name, key, crop, random_crop, resize
        side = resize or crop
        self.sample_shape = shape if side is None else (side, side, shape[2])
        self.size = len(self._source)
        self._labels, self.classes = labels, None
        if labels is not None:
            self.classes = getattr(self._source.dataset_info.features[labels], "num_classes", None)
            if not self.classes:
                raise refusal("tfds", "labels", labels, f"must be a class, and in {name!r} it is not.")
            # The same examples, without the work of decoding their images.
            decoders = {key: require("tensorflow_datasets").decode.SkipDecoding()}
            self._undecoded = _open(name, split, data_dir, download, decoders=decoders)

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The classes of the images with these numbers in the set's numbering, `(n,)` int64."""
        return gather(self._classes, numbers, (numbers.shape[0],), np.int64)

    def _classes(self, numbers: np.ndarray) -> np.ndarray:
        labels = np.array([int(e[self._labels]) for e in self._undecoded.__getitems__(numbers.tolist())], np.int64)
        if (labels < 0).any():
            raise refusal(
                "tfds",
                "labels",
                self._labels,
                f"is missing in example {numbers[labels.argmin()]} of {self._name!r}, as "
                "in the test split of some sets. Use another split.",
            )
        return labels

    def examples(self, numbers: tf.Tensor, seed: int, epochs: tf.Tensor | None = None) -> tf.Tensor:
        """The images with these numbers in these epochs, the first by default: `(n, *sample_shape)` float32."""
        if self._resize is None and self._crop is None:
            return from_bytes(gather(self._batch, numbers, (numbers.shape[0], *self.sample_shape), np.uint8))
        drawn = numbers if epochs is None else numbers + epochs * self.size
        uniform = functional.example_uniform(drawn, 3, seed, _CROP)
        return tf.map_fn(
            lambda each: self._square(*each),
            (numbers, uniform),
            fn_output_signature=tf.TensorSpec(self.sample_shape, tf.float32),
        )

    def _batch(self, numbers: np.ndarray) -> np.ndarray:
        images = [self._image(number) for number in self._source.__getitems__(numbers.tolist())]
        for image in images:
            if image.shape != self.sample_shape:
                raise ganlab.ConfigError(
                    f"datasets.tfds.name = {self._name!r} has images of shapes {self.sample_shape} and {image.shape}; "
                    "they must have one shape. Set datasets.tfds.resize to a size in pixels."
                )
        return np.stack(images)

    def _square(self, number: tf.Tensor, uniform: tf.Tensor) -> tf.Tensor:
        shape = (None, None, self.sample_shape[2])
        image = gather(lambda n: self._image(self._source[int(n)]), number, shape, np.uint8)
        if self._crop is not None:
            image = tf.image.resize_with_crop_or_pad(image, self._crop, self._crop)
        elif self._random_crop is not None:
            image = random_square(image, self._random_crop, uniform)
        image, shrink = from_bytes(image), square if self._random_crop is None else resized
        return image if self._resize is None else shrink(image, self._resize)

    def _image(self, example: dict[str, Any]) -> np.ndarray:
        return np.asarray(example[self._key])


def _open(name: str, split: str, data_dir: str | None, download: bool, **more: Any) -> Any:
    tfds = require("tensorflow_datasets")
    try:
        return tfds.data_source(name, split=split, data_dir=data_dir, download=download, **more)
    # Not prepared at all, or prepared in a format without random access: there are several errors for both.
    except (AssertionError, NotImplementedError) as error:
        at = f", data_dir={data_dir!r}" if data_dir else ""
        raise ganlab.MissingDependencyError(
            f"datasets.tfds.name = {name!r} is not prepared for random access in {data_dir or 'the default data_dir'} "
            f"({_first_line(error)}). Prepare it once with tensorflow_datasets.data_source({name!r}{at}), or set "
            "datasets.tfds.download = True without data_dir; a set that lies there in another format must be prepared "
            "in another data_dir."
        ) from error
    # Unknown sets and splits, failed downloads, what a builder raises: all are about this name and split.
    except Exception as error:
        raise refusal(
            "tfds",
            "name",
            name,
            f"with split {split!r} cannot be opened: {type(error).__name__}: {_first_line(error)}.",
        ) from error


def _first_line(error: Exception) -> str:
    # TensorFlow Datasets lists every set that it knows below the first line.
    return (str(error).strip() or "no reason given").split("\n")[0].rstrip(".:")
