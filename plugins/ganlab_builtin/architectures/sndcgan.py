"""The convolutional networks of spectral normalization, with plain and strided convolutions in turn."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import keras
from ganlab_builtin.architectures.conditioning import LABELS, embedded, label_input, scored, with_planes
from ganlab_builtin.architectures.parts import (
    CRITIC_NORMALIZATIONS,
    GENERATOR_NORMALIZATIONS,
    check_choice,
    kernel_start,
    normalize,
    square_side,
    to_pixels,
    to_score,
    unsupported,
)

_SMALLEST, _HALVINGS = 16, 3
_RULE = f"square images (side, side, channels) of a side of {_SMALLEST} or more that is a multiple of 8"


class SNDCGAN(ganlab.Architecture):
    """A convolutional generator and critic for square images whose side is a multiple of 8.

    Miyato, Kataoka, Koyama and Yoshida, "Spectral normalization for generative adversarial networks" (2018), appendix
    B.4, table 3. The generator doubles the side three times by transposed 4x4 convolutions, each after a normalization
    and a ReLU. The critic has seven convolutions, 3x3 and 4x4 in turn, of which the latter halve the side, with leaky
    ReLUs of slope 0.1. Channels double as sides halve, from `channels` to eight times that. With 32 pixels the feature
    maps are of 4 pixels at least, with 48 of 6, with 128 of 16.
    """

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 128,
        channels: Annotated[int, Ge(1)] = 64,
        doubling: Literal["strided", "plain"] = "strided",
        generator_normalization: Literal["batch", "layer", "none"] = "batch",
        critic_normalization: Literal["none", "layer"] = "none",
        initializer: Literal["normal", "xavier", "orthogonal"] = "normal",
        biases: Literal["needed", "all"] = "needed",
        labels: Literal["none", "projection", "concatenation", "classifier"] = "none",
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input.
            channels: Channels of the largest feature maps.
            doubling: The convolutions that double the critic's channels: the "strided" ones, 64, 128, 128, 256, 256,
                512, 512 as in compare_gan, or the "plain" ones after them, 64, 64, 128, 128, 256, 256, 512.
            generator_normalization: "batch" (over the global batch), "layer" (within each example) or "none".
            critic_normalization: "none" or "layer". Batch normalization would couple examples.
            initializer: How kernels start: "normal" has the deviation 0.02 of Radford et al. (2016); "xavier" is
                uniform as in Glorot and Bengio (2010), with twice the variance but at both ends of the generator and
                in the critic's last layer; "orthogonal" is that of Brock et al. (2019).
            biases: "needed" leaves out biases that a batch normalization would take out again; "all" has them, as other
                programs do.
            labels: "none", or how the critic of a conditional pair uses a label: "projection", "concatenation" or
                "classifier", as of `architectures.dcgan`.
        """
        check_choice("sndcgan.doubling", doubling, ("strided", "plain"))
        check_choice("sndcgan.generator_normalization", generator_normalization, GENERATOR_NORMALIZATIONS)
        check_choice("sndcgan.critic_normalization", critic_normalization, CRITIC_NORMALIZATIONS)
        check_choice("sndcgan.initializer", initializer, ("normal", "xavier", "orthogonal"))
        check_choice("sndcgan.biases", biases, ("needed", "all"))
        check_choice("sndcgan.labels", labels, LABELS)
        self.latent_dim, self.channels, self.doubling = latent_dim, channels, doubling
        self.generator_normalization, self.critic_normalization = generator_normalization, critic_normalization
        self.initializer, self.labels, self.conditional = initializer, labels, labels != "none"
        # Batch normalization would take a bias out again, and leave it to drift by rounding.
        self._bias = biases == "all" or generator_normalization != "batch"

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, latent_dim) -> (n, side, side, c)` in [-1, 1], float32; a conditional one takes labels too."""
        base = _side(sample_shape) >> _HALVINGS
        widest = self.channels << _HALVINGS
        latent = keras.Input((self.latent_dim,), name="latent")
        inputs, x = latent, latent
        if self.conditional:
            label = label_input(classes, "sndcgan")
            inputs, x = [latent, label], embedded(latent, label)
        x = keras.layers.Dense(base**2 * widest, kernel_initializer=kernel_start(self.initializer), name="project")(x)
        x = keras.layers.Reshape((base, base, widest), name="base")(x)
        for i in range(1, _HALVINGS + 1):
            x = self._normalized(x, i)
            x = keras.layers.Conv2DTranspose(
                widest >> i,
                4,
                strides=2,
                padding="same",
                use_bias=self._bias,
                kernel_initializer=kernel_start(self.initializer, rectified=True),
                name=f"convolution_{i}",
            )(x)
        x = self._normalized(x, _HALVINGS + 1)
        start = kernel_start(self.initializer)
        x = keras.layers.Conv2D(
            sample_shape[2], 3, padding="same", kernel_initializer=start, name=f"convolution_{_HALVINGS + 1}"
        )(x)
        return keras.Model(inputs, to_pixels(x), name="generator")

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, side, side, c) -> (n, 1)`, float32; a conditional one takes labels too."""
        _side(sample_shape)
        x = sample = keras.Input(sample_shape, name="sample")
        label = label_input(classes, "sndcgan") if self.conditional else None
        if self.labels == "concatenation":
            x = with_planes(sample, label)
        for i in range(1, 2 * _HALVINGS + 2):
            strided = i % 2 == 0
            x = keras.layers.Conv2D(
                self.channels << ((i if self.doubling == "strided" else i - 1) // 2),
                4 if strided else 3,
                strides=2 if strided else 1,
                padding="same",
                kernel_initializer=kernel_start(self.initializer, rectified=True),
                name=f"convolution_{i}",
            )(x)
            if i > 1:
                x = normalize(x, self.critic_normalization, f"normalization_{i}", critic=True)
            x = keras.layers.LeakyReLU(negative_slope=0.1, name=f"activation_{i}")(x)
        x = keras.layers.Flatten(name="flat")(x)
        start = kernel_start(self.initializer)
        if label is None:
            return keras.Model(sample, to_score(x, start), name="critic")
        return keras.Model([sample, label], scored(x, label, self.labels, start), name="critic")

    def _normalized(self, x: Any, i: int) -> Any:
        x = normalize(x, self.generator_normalization, f"normalization_{i}")
        return keras.layers.ReLU(name=f"activation_{i}")(x)


def _side(sample_shape: tuple[int, ...]) -> int:
    """The images' side, a multiple of 8."""
    side = square_side("sndcgan", sample_shape, _RULE)
    if side < _SMALLEST or side % 2**_HALVINGS:
        raise unsupported("sndcgan", sample_shape, _RULE)
    return side
