"""Inception-v3, from weights in a local file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import keras
from ganlab.lazy import tensorflow as tf

_ENDINGS = (".weights.h5", ".keras", ".h5")
_SMALLEST = 75  # what the network's strides leave a pixel of
_BATCH = 50
_SAVE = "keras.applications.InceptionV3(weights='imagenet').save_weights('inception.weights.h5')"


class Inception(ganlab.Features):
    """Nearly the features that published Fréchet and kernel distances are measured in.

    Szegedy et al., "Rethinking the inception architecture for computer vision" (2016), as Keras has it: the 2,048 means
    over the last feature maps, and the class probabilities. Images are resized by antialiased bilinear interpolation,
    and grey ones repeated in three channels. Weights are never downloaded.

    Published figures come from other weights of this network (the graph of 2015-12-05) and another resizing; those in
    Keras' weights are of the same kind, but not the same numbers. Compare like with like.
    """

    def __init__(
        self,
        *,
        path: str,
        size: Annotated[int, Ge(_SMALLEST)] = 299,
        classes: Annotated[int, Ge(1)] = 1000,
        top: bool = True,
    ) -> None:
        """Checks that the file exists; it is read when first needed.

        Args:
            path: A file of Keras' InceptionV3 weights: `.weights.h5`, `.keras`, or `.h5` as Keras offers them for
                download. Only weights are read: no layer of a file is executed.
            size: The side in pixels that images are resized to, 75 or more; the network was trained at 299.
            classes: The number of classes of the file's last layer.
            top: Whether the file has that layer; without it there are no class probabilities.

        Raises:
            ConfigError: The file does not exist, or a value is out of its range.
        """
        file = Path(path).expanduser()
        if not path.endswith(_ENDINGS):
            raise _refusal("path", path, f"must be a file of weights, one of {', '.join(_ENDINGS)}.")
        if not file.is_file():
            raise _refusal(
                "path",
                path,
                f"is not there: no file {str(file.absolute())!r}; a relative path is taken from the "
                f"working directory. On a machine with a network, Keras writes one: {_SAVE}. Copy it here.",
            )
        self._path, self._size, self._classes, self._top = file, size, classes, top
        self._run: Any = None
        self._untrained = False

    def prepare(self, dataset: ganlab.Dataset) -> None:
        """Loads the network at the first call.

        Raises:
            IncompatibleError: The dataset is not of grey or colour images.
            ConfigError: The file cannot be read, or holds another network.
        """
        shape = tuple(dataset.sample_shape)
        if len(shape) != 3 or shape[2] not in (1, 3):
            raise ganlab.IncompatibleError(
                f"features.inception looks at images of 1 or 3 channels, and the examples of {type(dataset).__name__} "
                f"are of shape {shape}. Use @features.pixels()."
            )
        if self._run is not None:
            return
        model = keras.applications.InceptionV3(
            weights=None,
            include_top=self._top,
            pooling=None if self._top else "avg",
            input_shape=(self._size, self._size, 3),
            classes=self._classes,
        )
        try:
            model.load_weights(str(self._path))
        # Any error of a file of another kind or another network.
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            raise _refusal(
                "path",
                str(self._path),
                f"does not fit InceptionV3 with classes = {self._classes} and top = {self._top}: {reason}",
            ) from error
        means = [layer.moving_mean for layer in model.layers if hasattr(layer, "moving_mean")]
        self._untrained = all(not np.any(np.asarray(mean)) for mean in means)
        outputs = [model.get_layer("avg_pool").output, model.output] if self._top else [model.output]
        network = keras.Model(model.input, outputs)

        def run(x: tf.Tensor) -> Any:
            resized = tf.image.resize(x, (self._size, self._size), method="bilinear", antialias=True)
            return network(tf.repeat(resized, 3 // x.shape[-1], axis=-1), training=False)

        self._run = tf.function(run, autograph=False, reduce_retracing=True)

    def embed(self, x: np.ndarray) -> np.ndarray:
        """The means over the last feature maps, `(n, 2048)` float32."""
        return self._outputs(x)[0]

    def probabilities(self, x: np.ndarray) -> np.ndarray | None:
        """The class probabilities, `(n, classes)` float32; None without `top`."""
        return self._outputs(x)[1] if self._top else None

    def diagnose(self) -> str | None:
        """Complains of weights that were never trained: batch normalization has the statistics of a new network."""
        if not self._untrained:
            return None
        return (
            f"features.inception has untrained weights: batch normalization in {self._path} has seen no example. "
            "Distances between its features mean nothing, and are not comparable with any others. Use a file of "
            f"trained weights: {_SAVE}"
        )

    def _outputs(self, x: np.ndarray) -> list[np.ndarray]:
        if self._run is None:
            raise ganlab.ContractError("features.inception has no network yet: call prepare(dataset) first.")
        x = np.asarray(x, np.float32)
        parts = [self._run(tf.constant(x[start : start + _BATCH])) for start in range(0, len(x), _BATCH)]
        return [np.concatenate([np.asarray(part) for part in output]) for output in zip(*parts, strict=True)]


def _refusal(parameter: str, value: Any, rule: str) -> ganlab.ConfigError:
    return ganlab.ConfigError(f"features.inception.{parameter} = {value!r} {rule}")
