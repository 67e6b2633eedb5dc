"""Checks which layers and activations of Keras and ganlab TensorFlow differentiates correctly, once and twice.

python tools/derivatives.py            # prints the table of docs/verification.md
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from ganlab_verify.single_layer import Call, Wrong, wrong

import ganlab.layers
from ganlab.training.graph.replica import Draws, ReplicaView

_POINTS, _LINES, _IMAGES, _SOLIDS = (6,), (6, 4), (6, 6, 4), (5, 5, 5, 2)


def layers() -> Iterator[tuple[str, keras.layers.Layer, tuple[int, ...]]]:
    """Every layer of the catalogue: its name in the table, the layer, and the shape of one of its examples."""
    made = keras.layers
    yield "Dense", made.Dense(3), _POINTS
    yield "EinsumDense", made.EinsumDense("abc,cd->abd", output_shape=(None, 3)), _LINES
    for n, shape in ((1, _LINES), (2, _IMAGES), (3, _SOLIDS)):
        yield f"Conv{n}D", getattr(made, f"Conv{n}D")(3, 3, strides=2, padding="same"), shape
        yield f"Conv{n}DTranspose", getattr(made, f"Conv{n}DTranspose")(3, 3, strides=2, padding="same"), shape
        for pool in ("AveragePooling", "MaxPooling"):
            yield f"{pool}{n}D", getattr(made, f"{pool}{n}D")(2), shape
        for pool in ("GlobalAveragePooling", "GlobalMaxPooling"):
            yield f"{pool}{n}D", getattr(made, f"{pool}{n}D")(), shape
        yield f"UpSampling{n}D", getattr(made, f"UpSampling{n}D")(2), shape
        yield f"ZeroPadding{n}D", getattr(made, f"ZeroPadding{n}D")(1), shape
        yield f"Cropping{n}D", getattr(made, f"Cropping{n}D")(1), shape
    yield "Conv2D, dilated", made.Conv2D(3, 3, dilation_rate=2, padding="same"), _IMAGES
    yield "Conv2D, groups", made.Conv2D(4, 3, groups=2, padding="same"), _IMAGES
    for n, shape in ((1, _LINES), (2, _IMAGES)):
        yield f"SeparableConv{n}D", getattr(made, f"SeparableConv{n}D")(3, 3, padding="same"), shape
        yield f"DepthwiseConv{n}D", getattr(made, f"DepthwiseConv{n}D")(3, padding="same"), shape
    for how in ("bilinear", "bicubic"):
        yield f"UpSampling2D, {how}", made.UpSampling2D(2, interpolation=how), _IMAGES
        yield f"Resizing, {how}", made.Resizing(8, 8, interpolation=how), _IMAGES
    yield "LayerNormalization", made.LayerNormalization(), _LINES
    yield "GroupNormalization", made.GroupNormalization(2), _IMAGES
    yield "BatchNormalization", made.BatchNormalization(), _POINTS
    yield "RMSNormalization", made.RMSNormalization(), _LINES
    yield "UnitNormalization", made.UnitNormalization(), _LINES
    yield "MultiHeadAttention", Attention(), _LINES
    for kind in ("SimpleRNN", "GRU", "LSTM"):
        yield kind, getattr(made, kind)(3), _LINES
    for name in ("Flatten", "Activation", "Permute", "RepeatVector"):
        given: dict[str, Any] = {"Activation": ("tanh",), "Permute": ((2, 1),), "RepeatVector": (3,)}
        yield name, getattr(made, name)(*given.get(name, ())), _POINTS if name == "RepeatVector" else _LINES
    for name in ("ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax"):
        yield name, getattr(made, name)(), _POINTS
    for name in _NAMES:
        yield f"activation {name}", made.Activation(name), _POINTS
    for name, layer, shape in _own():
        yield f"ganlab.layers.{name}", layer, shape


_NAMES = (
    *(
        "celu",
        "elu",
        "exponential",
        "gelu",
        "glu",
        "hard_shrink",
        "hard_sigmoid",
        "hard_silu",
        "hard_tanh",
        "leaky_relu",
    ),
    *("linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink"),
    *("softmax", "softplus", "softsign", "sparse_plus", "sparsemax", "sparse_sigmoid", "squareplus", "tanh"),
    "tanh_shrink",
)


def _own() -> Iterator[tuple[str, keras.layers.Layer, tuple[int, ...]]]:
    arguments: dict[str, tuple[Any, ...]] = {
        "Dropout": (0.3,),
        "GaussianNoise": (0.1,),
        "GroupSort": (),
        "FullSort": (),
        "LayerNormalization": (),
        "GroupNormalization": (2,),
        "InstanceNormalization": (),
    }
    for name, given in arguments.items():
        kind: Callable[..., keras.layers.Layer] | None = getattr(ganlab.layers, name, None)
        if kind is not None:
            yield name, kind(*given), _IMAGES if "Normalization" in name else _POINTS
    yield "SelfAttention", ganlab.layers.SelfAttention(), _IMAGES
    for name in ("ConditionalBatchNormalization", "ConditionalLayerNormalization", "ProjectionHead"):
        yield name, AtLabels(getattr(ganlab.layers, name)()), _POINTS if name == "ProjectionHead" else _IMAGES


class AtLabels(keras.layers.Layer):
    """A layer that takes labels, which are the same in every call."""

    def __init__(self, layer: keras.layers.Layer) -> None:
        super().__init__()
        self.layer = layer

    def build(self, shape: Any) -> None:
        """Builds the layer for two classes."""
        self.layer.build([shape, (shape[0], 2)])

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Applies the layer; rows have the classes in turn."""
        return self.layer([x, tf.one_hot(tf.range(x.shape[0]) % 2, 2)])


class Attention(keras.layers.Layer):
    """Attention of a sequence to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = keras.layers.MultiHeadAttention(2, 3)

    def build(self, shape: Any) -> None:
        """Builds the attention."""
        self.attention.build(shape, shape)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Applies the attention of the sequence to itself."""
        return self.attention(x, x)


def look(layer: keras.layers.Layer, shape: tuple[int, ...], examples: int = 4) -> Wrong | None:
    """Checks one layer at random inputs and weights; returns what is wrong, or None."""
    random = np.random.default_rng(0)
    x = random.standard_normal((examples, *shape)).astype(np.float32)
    layer(tf.constant(x))
    weights = {
        v.path: v.numpy() + 0.1 * random.standard_normal(v.shape).astype(np.float32) for v in layer.trainable_variables
    }
    draws = Draws(0, examples, tf.constant(0, tf.int64), tf.constant(0))
    return wrong(Call(layer, x), [x], weights, ReplicaView("layer", 2, draws, None))


def main() -> None:
    """Prints the table."""
    warnings.simplefilter("ignore")
    right: list[str] = []
    print("| layer or activation | first derivative | second derivative |\n|---|---|---|")
    for name, layer, shape in layers():
        found = look(layer, shape)
        if found is None:
            right.append(name)
        elif found.refused:
            print(f"| {name} | right | TensorFlow has none: it raises an error |", flush=True)
        elif found.times == 1:
            print(f"| {name} | {found.slope.error:.1e} off | |", flush=True)
        else:
            print(f"| {name} | right | {found.slope.error:.1e} off |", flush=True)
    print(f"| {', '.join(right)} | right | right |")


if __name__ == "__main__":
    main()
