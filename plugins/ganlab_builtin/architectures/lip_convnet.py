"""A convolutional critic of Lipschitz constant one, whatever its weights, with DCGAN's generator."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge, Le
from ganlab.lazy import keras
from ganlab_builtin.architectures.dcgan import DCGAN
from ganlab_builtin.architectures.parts import check_choice, square_side, unsupported

_BLOCKS = ("aol", "sll", "soc", "bcop", "aoc", "bro", "lires", "plain")
_SMALLEST, _BASE, _WIDEST = 8, 4, 8


class LipConvNet(ganlab.Architecture):
    """A critic of 1-Lipschitz convolutions for square images of even side from 8; the generator is DCGAN's.

    Prach and Lampert, "Almost-orthogonal layers for efficient general-purpose Lipschitz networks" (2022), section 5, in
    the sequence of Singla and Feizi's LipConvNet ("Skew orthogonal convolutions", 2021): the pixels of each 2 x 2
    window become channels, until the side is odd or at most 4; after each such step there are convolutions and MaxMin,
    and at the end a dense layer. Every layer has the Lipschitz constant one, so the critic needs no constraint
    (`experiment.constraints = []`), and its certificate (`ganlab.lipschitz.certificate`) is 1. The papers classify
    images; the widths here are DCGAN's, from `channels` at half the image's side to eight times that.
    """

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 128,
        channels: Annotated[int, Ge(2)] = 64,
        kernel_size: Annotated[int, Ge(1)] = 3,
        blocks: Annotated[int, Ge(1), Le(1000)] = 1,
        convolution: Literal["aol", "sll", "soc", "bcop", "aoc", "bro", "lires", "plain"] = "aol",
        generator_kernel_size: Annotated[int, Ge(2)] = 5,
        generator_normalization: Literal["batch", "layer", "none"] = "batch",
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input.
            channels: Channels of the largest feature maps, an even number.
            kernel_size: Side of the critic's kernels.
            blocks: Convolutions at each side.
            convolution: "aol", almost orthogonal ones with MaxMin after each; "sll", one of those 1x1 for the change of
                channels, then residual layers (Araujo et al., 2023); "bcop", orthogonal ones with circular padding and
                MaxMin (Li et al., 2019); "soc", one of those 1x1 for the change of channels, then skew ones with
                MaxMin (Singla and Feizi, 2021); "aoc", orthogonal ones with circular padding and MaxMin, of which the
                first at each side has the stride that halves it (Boissin et al., 2025); "bro", block reflectors with
                circular padding and MaxMin (Lai et al., 2025); "lires", an orthogonal one 1x1 for the change of
                channels, then linear residual ones with MaxMin (Hu et al., 2023); "plain", those of Keras with MaxMin,
                which have no bound of their own: the same shape for a critic under a constraint.
            generator_kernel_size: Side of the generator's kernels.
            generator_normalization: The generator's, as in `architectures.dcgan`.
        """
        check_choice("lip_convnet.convolution", convolution, _BLOCKS)
        if channels % 2:
            raise ganlab.ConfigError(
                f"architectures.lip_convnet.channels = {channels!r} must be even, because MaxMin sorts pairs of them."
            )
        if convolution in ("soc", "lires") and kernel_size % 2 == 0:
            raise ganlab.ConfigError(
                f"architectures.lip_convnet.kernel_size = {kernel_size!r} must be odd with convolution = "
                f"{convolution!r}, because only such a kernel has a tap in its middle."
            )
        if convolution == "aoc" and kernel_size < 2:
            raise ganlab.ConfigError(
                f"architectures.lip_convnet.kernel_size = {kernel_size!r} must be at least 2 with convolution = 'aoc', "
                "whose stride of 2 a smaller kernel would not reach."
            )
        self.latent_dim, self.channels, self.kernel_size = latent_dim, channels, kernel_size
        self.blocks, self.convolution = blocks, convolution
        self._drawing = DCGAN(
            latent_dim=latent_dim,
            channels=channels,
            kernel_size=generator_kernel_size,
            generator_normalization=generator_normalization,
        )

    def generator(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """DCGAN's, a model `(n, latent_dim) -> (n, side, side, c)` in [-1, 1], float32."""
        _levels(sample_shape)
        return self._drawing.generator(sample_shape)

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, side, side, c) -> (n, 1)`, float32, of Lipschitz constant one."""
        x = sample = keras.Input(sample_shape, name="sample")
        for i in range(1, _levels(sample_shape) + 1):
            width = self.channels * min(2 ** (i - 1), _WIDEST)
            if self.convolution != "aoc":
                x = ganlab.layers.InvertibleDownsampling(name=f"down_{i}")(x)
            if self.convolution == "sll":
                x = ganlab.layers.AOLConv2D(width, 1, name=f"channels_{i}")(x)
            elif self.convolution in ("soc", "lires"):
                # These have as many outputs as inputs, skew ones without this as many as the wider of both.
                x = ganlab.layers.OrthogonalConv2D(width, 1, name=f"channels_{i}")(x)
            for j in range(1, self.blocks + 1):
                x = self._convolved(x, width, f"{i}_{j}", 2 if j == 1 else 1)
        x = keras.layers.Flatten(name="flat")(x)
        dense = keras.layers.Dense if self.convolution == "plain" else ganlab.layers.AOLDense
        return keras.Model(sample, dense(1, dtype="float32", name="score")(x), name="critic")

    def _convolved(self, x: Any, width: int, name: str, stride: int) -> Any:
        if self.convolution == "sll":
            return ganlab.layers.SLLConv2D(width, self.kernel_size, name=f"residual_{name}")(x)
        named = {"name": f"convolution_{name}"}
        if self.convolution == "plain":
            x = keras.layers.Conv2D(width, self.kernel_size, padding="same", **named)(x)
        elif self.convolution in ("aoc", "bro", "lires"):
            from ganlab_builtin import layers as further

            strides = {"strides": stride} if self.convolution == "aoc" else {}
            kinds = {"aoc": further.AOCConv2D, "bro": further.BROConv2D, "lires": further.LiResConv2D}
            x = kinds[self.convolution](width, self.kernel_size, **strides, **named)(x)
        else:
            layers = ganlab.layers
            kinds = {"aol": layers.AOLConv2D, "soc": layers.SkewConv2D, "bcop": layers.OrthogonalConv2D}
            x = kinds[self.convolution](width, self.kernel_size, **named)(x)
        return ganlab.layers.GroupSort(name=f"activation_{name}")(x)


def _levels(sample_shape: tuple[int, ...]) -> int:
    """How often the side is halved: until it is odd or at most 4."""
    rule = f"square images (side, side, channels) of even side, {_SMALLEST} or more"
    side, levels = square_side("lip_convnet", sample_shape, rule), 0
    if side < _SMALLEST or side % 2:
        raise unsupported("lip_convnet", sample_shape, rule)
    while side > _BASE and side % 2 == 0:
        side, levels = side // 2, levels + 1
    return levels
