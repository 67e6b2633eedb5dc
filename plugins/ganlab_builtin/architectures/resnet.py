"""Residual networks, for images of 32, 64 or 128 pixels."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import keras
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
    """

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 128,
        channels: Annotated[int, Ge(1)] | None = None,
        generator_normalization: Literal["batch", "layer", "none"] = "batch",
        critic_normalization: Literal["none", "layer"] = "none",
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input.
            channels: Channels of the largest feature maps; None for the papers' 128 at 32 pixels and 64 above.
            generator_normalization: "batch" (over the global batch), "layer" (within each example) or "none".
            critic_normalization: "none" or "layer". Batch normalization would couple examples.

        Raises:
            ConfigError: A value is out of its range.
        """
        check_choice("resnet.generator_normalization", generator_normalization, GENERATOR_NORMALIZATIONS)
        check_choice("resnet.critic_normalization", critic_normalization, CRITIC_NORMALIZATIONS)
        self.latent_dim, self.channels = latent_dim, channels
        self.generator_normalization, self.critic_normalization = generator_normalization, critic_normalization

    def generator(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, latent_dim) -> (n, side, side, c)` in [-1, 1], float32.

        Raises:
            IncompatibleError: These are not square images of 32, 64 or 128 pixels.
        """
        side, normalization = _side(sample_shape), self.generator_normalization
        start, *widths = self._widths(side)[::-1]
        latent = keras.Input((self.latent_dim,), name="latent")
        x = keras.layers.Dense(_BASE**2 * start, name="project")(latent)
        x = keras.layers.Reshape((_BASE, _BASE, start), name="base")(x)
        for i, width in enumerate(widths, start=1):
            x = _up_block(x, width, f"block_{i}", normalization)
        x = normalize(x, normalization, "last_normalization")
        x = keras.layers.ReLU(name="last_activation")(x)
        x = keras.layers.Conv2D(sample_shape[2], 3, padding="same", name="last_convolution")(x)
        return keras.Model(latent, to_pixels(x), name="generator")

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, side, side, c) -> (n, 1)`, float32.

        Raises:
            IncompatibleError: These are not square images of 32, 64 or 128 pixels.
        """
        side, normalization = _side(sample_shape), self.critic_normalization
        widths = self._widths(side)
        pooling = 2 if side == 32 else len(widths) - 1
        sample = keras.Input(sample_shape, name="sample")
        x = _first_block(sample, widths[0], "block_1")
        for i, width in enumerate(widths[1:], start=2):
            x = _down_block(x, width, f"block_{i}", normalization, pool=i <= pooling)
        x = normalize(x, normalization, "last_normalization", critic=True)
        x = keras.layers.ReLU(name="last_activation")(x)
        x = keras.layers.GlobalAveragePooling2D(dtype="float32", name="pool")(x)
        return keras.Model(sample, to_score(x), name="critic")

    def _widths(self, side: int) -> list[int]:
        """Channels of feature maps from the image's side down to the base; as many doublings as halvings, capped."""
        if side == 32:
            return [self.channels or 128] * 4
        halvings = (side // _BASE).bit_length() - 1
        return [(self.channels or 64) * min(2**i, _WIDEST) for i in range(halvings + 1)]


def _up_block(x: Any, width: int, name: str, normalization: str) -> Any:
    """Doubles the side: the sum of a 1x1 shortcut and two 3x3 convolutions, each after normalization and ReLU."""
    # A 1x1 convolution commutes with repeating pixels, and costs a quarter before it.
    shortcut = _convolve(x, width, 1, f"{name}_shortcut", bias=False)
    shortcut = keras.layers.UpSampling2D(name=f"{name}_shortcut_upsampled")(shortcut)
    # Batch normalization takes biases before it out again, and would leave them to drift by rounding.
    bias = normalization != "batch"
    x = _rectify(x, f"{name}_1", normalization)
    x = keras.layers.UpSampling2D(name=f"{name}_upsampled")(x)
    x = _convolve(x, width, 3, f"{name}_convolution_1", bias=bias)
    x = _rectify(x, f"{name}_2", normalization)
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
    x = _convolve(_rectify(x, f"{name}_1", normalization, critic=True), width, 3, f"{name}_convolution_1")
    x = _convolve(_rectify(x, f"{name}_2", normalization, critic=True), width, 3, f"{name}_convolution_2")
    return keras.layers.Add(name=name)([shortcut, _pool(x, f"{name}_pooled") if pool else x])


def _rectify(x: Any, name: str, normalization: str, *, critic: bool = False) -> Any:
    normalized = normalize(x, normalization, f"{name}_normalization", critic=critic)
    return keras.layers.ReLU(name=f"{name}_activation")(normalized)


def _convolve(x: Any, width: int, size: int, name: str, *, bias: bool = True) -> Any:
    # He et al. (2015) before rectifiers, Glorot and Bengio (2010) on shortcuts, which have none.
    initializer = "he_uniform" if size == 3 else "glorot_uniform"
    return keras.layers.Conv2D(width, size, padding="same", use_bias=bias, kernel_initializer=initializer, name=name)(x)


def _pool(x: Any, name: str) -> Any:
    return keras.layers.AveragePooling2D(2, name=name)(x)


def _side(sample_shape: tuple[int, ...]) -> int:
    rule = "square images (side, side, channels) of side 32, 64 or 128"
    side = square_side("resnet", sample_shape, rule)
    if side not in _SIDES:
        raise unsupported("resnet", sample_shape, rule)
    return side
