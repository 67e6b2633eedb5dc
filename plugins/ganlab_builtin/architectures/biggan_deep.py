"""BigGAN-deep's bottlenecked residual networks, for labelled images of 32 to 256 pixels."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge, Le
from ganlab.lazy import keras
from ganlab_builtin.architectures.biggan import (
    BASE,
    CRITIC_WIDTHS,
    GENERATOR_WIDTHS,
    attended,
    drawn,
    labelled_side,
    summed,
)
from ganlab_builtin.architectures.conditioning import label_input, normalize_by_vector, scored
from ganlab_builtin.architectures.parts import check_choice, kernel_start

_BOTTLENECK = 4


class BigGANDeep(ganlab.Architecture):
    """A deep residual generator and critic for labelled square images of 32, 64, 128 or 256 pixels.

    Brock, Donahue and Simonyan, "Large scale GAN training for high fidelity natural image synthesis" (2019), appendix
    B, BigGAN-deep, with the widths of the authors' program at each side. A block has a 1x1 convolution to a quarter of
    its channels, two 3x3 ones and a 1x1 one; where it changes the number of channels, the generator's shortcut drops
    some and the critic's adds some by a 1x1 convolution. The generator's blocks normalize with gains and biases that
    are linear in the whole latent vector beside an embedding of the label, which all blocks share. The critic adds up
    its last features and projects them on its own embedding of the label. Constrain both by `spectral_norm`; the shared
    embedding is left alone by constraints.
    """

    conditional = True

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 128,
        channels: Annotated[int, Ge(1)] = 128,
        embedding_dim: Annotated[int, Ge(1)] = 128,
        blocks: Annotated[int, Ge(1), Le(1000)] = 2,
        attention: Annotated[int, Ge(8)] | None = None,
        initializer: Literal["orthogonal", "xavier", "normal"] = "orthogonal",
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input.
            channels: The width that all others are multiples of, itself a multiple of 4: 128 in the paper.
            embedding_dim: The length of the embedding that the generator's blocks share.
            blocks: Residual blocks for each side of feature maps.
            attention: The side of the feature maps with self-attention in both networks, 8 or more and at most half of
                the image's; None for no attention. The paper's is 64, for images of 128 pixels or more.
            initializer: How kernels start, as for `architectures.resnet`. Attention and the projection keep their own.
        """
        check_choice("biggan_deep.initializer", initializer, ("orthogonal", "xavier", "normal"))
        if channels % _BOTTLENECK:
            raise ganlab.ConfigError(
                f"architectures.biggan_deep.channels = {channels} must be a multiple of {_BOTTLENECK}: blocks work on "
                "a quarter of their channels."
            )
        self.latent_dim, self.channels, self.embedding_dim = latent_dim, channels, embedding_dim
        self.blocks, self.attention, self.initializer = blocks, attention, initializer

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model of `(n, latent_dim)` and labels to `(n, side, side, c)` in [-1, 1], float32."""
        side = labelled_side("biggan_deep", sample_shape, self.attention)
        start, *widths = (self.channels * factor for factor in GENERATOR_WIDTHS[side])
        latent = keras.Input((self.latent_dim,), name="latent")
        label, kernel = label_input(classes, "biggan_deep", optional=False), kernel_start(self.initializer)
        embedding = ganlab.layers.LabelEmbedding(
            self.embedding_dim, kernel_initializer=kernel, constrained=False, name="label_embedding"
        )(label)
        vector = keras.layers.Concatenate(name="with_label")([embedding, latent])
        x = keras.layers.Dense(BASE**2 * start, kernel_initializer=kernel, name="project")(vector)
        x = keras.layers.Reshape((BASE, BASE, start), name="base")(x)
        for i, width in enumerate(widths, start=1):
            for j in range(1, self.blocks + 1):
                # The first blocks of a stage keep its channels, all but the last its side.
                out, name = (x.shape[-1] if j == 1 else width), f"stage_{i}_block_{j}"
                x = self._up_block(x, out, name, vector, double=j == self.blocks)
            x = attended(x, self.attention)
        return keras.Model([latent, label], drawn(x, sample_shape[2], kernel), name="generator")

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model of `(n, side, side, c)` and labels to `(n, 1)`, float32."""
        side = labelled_side("biggan_deep", sample_shape, self.attention)
        first, *widths = (self.channels * factor for factor in CRITIC_WIDTHS[side])
        # All stages pool until the side is 4, but at 32 pixels: there two of three do.
        pooled = 2 if side == 32 else len(widths)
        sample, label = keras.Input(sample_shape, name="sample"), label_input(classes, "biggan_deep", optional=False)
        x = self._convolved(sample, first, "first_convolution", 3)
        for i, width in enumerate(widths, start=1):
            for j in range(1, self.blocks + 1):
                x = self._down_block(x, width, f"stage_{i}_block_{j}", pool=i <= pooled and j == 1)
            x = attended(x, self.attention) if i <= pooled else x
        return keras.Model([sample, label], scored(summed(x), label, "projection"), name="critic")

    def _up_block(self, x: Any, width: int, name: str, vector: Any, *, double: bool) -> Any:
        shortcut = x if x.shape[-1] == width else x[..., :width]
        hidden = x.shape[-1] // _BOTTLENECK

        def rectified(x: Any, i: int) -> Any:
            x = normalize_by_vector(x, vector, kernel_start(self.initializer), f"{name}_{i}_normalization")
            return keras.layers.ReLU(name=f"{name}_{i}_activation")(x)

        x = self._convolved(rectified(x, 1), hidden, f"{name}_convolution_1", 1)
        x = rectified(x, 2)
        if double:
            x = keras.layers.UpSampling2D(name=f"{name}_upsampled")(x)
            shortcut = keras.layers.UpSampling2D(name=f"{name}_shortcut_upsampled")(shortcut)
        x = self._convolved(x, hidden, f"{name}_convolution_2", 3)
        x = self._convolved(rectified(x, 3), hidden, f"{name}_convolution_3", 3)
        x = self._convolved(rectified(x, 4), width, f"{name}_convolution_4", 1)
        return keras.layers.Add(name=name)([shortcut, x])

    def _down_block(self, x: Any, width: int, name: str, *, pool: bool) -> Any:
        shortcut = keras.layers.AveragePooling2D(2, name=f"{name}_shortcut_pooled")(x) if pool else x
        if added := width - x.shape[-1]:
            more = self._convolved(shortcut, added, f"{name}_shortcut", 1)
            shortcut = keras.layers.Concatenate(name=f"{name}_shortcut_widened")([shortcut, more])
        for i, side in enumerate((1, 3, 3), start=1):
            x = keras.layers.ReLU(name=f"{name}_{i}_activation")(x)
            x = self._convolved(x, width // _BOTTLENECK, f"{name}_convolution_{i}", side)
        x = keras.layers.ReLU(name=f"{name}_4_activation")(x)
        x = keras.layers.AveragePooling2D(2, name=f"{name}_pooled")(x) if pool else x
        x = self._convolved(x, width, f"{name}_convolution_4", 1)
        return keras.layers.Add(name=name)([shortcut, x])

    def _convolved(self, x: Any, width: int, name: str, side: int) -> Any:
        start = kernel_start(self.initializer)
        return keras.layers.Conv2D(width, side, padding="same", kernel_initializer=start, name=name)(x)
