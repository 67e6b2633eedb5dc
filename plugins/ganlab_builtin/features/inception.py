"""Inception-v3, from weights in a local file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

import ganlab
from ganlab.bounds import Ge, Local
from ganlab.lazy import keras
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.features import inception_2015, weights
from ganlab_builtin.features import resizing as preparing

_ENDINGS = (".weights.h5", ".keras", ".h5")
_SMALLEST = 75  # what the network's strides leave a pixel of
_BATCH = 50
_KEPT = 1024  # examples whose outputs are kept for the next question
_SAVE = "keras.applications.InceptionV3(weights='imagenet').save_weights('inception.weights.h5')"


class Inception(ganlab.Features):
    """The features that published Fréchet and kernel distances are measured in, or nearly.

    Szegedy et al., "Rethinking the inception architecture for computer vision" (2016): the 2,048 means over the last
    feature maps, and class probabilities. Which weights, the file's ending decides:

    - `.pth`, `.pt`, `.pb`, `.npz`, `.safetensors`: those of the graph of 2015-12-05, which published scores use. Its
      probabilities are of 1,008 classes without the last layer's bias, as in the published inception score.
    - `.weights.h5`, `.keras`, `.h5`: those of Keras' InceptionV3. They are of the same kind, but not the same numbers.

    Grey images are repeated in three channels. Weights are never downloaded, and nothing in a file is executed.
    """

    def __init__(
        self,
        *,
        path: Annotated[str, Local()],
        resizing: Literal["auto", "tensorflow", "pytorch", "antialiased", "clean"] = "auto",
        size: Annotated[int, Ge(_SMALLEST)] = 299,
        classes: Annotated[int, Ge(1)] = 1000,
        top: bool = True,
    ) -> None:
        """Checks that the file exists; it is read when first needed.

        Args:
            path: The file of weights: a state dict of PyTorch (`pt_inception-2015-12-05`), TensorFlow's frozen graph,
                arrays by the names of that state dict, or Keras' weights as `save_weights` writes them.
            resizing: How images become 299 x 299 pixels. `tensorflow`, as published: bilinear, without antialiasing,
                and with the corners of TensorFlow 1. `pytorch`: bilinear between pixel centers and another range, as
                the package pytorch-fid. `antialiased`: bilinear with antialiasing. `clean`: bicubic with antialiasing,
                clipped to the range of bytes, as the package clean-fid. `auto` is `tensorflow`, and `antialiased` for
                Keras' weights, which take no other.
            size: The side in pixels that images are resized to for Keras' weights, 75 or more.
            classes: The number of classes of the last layer of Keras' weights.
            top: Whether Keras' weights have that layer; without it there are no class probabilities.
        """
        if resizing not in ("auto", *preparing.RESIZINGS):
            known = ", ".join(map(repr, ("auto", *preparing.RESIZINGS)))
            raise _refusal("resizing", resizing, f"must be one of {known}.")
        file = Path(path).expanduser()
        if not path.endswith((*_ENDINGS, *weights.ENDINGS)):
            endings = ", ".join((*_ENDINGS, *weights.ENDINGS))
            raise _refusal("path", path, f"must be a file of weights, one of {endings}.")
        if not file.is_file():
            raise _refusal(
                "path",
                path,
                f"is not there: no file {str(file.absolute())!r}; a relative path is taken from the "
                "working directory. The published weights are pt_inception-2015-12-05-6726825d.pth of pytorch-fid's "
                f"releases; on a machine with a network, Keras writes its own: {_SAVE}. Copy one here.",
            )
        self._of_2015 = not path.endswith(_ENDINGS)
        if not self._of_2015 and resizing not in ("auto", "antialiased"):
            raise _refusal("resizing", resizing, "is for the weights of 2015; with Keras' it must be 'antialiased'.")
        chosen = "tensorflow" if self._of_2015 else "antialiased"
        self._resizing = chosen if resizing == "auto" else resizing
        self._path, self._size, self._classes, self._top = file, size, classes, top
        self._run: Any = None
        self._last: tuple[np.ndarray, list[np.ndarray]] | None = None
        self._digest = ""
        self._untrained = False

    def prepare(self, dataset: ganlab.Dataset) -> None:
        """Loads the network at the first call."""
        preparing.check_images("inception", dataset)
        if self._run is None:
            run = self._load_2015() if self._of_2015 else self._load_keras()
            self._run = tf.function(run, autograph=False, reduce_retracing=True)

    def _load_2015(self) -> Any:
        try:
            arrays = weights.read(self._path)
        except (weights.UnreadableError, OSError) as error:
            raise _refusal("path", str(self._path), f"does not hold the network of 2015-12-05: {error}.") from error
        means = [array for name, array in arrays.items() if name.endswith("running_mean")]
        self._untrained = not any(np.any(mean) for mean in means)
        self._digest = weights.digest(arrays)
        network = inception_2015.network(arrays)

        def run(x: tf.Tensor) -> Any:
            features, logits = network(preparing.prepared(x, self._resizing))
            return features, tf.nn.softmax(logits)

        return run

    def _load_keras(self) -> Any:
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

        return run

    def embed(self, x: np.ndarray) -> np.ndarray:
        """The means over the last feature maps, `(n, 2048)` float32."""
        return self._outputs(x)[0]

    def probabilities(self, x: np.ndarray) -> np.ndarray | None:
        """The class probabilities, `(n, classes)` float32; None for Keras' weights without `top`."""
        return self._outputs(x)[1] if self._top or self._of_2015 else None

    def fingerprint(self) -> dict[str, Any]:
        """The network, its weights by a hash, and the resizing; nothing of Keras' weights."""
        if not self._digest:
            return {}
        return {"network": "inception-2015-12-05", "weights": self._digest, "resizing": self._resizing}

    def diagnose(self) -> str | None:
        """Reports weights that were never trained: batch normalization has the statistics of a new network."""
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
        # Features and probabilities of the same examples are asked for in turn, and are made together.
        if self._last is not None and self._last[0] is x:
            return self._last[1]
        examples, x = x, np.asarray(x, np.float32)
        parts = [self._run(tf.constant(x[start : start + _BATCH])) for start in range(0, len(x), _BATCH)]
        outputs = [np.concatenate([np.asarray(part) for part in output]) for output in zip(*parts, strict=True)]
        self._last = (examples, outputs) if len(examples) <= _KEPT else None
        return outputs


def _refusal(parameter: str, value: Any, rule: str) -> ganlab.ConfigError:
    return ganlab.ConfigError(f"features.inception.{parameter} = {value!r} {rule}")
