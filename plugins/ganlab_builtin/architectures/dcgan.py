"""Strided convolutions down to four pixels, and back up."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab.lazy import keras
from ganlab_builtin.architectures.conditioning import LABELS, embedded, label_input, scored, with_planes
from ganlab_builtin.architectures.parts import (
    CRITIC_NORMALIZATIONS,
    GENERATOR_NORMALIZATIONS,
    check_choice,
    drop,
    image_sides,
    kernel_start,
    normalize,
    to_pixels,
    to_score,
    unsupported,
)

_SMALLEST, _BASE, _WIDEST = 8, 4, 8


class DCGAN(ganlab.Architecture):
    """A convolutional generator and critic for images of any height and width from 8.

    Radford, Metz and Chintala, "Unsupervised Representation Learning with Deep Convolutional GANs" (2016). Feature maps
    halve (rounding up) until their smaller side is at most 4 and double back, odd sides by cutting a row or a column
    off: 28, 14, 7, 4 as in the MNIST networks of Gulrajani et al. (2017), which `generator_normalization = "none"`
    makes exactly. Channels double as sides halve, from `channels` to eight times that.
    """

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 128,
        channels: Annotated[int, Ge(1)] = 64,
        kernel_size: Annotated[int, Ge(2)] = 5,
        generator_normalization: Literal["batch", "layer", "none"] = "batch",
        critic_normalization: Literal["none", "layer"] = "none",
        initializer: Literal["he", "xavier", "normal"] = "he",
        biases: Literal["needed", "all"] = "needed",
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
        labels: Literal["none", "projection", "concatenation", "classifier"] = "none",
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input.
            channels: Channels of the largest feature maps, half the image's side.
            kernel_size: Side of the kernels, at least 2. An even one covers each pixel equally often at stride 2.
            generator_normalization: "batch" (over the global batch), "layer" (within each example) or "none".
            critic_normalization: "none" or "layer". Batch normalization would couple examples.
            initializer: How kernels start: "he" is uniform as in He et al. (2015), so that any width and kernel keeps
                the size of signals; "xavier" is uniform as in Glorot and Bengio (2010), with twice the variance in
                convolutions, whose fans count the taps that meet at a stride of 2, as in the code of Gulrajani et al.;
                "normal" has the first paper's deviation of 0.02. Labels keep their own.
            biases: "needed" leaves out biases that a batch normalization would take out again; "all" has them, as other
                programs do.
            dropout: The probability with which the critic drops each number of its feature maps in training.
            labels: "none", or how the critic of a conditional pair uses a label: "projection" adds the product of its
                embedding and the last features (Miyato and Koyama, "cGANs with projection discriminator", 2018),
                "concatenation" takes a plane of pixels for each class as further channels, "classifier" returns
                `logits` beside the score and leaves the label to the loss. The generator takes an embedding of the
                label beside its latent vector.
        """
        check_choice("dcgan.generator_normalization", generator_normalization, GENERATOR_NORMALIZATIONS)
        check_choice("dcgan.critic_normalization", critic_normalization, CRITIC_NORMALIZATIONS)
        check_choice("dcgan.initializer", initializer, ("he", "xavier", "normal"))
        check_choice("dcgan.biases", biases, ("needed", "all"))
        check_choice("dcgan.labels", labels, LABELS)
        self.latent_dim, self.channels, self.kernel_size = latent_dim, channels, kernel_size
        self.generator_normalization, self.critic_normalization = generator_normalization, critic_normalization
        self.initializer, self.dropout, self.labels = initializer, dropout, labels
        # Batch normalization would take a bias out again, and leave it to drift by rounding.
        self._bias = biases == "all" or generator_normalization != "batch"
        self.conditional = labels != "none"

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, latent_dim) -> (n, height, width, c)` in [-1, 1], float32; a conditional one takes labels."""
        sides = _sides(sample_shape)[::-1]
        widths = self._widths(len(sides) - 1)[::-1]
        latent = keras.Input((self.latent_dim,), name="latent")
        inputs, x = latent, latent
        if self.conditional:
            label = label_input(classes, "dcgan")
            inputs, x = [latent, label], embedded(latent, label)
        (height, width), start = sides[0], widths[0]
        first = "he_uniform" if self.initializer == "he" else kernel_start(self.initializer)
        x = keras.layers.Dense(height * width * start, kernel_initializer=first, name="project")(x)
        x = keras.layers.Reshape((height, width, start), name="base")(x)
        for i, (height, width) in enumerate(sides[1:], start=1):
            x = normalize(x, self.generator_normalization, f"normalization_{i}")
            x = keras.layers.ReLU(name=f"activation_{i}")(x)
            last = i == len(sides) - 1
            x = self._up(x, sample_shape[2] if last else widths[i], i, bias=last)
            if height % 2 or width % 2:
                x = keras.layers.Cropping2D(((0, height % 2), (0, width % 2)), name=f"crop_{i}")(x)
        return keras.Model(inputs, to_pixels(x), name="generator")

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, height, width, c) -> (n, 1)`, float32; a conditional one takes labels too."""
        sides = _sides(sample_shape)
        x = sample = keras.Input(sample_shape, name="sample")
        label = label_input(classes, "dcgan") if self.conditional else None
        if self.labels == "concatenation":
            x = with_planes(sample, label)
        for i, width in enumerate(self._widths(len(sides) - 1), start=1):
            x = keras.layers.Conv2D(
                width,
                self.kernel_size,
                strides=2,
                padding="same",
                kernel_initializer=self._kernel(x.shape[-1], width),
                name=f"convolution_{i}",
            )(x)
            if i > 1:
                x = normalize(x, self.critic_normalization, f"normalization_{i}", critic=True)
            x = keras.layers.LeakyReLU(negative_slope=0.2, name=f"activation_{i}")(x)
            x = drop(x, self.dropout, f"dropout_{i}")
        x = keras.layers.Flatten(name="flat")(x)
        last = kernel_start(self.initializer)
        if label is None:
            return keras.Model(sample, to_score(x, last), name="critic")
        return keras.Model([sample, label], scored(x, label, self.labels, last), name="critic")

    def _up(self, x: Any, width: int, i: int, *, bias: bool) -> Any:
        return keras.layers.Conv2DTranspose(
            width,
            self.kernel_size,
            strides=2,
            padding="same",
            use_bias=bias or self._bias,
            kernel_initializer=self._kernel(x.shape[-1], width, up=True),
            name=f"convolution_{i}",
        )(x)

    def _kernel(self, inputs: int, outputs: int, *, up: bool = False) -> Any:
        """The initializer of a convolution of stride 2, or of a transposed one.

        An output pixel of a transposed convolution sees a quarter of the kernel's taps, as an input pixel of the other.
        """
        if self.initializer == "he":
            mode = {"scale": 8.0, "mode": "fan_out"} if up else {"scale": 2.0, "mode": "fan_in"}
            return keras.initializers.VarianceScaling(**mode, distribution="uniform")
        if self.initializer == "normal":
            return kernel_start("normal")
        inputs_seen, outputs_seen = (inputs / 4, outputs) if up else (inputs, outputs / 4)
        bound = math.sqrt(3.0 * 4.0 / (self.kernel_size**2 * (inputs_seen + outputs_seen)))
        return keras.initializers.RandomUniform(-bound, bound)

    def _widths(self, count: int) -> list[int]:
        return [self.channels * min(2**i, _WIDEST) for i in range(count)]


def _sides(sample_shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Heights and widths of feature maps, from the image's down to those whose smaller one is 3 or 4."""
    rule = f"images (height, width, channels) of {_SMALLEST} pixels or more either way"
    sides = [image_sides("dcgan", sample_shape, rule)]
    if min(sides[0]) < _SMALLEST:
        raise unsupported("dcgan", sample_shape, rule)
    while min(sides[-1]) > _BASE:
        height, width = sides[-1]
        sides.append(((height + 1) // 2, (width + 1) // 2))
    return sides
