"""R3GAN's residual networks without normalization, for square images."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge, Le
from ganlab.lazy import keras
from ganlab_builtin.architectures.conditioning import label_input
from ganlab_builtin.architectures.parts import check_choice, square_side, unsupported

_BASE = 4
_RULE = "square images (side, side, channels) of a side that is a power of two, 8 or more"
_SLOPE = 0.2
# The factor that keeps the second moment through a leaky rectifier.
_GAIN = math.sqrt(2.0 / (1.0 + _SLOPE**2))
_EXPANSION = 2


class R3GAN(ganlab.Architecture):
    """A generator and critic of inverted bottlenecks with grouped convolutions, mirror images of each other.

    Huang, Gokaslan, Kuleshov and Tompkin, "The GAN is dead; long live the GAN! A modern baseline GAN" (2024), section
    4.2 and appendix, configuration E, in the authors' code. A stage has `blocks` residual blocks: a 1x1 convolution to
    twice the channels, a grouped 3x3 one and a 1x1 one back, with leaky rectifiers between them and no normalization.
    The last convolution of a block starts at zero, and the others' variance falls with the number of blocks. Between
    stages a 1x1 convolution changes channels, if they change, and images are resized with the filter (1, 2, 1). The
    4 x 4 maps begin as learned ones times a linear map of the latent vector, and end in learned weights of each pixel
    and a linear map. Neither network has a last activation. With R1 and R2 and losses.relativistic it is R3GAN.
    """

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 64,
        channels: Annotated[int, Ge(1)] = 768,
        group: Annotated[int, Ge(1)] = 16,
        blocks: Annotated[int, Ge(1), Le(1000)] = 2,
        halve_above: Annotated[int, Ge(4)] = 32,
        labels: Literal["none", "projection"] = "none",
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input, and of the label's embedding beside it.
            channels: Channels of the feature maps; the authors' 768, and 1,536 for ImageNet.
            group: Channels in a group of the grouped convolutions, which divides twice the channels of each stage; the
                authors' 16, and 32 for ImageNet.
            blocks: Residual blocks in a stage.
            halve_above: The side above which channels halve as sides double: 32 for the authors' networks for FFHQ, 64
                for theirs for ImageNet.
            labels: "none", or "projection": the generator takes an embedding of the label beside its latent vector,
                and the score is the product of `channels` features and another embedding.
        """
        check_choice("r3gan.labels", labels, ("none", "projection"))
        self.latent_dim, self.channels, self.group, self.blocks = latent_dim, channels, group, blocks
        self.halve_above, self.labels = halve_above, labels
        self.conditional = labels != "none"

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, latent_dim) -> (n, side, side, c)`, unbounded, float32; a conditional one takes labels too."""
        widths = self._widths(sample_shape)
        inputs = x = keras.Input((self.latent_dim,), name="latent")
        if self.conditional:
            label = label_input(classes, "r3gan")
            x = keras.layers.Concatenate(name="with_label")([x, _linear(label, self.latent_dim, "label_embedding")])
            inputs = [inputs, label]
        x = _linear(x, widths[0], "project")
        x = keras.layers.Reshape((1, 1, widths[0]), name="project_pixel")(x)
        x = keras.layers.UpSampling2D(_BASE, name="project_pixels")(x)
        start = keras.initializers.RandomNormal(stddev=1.0)
        x = keras.layers.EinsumDense(
            "bhwc,hwc->bhwc", (_BASE, _BASE, widths[0]), kernel_initializer=start, name="basis"
        )(x)
        for i, width in enumerate(widths, start=1):
            if i > 1:
                x = _as_wide(x, width, f"stage_{i}_resized")
                x = _blurred(keras.layers.UpSampling2D(name=f"stage_{i}_upsampled")(x), f"stage_{i}")
            x = self._stage(x, f"stage_{i}", len(widths))
        x = _convolved(x, sample_shape[2], "pixels", dtype="float32")
        return keras.Model(inputs, x, name="generator")

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, side, side, c) -> (n, 1)`, float32; a conditional one takes labels too."""
        widths = self._widths(sample_shape)[::-1]
        sample = keras.Input(sample_shape, name="sample")
        x = _convolved(sample, widths[0], "extract")
        for i, width in enumerate(widths, start=1):
            if i > 1:
                x = keras.layers.AveragePooling2D(2, name=f"stage_{i}_downsampled")(_blurred(x, f"stage_{i}"))
                x = _as_wide(x, width, f"stage_{i}_resized")
            x = self._stage(x, f"stage_{i}", len(widths))
        start = keras.initializers.RandomNormal(stddev=1.0 / _BASE)
        features = keras.layers.EinsumDense("bhwc,hwc->bc", (widths[-1],), kernel_initializer=start, name="basis")(x)
        if not self.conditional:
            return keras.Model(sample, _linear(features, 1, "score", dtype="float32"), name="critic")
        label, width = label_input(classes, "r3gan"), self.channels
        features = _linear(features, width, "features", dtype="float32")
        embedding = _linear(label, width, "label_embedding", gain=width**-0.5, dtype="float32")
        score = keras.layers.Dot(1, dtype="float32", name="projection")([features, embedding])
        return keras.Model([sample, label], score, name="critic")

    def _stage(self, x: Any, name: str, stages: int) -> Any:
        width, expanded = x.shape[-1], _EXPANSION * x.shape[-1]
        # Three convolutions in a block, the last at zero, so that the sum of all blocks keeps its variance.
        gain = _GAIN * (stages * self.blocks) ** -0.25
        for i in range(1, self.blocks + 1):
            y = _convolved(x, expanded, f"{name}_block_{i}_expand", gain=gain, bias=True)
            y = _rectified(y, f"{name}_block_{i}_activation_1")
            groups = expanded // self.group
            y = _convolved(y, expanded, f"{name}_block_{i}_grouped", gain=gain, bias=True, side=3, groups=groups)
            y = _rectified(y, f"{name}_block_{i}_activation_2")
            y = _convolved(y, width, f"{name}_block_{i}_reduce", gain=0.0)
            x = keras.layers.Add(name=f"{name}_block_{i}")([x, y])
        return x

    def _widths(self, sample_shape: tuple[int, ...]) -> list[int]:
        """The channels of each stage, from the side 4 to the image's."""
        side = square_side("r3gan", sample_shape, _RULE)
        if side < 2 * _BASE or side & (side - 1):
            raise unsupported("r3gan", sample_shape, _RULE)
        sides = [_BASE << k for k in range((side // _BASE).bit_length())]
        widths = [max(1, self.channels * self.halve_above // max(side, self.halve_above)) for side in sides]
        for width in widths:
            if (_EXPANSION * width) % self.group:
                raise ganlab.ConfigError(
                    f"architectures.r3gan.group = {self.group} must divide twice the channels of each stage, and "
                    f"{width} of {', '.join(map(str, widths))} is half of {_EXPANSION * width}. Change group or "
                    "channels."
                )
        return widths


def _normal(gain: float) -> Any:
    """He et al. (2015): the variance is the gain squared over the number of inputs."""
    return keras.initializers.VarianceScaling(gain**2, "fan_in", "untruncated_normal") if gain else "zeros"


def _linear(x: Any, units: int, name: str, *, gain: float = 1.0, **kwargs: Any) -> Any:
    return keras.layers.Dense(units, use_bias=False, kernel_initializer=_normal(gain), name=name, **kwargs)(x)


def _convolved(
    x: Any, width: int, name: str, *, gain: float = 1.0, bias: bool = False, side: int = 1, **kwargs: Any
) -> Any:
    start = _normal(gain)
    return keras.layers.Conv2D(
        width, side, padding="same", use_bias=bias, kernel_initializer=start, name=name, **kwargs
    )(x)


def _as_wide(x: Any, width: int, name: str) -> Any:
    return x if x.shape[-1] == width else _convolved(x, width, name)


def _rectified(x: Any, name: str) -> Any:
    return keras.layers.LeakyReLU(_SLOPE, name=name)(x)


def _blurred(x: Any, name: str) -> Any:
    """The filter (1, 2, 1) / 4 along both axes, as two averages of neighbours, with zeros around the image."""
    x = keras.layers.ZeroPadding2D(1, name=f"{name}_padded")(x)
    for i in (1, 2):
        x = keras.layers.AveragePooling2D(2, strides=1, name=f"{name}_blurred_{i}")(x)
    return x
