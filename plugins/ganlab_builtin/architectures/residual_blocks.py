"""Residual blocks of two 3x3 convolutions beside a shortcut, in the variants of published networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ganlab
from ganlab.lazy import keras
from ganlab_builtin.architectures.parts import kernel_start, normalize


@dataclass(frozen=True, kw_only=True)
class BlockStyle:
    """How all blocks of a network are made.

    Attributes:
        normalization: A kind of `parts.normalize`.
        initializer: A kind of `parts.kernel_start`.
        all_biases: Every convolution has a bias: also shortcuts, and those before a batch normalization.
        upsampling: "nearest" or "bilinear".
        hidden_as_input: A critic's block has as many channels between its convolutions as its input, not its output.
        rectified_shortcuts: A critic's shortcut takes its block's input behind the first rectifier, not before it.
    """

    normalization: str
    initializer: str
    all_biases: bool
    upsampling: str = "nearest"
    hidden_as_input: bool = False
    rectified_shortcuts: bool = False


def up_block(x: Any, width: int, name: str, style: BlockStyle, normalized: Callable[[Any, str], Any]) -> Any:
    """Doubles the side: the sum of a 1x1 shortcut and two 3x3 convolutions, each after normalization and ReLU."""
    # A 1x1 convolution commutes with interpolation, whose weights have the sum one, and costs a quarter before it.
    shortcut = _shortcut(x, width, name, style)
    shortcut = _upsample(shortcut, f"{name}_shortcut_upsampled", style)
    # Batch normalization takes biases before it out again, and would leave them to drift by rounding.
    bias = style.all_biases or style.normalization != "batch"
    x = normalized(x, f"{name}_1_normalization")
    x = keras.layers.ReLU(name=f"{name}_1_activation")(x)
    x = _upsample(x, f"{name}_upsampled", style)
    x = _convolve(x, width, f"{name}_convolution_1", style, bias=bias)
    x = normalized(x, f"{name}_2_normalization")
    x = keras.layers.ReLU(name=f"{name}_2_activation")(x)
    x = _convolve(x, width, f"{name}_convolution_2", style, bias=bias)
    return keras.layers.Add(name=name)([shortcut, x])


def first_block(x: Any, width: int, name: str, style: BlockStyle) -> Any:
    """The critic's first block halves the side and rectifies no pixels: convolution, ReLU, convolution, pooling."""
    shortcut = _shortcut(_pool(x, f"{name}_shortcut_pooled"), width, name, style)
    x = _convolve(x, width, f"{name}_convolution_1", style)
    x = keras.layers.ReLU(name=f"{name}_activation")(x)
    x = _convolve(x, width, f"{name}_convolution_2", style)
    return keras.layers.Add(name=name)([shortcut, _pool(x, f"{name}_pooled")])


def down_block(x: Any, width: int, name: str, style: BlockStyle, *, pool: bool) -> Any:
    """Two 3x3 convolutions beside a shortcut, which is its input itself where neither side nor channels change."""
    hidden = x.shape[-1] if style.hidden_as_input else width
    rectified = _rectify(x, f"{name}_1", style)
    shortcut = rectified if style.rectified_shortcuts else x
    if pool or x.shape[-1] != width:
        # A 1x1 convolution commutes with averaging pixels, and costs a quarter after it.
        shortcut = _pool(shortcut, f"{name}_shortcut_pooled") if pool else shortcut
        shortcut = _shortcut(shortcut, width, name, style)
    x = _convolve(rectified, hidden, f"{name}_convolution_1", style)
    x = _convolve(_rectify(x, f"{name}_2", style), width, f"{name}_convolution_2", style)
    return keras.layers.Add(name=name)([shortcut, _pool(x, f"{name}_pooled") if pool else x])


def _rectify(x: Any, name: str, style: BlockStyle) -> Any:
    normalized = normalize(x, style.normalization, f"{name}_normalization", critic=True)
    return keras.layers.ReLU(name=f"{name}_activation")(normalized)


def _convolve(x: Any, width: int, name: str, style: BlockStyle, *, bias: bool = True) -> Any:
    start = kernel_start(style.initializer, rectified=True)
    return keras.layers.Conv2D(width, 3, padding="same", use_bias=bias, kernel_initializer=start, name=name)(x)


def _shortcut(x: Any, width: int, name: str, style: BlockStyle) -> Any:
    start = kernel_start(style.initializer)
    return keras.layers.Conv2D(
        width, 1, use_bias=style.all_biases, kernel_initializer=start, padding="same", name=f"{name}_shortcut"
    )(x)


def _upsample(x: Any, name: str, style: BlockStyle) -> Any:
    # TensorFlow's bilinear resize has neither a float64 kernel nor a second derivative. Repeating pixels has both, and
    # a .keras file of Keras' own layers opens without ganlab.
    layers = keras.layers if style.upsampling == "nearest" else ganlab.layers
    return layers.UpSampling2D(interpolation=style.upsampling, name=name)(x)


def _pool(x: Any, name: str) -> Any:
    return keras.layers.AveragePooling2D(2, name=name)(x)
