"""Residual networks, for images of 32, 64 or 128 pixels."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import keras
from ganlab_builtin.architectures.conditioning import (
    LABELS,
    embedded,
    label_input,
    normalize_by_label,
    scored,
    with_planes,
)
from ganlab_builtin.architectures.parts import (
    CRITIC_NORMALIZATIONS,
    GENERATOR_NORMALIZATIONS,
    check_choice,
    normalize,
    square_side,
    to_pixels,
    to_score,
    unsupported,
)

_SIDES = (32, 64, 128)
_BASE, _WIDEST = 4, 16


class ResNet(ganlab.Architecture):
    """A residual generator and critic for square images of 32, 64 or 128 pixels.

    Blocks of two 3x3 convolutions beside a shortcut; nearest-neighbour upsampling, average pooling. At 32 pixels the
    CIFAR-10 networks of Gulrajani et al., "Improved Training of Wasserstein GANs" (2017), appendix: equally wide
    throughout, two critic blocks that pool and two that do not. At 64 and 128 the pyramids of Miyato et al., "Spectral
    Normalization for Generative Adversarial Networks" (2018), appendix: channels double as sides halve, from `channels`
    to at most 16 times that, with one critic block that does not pool at 4 pixels.

    With `labels` the generator's blocks normalize with gains and biases of the label, as those of Miyato and Koyama,
    "cGANs with projection discriminator" (2018). With `attention` both networks have a self-attention layer, as those
    of Zhang et al., "Self-attention generative adversarial networks" (2019).
    """

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 128,
        channels: Annotated[int, Ge(1)] | None = None,
        generator_normalization: Literal["batch", "layer", "none"] = "batch",
        critic_normalization: Literal["none", "layer"] = "none",
        labels: Literal["none", "projection", "concatenation", "classifier"] = "none",
        attention: Annotated[int, Ge(8)] | None = None,
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input.
            channels: Channels of the largest feature maps; None for the papers' 128 at 32 pixels and 64 above.
            generator_normalization: "batch" (over the global batch), "layer" (within each example) or "none".
            critic_normalization: "none" or "layer". Batch normalization would couple examples.
            labels: "none", or how the critic of a conditional pair uses a label: "projection" adds the product of its
                embedding and the last features, "concatenation" takes a plane of pixels for each class as further
                channels, "classifier" returns `logits` beside the score and leaves the label to the loss. The
                generator's normalizations have a gain and a bias for each class; with the normalization "none" it takes
                an embedding of the label beside its latent vector.
            attention: The side of the feature maps with self-attention in both networks, 8 or more and at most half of
                the image's; None for no attention. The paper's is 32, for images of 128 pixels.

        Raises:
            ConfigError: A value is out of its range.
        """
        check_choice("resnet.generator_normalization", generator_normalization, GENERATOR_NORMALIZATIONS)
        check_choice("resnet.critic_normalization", critic_normalization, CRITIC_NORMALIZATIONS)
        check_choice("resnet.labels", labels, LABELS)
        self.latent_dim, self.channels, self.labels, self.attention = latent_dim, channels, labels, attention
        self.generator_normalization, self.critic_normalization = generator_normalization, critic_normalization
        self.conditional = labels != "none"

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, latent_dim) -> (n, side, side, c)` in [-1, 1], float32; a conditional one takes labels too.

        Raises:
            IncompatibleError: These are not square images of 32, 64 or 128 pixels, or they have no classes.
            ConfigError: They have no feature maps of the side `attention`.
        """
        side, normalization = self._side(sample_shape), self.generator_normalization
        start, *widths = self._widths(side)[::-1]
        latent = keras.Input((self.latent_dim,), name="latent")
        inputs, x, label = latent, latent, None
        if self.conditional:
            label = label_input(classes, "resnet")
            inputs = [latent, label]
            if normalization == "none":
                x = embedded(latent, label)
        x = keras.layers.Dense(_BASE**2 * start, name="project")(x)
        x = keras.layers.Reshape((_BASE, _BASE, start), name="base")(x)
        for i, width in enumerate(widths, start=1):
            x = _up_block(x, width, f"block_{i}", normalization, label)
            x = self._attend(x)
        x = normalize(x, normalization, "last_normalization")
        x = keras.layers.ReLU(name="last_activation")(x)
        x = keras.layers.Conv2D(sample_shape[2], 3, padding="same", name="last_convolution")(x)
        return keras.Model(inputs, to_pixels(x), name="generator")

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, side, side, c) -> (n, 1)`, float32; a conditional one takes labels too.

        Raises:
            IncompatibleError: These are not square images of 32, 64 or 128 pixels, or they have no classes.
            ConfigError: They have no feature maps of the side `attention`.
        """
        side, normalization = self._side(sample_shape), self.critic_normalization
        widths = self._widths(side)
        pooling = 2 if side == 32 else len(widths) - 1
        x = sample = keras.Input(sample_shape, name="sample")
        label = label_input(classes, "resnet") if self.conditional else None
        if self.labels == "concatenation":
            x = with_planes(sample, label)
        x = self._attend(_first_block(x, widths[0], "block_1"))
        for i, width in enumerate(widths[1:], start=2):
            pool = i <= pooling
            x = _down_block(x, width, f"block_{i}", normalization, pool=pool)
            x = self._attend(x) if pool else x
        x = normalize(x, normalization, "last_normalization", critic=True)
        x = keras.layers.ReLU(name="last_activation")(x)
        x = keras.layers.GlobalAveragePooling2D(dtype="float32", name="pool")(x)
        if label is None:
            return keras.Model(sample, to_score(x), name="critic")
        return keras.Model([sample, label], scored(x, label, self.labels), name="critic")

    def _attend(self, x: Any) -> Any:
        """Self-attention behind a block, where its feature maps have the chosen side."""
        return ganlab.layers.SelfAttention(name="attention")(x) if x.shape[1] == self.attention else x

    def _side(self, sample_shape: tuple[int, ...]) -> int:
        """The images' side.

        Raises:
            IncompatibleError: The networks cannot make such images.
            ConfigError: They have no feature maps of the side `attention`.
        """
        rule = "square images (side, side, channels) of side 32, 64 or 128"
        side = square_side("resnet", sample_shape, rule)
        if side not in _SIDES:
            raise unsupported("resnet", sample_shape, rule)
        sides = [2**i for i in range(_BASE.bit_length(), side.bit_length() - 1)]
        if self.attention not in (None, *sides):
            raise ganlab.ConfigError(
                f"architectures.resnet.attention = {self.attention} must be the side of feature maps of both networks: "
                f"{', '.join(map(str, sides))} for images of {side} pixels, or None."
            )
        return side

    def _widths(self, side: int) -> list[int]:
        """Channels of feature maps from the image's side down to the base; as many doublings as halvings, capped."""
        if side == 32:
            return [self.channels or 128] * 4
        halvings = (side // _BASE).bit_length() - 1
        return [(self.channels or 64) * min(2**i, _WIDEST) for i in range(halvings + 1)]


def _up_block(x: Any, width: int, name: str, normalization: str, label: Any) -> Any:
    """Doubles the side: the sum of a 1x1 shortcut and two 3x3 convolutions, each after normalization and ReLU."""
    # A 1x1 convolution commutes with repeating pixels, and costs a quarter before it.
    shortcut = _convolve(x, width, 1, f"{name}_shortcut", bias=False)
    shortcut = keras.layers.UpSampling2D(name=f"{name}_shortcut_upsampled")(shortcut)
    # Batch normalization takes biases before it out again, and would leave them to drift by rounding.
    bias = normalization != "batch"
    x = normalize_by_label(x, label, normalization, f"{name}_1_normalization")
    x = keras.layers.ReLU(name=f"{name}_1_activation")(x)
    x = keras.layers.UpSampling2D(name=f"{name}_upsampled")(x)
    x = _convolve(x, width, 3, f"{name}_convolution_1", bias=bias)
    x = normalize_by_label(x, label, normalization, f"{name}_2_normalization")
    x = keras.layers.ReLU(name=f"{name}_2_activation")(x)
    x = _convolve(x, width, 3, f"{name}_convolution_2", bias=bias)
    return keras.layers.Add(name=name)([shortcut, x])


def _first_block(x: Any, width: int, name: str) -> Any:
    """The critic's first block halves the side and rectifies no pixels: convolution, ReLU, convolution, pooling."""
    shortcut = _convolve(_pool(x, f"{name}_shortcut_pooled"), width, 1, f"{name}_shortcut", bias=False)
    x = _convolve(x, width, 3, f"{name}_convolution_1")
    x = keras.layers.ReLU(name=f"{name}_activation")(x)
    x = _convolve(x, width, 3, f"{name}_convolution_2")
    return keras.layers.Add(name=name)([shortcut, _pool(x, f"{name}_pooled")])


def _down_block(x: Any, width: int, name: str, normalization: str, *, pool: bool) -> Any:
    """Two 3x3 convolutions beside a shortcut, which is `x` itself where neither side nor channels change."""
    shortcut = x
    if pool or x.shape[-1] != width:
        # A 1x1 convolution commutes with averaging pixels, and costs a quarter after it.
        shortcut = _pool(x, f"{name}_shortcut_pooled") if pool else x
        shortcut = _convolve(shortcut, width, 1, f"{name}_shortcut", bias=False)
    x = _convolve(_rectify(x, f"{name}_1", normalization), width, 3, f"{name}_convolution_1")
    x = _convolve(_rectify(x, f"{name}_2", normalization), width, 3, f"{name}_convolution_2")
    return keras.layers.Add(name=name)([shortcut, _pool(x, f"{name}_pooled") if pool else x])


def _rectify(x: Any, name: str, normalization: str) -> Any:
    normalized = normalize(x, normalization, f"{name}_normalization", critic=True)
    return keras.layers.ReLU(name=f"{name}_activation")(normalized)


def _convolve(x: Any, width: int, size: int, name: str, *, bias: bool = True) -> Any:
    # He et al. (2015) before rectifiers, Glorot and Bengio (2010) on shortcuts, which have none.
    initializer = "he_uniform" if size == 3 else "glorot_uniform"
    return keras.layers.Conv2D(width, size, padding="same", use_bias=bias, kernel_initializer=initializer, name=name)(x)


def _pool(x: Any, name: str) -> Any:
    return keras.layers.AveragePooling2D(2, name=name)(x)
