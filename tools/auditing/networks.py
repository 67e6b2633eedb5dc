"""What networks are made of, seen in models that were built without weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from ganlab import lipschitz
from ganlab.functional import call

_NORMALIZATIONS = {"BatchNormalization": "batch", "GroupNormalization": "layer"}


def built(architecture: Any, role: str, shape: tuple[int, ...], classes: int | None) -> keras.Model:
    """A network of the published width, in a blink: its variables have shapes and initializers, but no values."""
    with keras.StatelessScope(initialize_variables=False):
        return call(getattr(architecture, role), shape, classes=classes)


def facts(model: keras.Model) -> Iterator[tuple[str, Any]]:
    """Facts of a network by name."""
    layers = [layer for layer in _flat(model) if not isinstance(layer, keras.layers.InputLayer)]
    kernels = [part for layer in layers for part in layer._flatten_layers() if _kernel(part) is not None]
    yield "parameters", sum(math.prod(v.shape) for v in model.trainable_variables)
    yield "maps", _maps(layers)
    yield "kernels", _distinct(map(_shape, kernels))
    yield "activations", _distinct(name for layer in layers if (name := _activation(layer)))
    yield "normalization", _distinct(name for layer in layers if (name := _normalization(layer))) or ["none"]
    yield (
        "without_bias",
        # Linear maps to the gains and biases of a normalization are its own.
        [part.name for part in kernels if getattr(part, "bias", None) is None and "_normalization_" not in part.name],
    )
    starts = [(layer.name, _start(layer.kernel_initializer)) for layer in kernels]
    yield "start.all", sorted({start for _, start in starts})
    for name, start in starts:
        yield f"start.{name}", start
    biases = {_start(layer.bias_initializer) for layer in kernels if getattr(layer, "bias", None) is not None}
    yield "start.biases", sorted(biases)
    for layer in layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            yield "batch_norm.epsilon", layer.epsilon
            yield "batch_norm.momentum", layer.momentum
            yield "batch_norm.all_replicas", layer.synchronized
            break
    yield "output", _activation(layers[-1]) or "linear"
    yield "upsampling", _distinct(name for layer in layers if (name := _upsampling(layer)))
    yield "pooling", _pooling(layers)
    yield "spectral_norm.layers", len(lipschitz.operators(model, reshaped=True))


def _flat(model: keras.Model) -> Iterator[Any]:
    for layer in model.layers:
        yield from _flat(layer) if isinstance(layer, keras.Model) else [layer]


def _maps(layers: list[Any]) -> list[str]:
    """Channels@side of the feature maps, where blocks end, or behind each convolution of a network without blocks."""
    sums = [layer for layer in layers if isinstance(layer, keras.layers.Add) and "_normalization_" not in layer.name]
    ends = [layer for layer in layers if layer in sums or isinstance(layer, keras.layers.Reshape)]
    if not any(isinstance(layer, keras.layers.Add) for layer in ends):
        ends += [layer for layer in layers if isinstance(layer, _CONVOLUTIONS)]
    shapes = [layer.output.shape for layer in ends]
    return [f"{shape[3]}@{shape[1]}" for shape in shapes if len(shape) == 4 and shape[1] > 1]


_CONVOLUTIONS = (keras.layers.Conv2D, keras.layers.Conv2DTranspose)


def _kernel(layer: Any) -> Any:
    return getattr(layer, "kernel", None) if hasattr(layer, "kernel_initializer") else None


def _shape(layer: Any) -> str:
    if not isinstance(layer, _CONVOLUTIONS):
        return "dense"
    transposed = "transposed " if isinstance(layer, keras.layers.Conv2DTranspose) else ""
    strides = f"/{layer.strides[0]}" if layer.strides[0] > 1 else ""
    groups = f" in {layer.groups} groups" if getattr(layer, "groups", 1) > 1 else ""
    return f"{transposed}{layer.kernel_size[0]}x{layer.kernel_size[1]}{strides}{groups}"


def _activation(layer: Any) -> str:
    if isinstance(layer, keras.layers.ReLU):
        return "relu"
    if isinstance(layer, keras.layers.LeakyReLU):
        return f"leaky_relu {layer.negative_slope:g}"
    return layer.activation.__name__ if isinstance(layer, keras.layers.Activation) else ""


def _normalization(layer: Any) -> str:
    if "Normalization" not in type(layer).__name__:
        return ""
    return _NORMALIZATIONS.get(type(layer).__name__, type(layer).__name__)


def _upsampling(layer: Any) -> str:
    if isinstance(layer, keras.layers.Conv2DTranspose):
        return "transposed"
    return layer.interpolation if isinstance(layer, keras.layers.UpSampling2D) else ""


def _start(initializer: Any) -> str:
    """An initializer by its distribution and its deviation, or the factor and the fan of its variance."""
    settings = initializer.get_config()
    if isinstance(initializer, keras.initializers.VarianceScaling):
        kinds = {"truncated_normal": "truncated", "untruncated_normal": "normal", "uniform": "uniform"}
        # Subclasses keep these out of their config.
        return f"{kinds[initializer.distribution]} {initializer.scale:.6g}/{initializer.mode}"
    name = type(initializer).__name__
    if name == "RandomUniform":
        return f"uniform {settings['minval']:.4g} {settings['maxval']:.4g}"
    if name == "RandomNormal":
        return f"normal {settings['stddev']:.6g}"
    return {"Zeros": "zeros", "Ones": "ones", "Orthogonal": "orthogonal"}.get(name, f"{name} {settings}")


def _pooling(layers: list[Any]) -> str:
    """What becomes of the last feature maps: their "mean" or "sum" over pixels, all of them "flat", or "weighted"."""
    last = max((i for i, layer in enumerate(layers) if len(layer.output.shape) == 4), default=None)
    if last is None:
        return "none"
    shape = layers[last].output.shape[1:]
    x = np.ones((1, *shape), np.float32)
    for layer in layers[last + 1 :]:
        if layer.variables:
            break
        x = np.asarray(layer(x))
    if x.ndim == 4:
        return "weighted"
    if x.shape[1] == math.prod(shape):
        return "flat"
    return {1.0: "mean", float(shape[0] * shape[1]): "sum"}[float(x[0, 0])]


def _distinct(names: Any) -> list[str]:
    return list(dict.fromkeys(names))
