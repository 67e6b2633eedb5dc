"""BigGAN's residual networks, for labelled images of 32 to 256 pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import keras
from ganlab_builtin.architectures.conditioning import label_input, normalize_by_vector, scored
from ganlab_builtin.architectures.parts import (
    check_choice,
    kernel_start,
    normalize,
    square_side,
    to_pixels,
    unsupported,
)
from ganlab_builtin.architectures.residual_blocks import BlockStyle, down_block, first_block, up_block

BASE = 4
_RULE = "square images (side, side, channels) of side 32, 64, 128 or 256"
# Channels over `channels`: the generator's from its first feature maps on, the critic's by block.
GENERATOR_WIDTHS = {
    32: (4, 4, 4, 4),
    64: (16, 16, 8, 4, 2),
    128: (16, 16, 8, 4, 2, 1),
    256: (16, 16, 8, 8, 4, 2, 1),
}
CRITIC_WIDTHS = {32: (4, 4, 4, 4), 64: (1, 2, 4, 8, 16), 128: (1, 2, 4, 8, 16, 16), 256: (1, 2, 4, 8, 8, 16, 16)}


class BigGAN(ganlab.Architecture):
    """A residual generator and critic for labelled square images of 32, 64, 128 or 256 pixels.

    Brock, Donahue and Simonyan, "Large scale GAN training for high fidelity natural image synthesis" (2019), appendix
    B, with the widths of the authors' program at each side. A part of the latent vector begins the generator; each
    block normalizes with gains and biases that are linear in another part beside an embedding of the label, which all
    blocks share. The critic adds up its last features and projects them on its own embedding of the label. Both have
    a self-attention layer. Constrain both by `spectral_norm`; the shared embedding is left alone by constraints.
    """

    conditional = True

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 120,
        channels: Annotated[int, Ge(1)] = 96,
        embedding_dim: Annotated[int, Ge(1)] = 128,
        hierarchical: bool = True,
        attention: Annotated[int, Ge(8)] | None = None,
        initializer: Literal["orthogonal", "xavier", "normal"] = "orthogonal",
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input; if `hierarchical`, a multiple of its number of parts: 4, 5,
                6 and 7 for images of 32, 64, 128 and 256 pixels.
            channels: The width that all others are multiples of: 96 in the paper.
            embedding_dim: The length of the embedding that the generator's blocks share.
            hierarchical: Whether each block has a part of the latent vector of its own, or only the first layer has it.
            attention: The side of the feature maps with self-attention in both networks, 8 or more and at most half of
                the image's; None for no attention. The paper's is 64, for images of 128 pixels or more.
            initializer: How kernels start, as for `architectures.resnet`. Attention and the projection keep their own.
        """
        check_choice("biggan.initializer", initializer, ("orthogonal", "xavier", "normal"))
        self.latent_dim, self.channels, self.embedding_dim = latent_dim, channels, embedding_dim
        self.hierarchical, self.attention = hierarchical, attention
        self._style = BlockStyle(normalization="none", initializer=initializer, all_biases=True)

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model of `(n, latent_dim)` and labels to `(n, side, side, c)` in [-1, 1], float32."""
        side = labelled_side("biggan", sample_shape, self.attention)
        start, *widths = (self.channels * factor for factor in GENERATOR_WIDTHS[side])
        latent, label = keras.Input((self.latent_dim,), name="latent"), label_input(classes, "biggan", optional=False)
        kernel = kernel_start(self._style.initializer)
        embedding = ganlab.layers.LabelEmbedding(
            self.embedding_dim, kernel_initializer=kernel, constrained=False, name="label_embedding"
        )(label)
        first, *vectors = self._parts(latent, embedding, len(widths))
        x = keras.layers.Dense(BASE**2 * start, kernel_initializer=kernel, name="project")(first)
        x = keras.layers.Reshape((BASE, BASE, start), name="base")(x)
        for i, (width, vector) in enumerate(zip(widths, vectors, strict=True), start=1):
            x = up_block(x, width, f"block_{i}", self._style, _by(vector, kernel))
            x = attended(x, self.attention)
        return keras.Model([latent, label], drawn(x, sample_shape[2], kernel), name="generator")

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model of `(n, side, side, c)` and labels to `(n, 1)`, float32."""
        side = labelled_side("biggan", sample_shape, self.attention)
        widths = [self.channels * factor for factor in CRITIC_WIDTHS[side]]
        # All blocks pool until the side is 4, but at 32 pixels: there two do.
        pooled = 2 if side == 32 else len(widths) - 1
        sample, label = keras.Input(sample_shape, name="sample"), label_input(classes, "biggan", optional=False)
        x = attended(first_block(sample, widths[0], "block_1", self._style), self.attention)
        for i, width in enumerate(widths[1:], start=2):
            x = down_block(x, width, f"block_{i}", self._style, pool=i <= pooled)
            x = attended(x, self.attention) if i <= pooled else x
        return keras.Model([sample, label], scored(summed(x), label, "projection"), name="critic")

    def _parts(self, latent: Any, embedding: Any, blocks: int) -> list[Any]:
        """The first layer's input, and the vector of each block."""
        if not self.hierarchical:
            return [latent, *([embedding] * blocks)]
        length, rest = divmod(self.latent_dim, blocks + 1)
        if rest:
            raise ganlab.IncompatibleError(
                f"architectures.biggan.latent_dim = {self.latent_dim} must be a multiple of {blocks + 1}, a part for "
                f"the first layer and one for each of {blocks} blocks. Use {length * (blocks + 1) or blocks + 1}, or "
                "hierarchical = False."
            )
        parts = [latent[:, i * length : (i + 1) * length] for i in range(blocks + 1)]
        return [parts[0], *(keras.layers.Concatenate()([embedding, part]) for part in parts[1:])]


def attended(x: Any, side: int | None) -> Any:
    """Self-attention behind a block, where its feature maps have the chosen side."""
    return ganlab.layers.SelfAttention(name="attention")(x) if x.shape[1] == side else x


def labelled_side(name: str, sample_shape: tuple[int, ...], attention: int | None) -> int:
    """The images' side; refuses others than square ones, of a side that has feature maps of the side `attention`."""
    side = square_side(name, sample_shape, _RULE)
    if side not in GENERATOR_WIDTHS:
        raise unsupported(name, sample_shape, _RULE)
    # The critic's feature maps of 32 pixels are of 16 and 8, the generator's of 8 and 16.
    sides = [s for s in (8, 16, 32, 64, 128) if s < side]
    if attention not in (None, *sides):
        raise ganlab.ConfigError(
            f"architectures.{name}.attention = {attention} must be the side of feature maps of both networks: "
            f"{', '.join(map(str, sides))} for images of {side} pixels, or None."
        )
    return side


def summed(x: Any) -> Any:
    """The critic's last features: rectified, and added up over pixels, `(n, channels)` float32."""
    x = keras.layers.ReLU(name="last_activation")(x)
    pixels = x.shape[1] * x.shape[2]
    x = keras.layers.GlobalAveragePooling2D(dtype="float32", name="pool")(x)
    return keras.layers.Rescaling(float(pixels), dtype="float32", name="sum")(x)


def drawn(x: Any, channels: int, start: Any) -> Any:
    """The generator's end: normalized and rectified features, as pixels in [-1, 1], float32."""
    x = keras.layers.ReLU(name="last_activation")(normalize(x, "batch", "last_normalization"))
    last = keras.layers.Conv2D(channels, 3, padding="same", kernel_initializer=start, name="last_convolution")
    return to_pixels(last(x))


def _by(vector: Any, start: Any) -> Callable[[Any, str], Any]:
    return lambda x, name: normalize_by_vector(x, vector, start, name)
