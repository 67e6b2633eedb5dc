"""Residual networks, for images of 32 pixels or more."""

from __future__ import annotations

import functools
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
    INITIALIZERS,
    check_choice,
    image_sides,
    kernel_start,
    normalize,
    to_pixels,
    to_score,
    unsupported,
)
from ganlab_builtin.architectures.residual_blocks import BlockStyle, down_block, first_block, up_block

_SMALLEST, _WIDEST = 32, 16
_BASES = (4, 5, 6, 7)
_RULE = (
    "images (height, width, channels) whose smaller side is 32, 40, 48, 56, or one of these times a power of two, and "
    "whose larger side can be halved as often"
)


class ResNet(ganlab.Architecture):
    """A residual generator and critic for images of base * 2**k pixels, base 4 to 7, k at least 3.

    That is the rule for the smaller side of images that are not square; the larger one has to be a multiple of 2**k.

    Blocks of two 3x3 convolutions beside a shortcut, average pooling. At 32 pixels the CIFAR-10 networks of Gulrajani
    et al., "Improved Training of Wasserstein GANs" (2017), appendix: equally wide throughout, two critic blocks that
    pool and two that do not. Above that the pyramids of Miyato et al., "Spectral Normalization for Generative
    Adversarial Networks" (2018), appendix, in the authors' code: channels double as sides halve, from `channels` to at
    most 16 times that, from the base in the generator and down to it in the critic, or to half of it below 128 pixels.
    The critic has one more block that does not pool, but for 64 to 112 pixels.

    With `labels` the generator's blocks normalize with gains and biases of the label, as those of Miyato and Koyama,
    "cGANs with projection discriminator" (2018). With `attention` both networks have a self-attention layer, as those
    of Zhang et al., "Self-attention generative adversarial networks" (2019).
    """

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 128,
        channels: Annotated[int, Ge(1)] | None = None,
        generator_channels: Annotated[int, Ge(1)] | None = None,
        critic_channels: Annotated[int, Ge(1)] | None = None,
        generator_normalization: Literal["batch", "layer", "none"] = "batch",
        critic_normalization: Literal["none", "layer"] = "none",
        labels: Literal["none", "projection", "concatenation", "classifier"] = "none",
        attention: Annotated[int, Ge(8)] | None = None,
        upsampling: Literal["nearest", "bilinear"] = "nearest",
        pooling: Literal["mean", "sum"] = "mean",
        initializer: Literal["he", "he_normal", "xavier", "normal", "orthogonal"] = "he",
        biases: Literal["needed", "all"] = "needed",
        critic_hidden: Literal["output", "input"] = "output",
        rectified_shortcuts: bool = False,
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input.
            channels: Channels of the largest feature maps; None for the papers' 128 at 32 pixels and 64 above.
            generator_channels: The generator's alone; None for `channels`.
            critic_channels: The critic's alone; None for `channels`.
            generator_normalization: "batch" (over the global batch), "layer" (within each example) or "none".
            critic_normalization: "none" or "layer". Batch normalization would couple examples.
            labels: "none", or how the critic of a conditional pair uses a label: "projection" adds the product of its
                embedding and the last features, "concatenation" takes a plane of pixels for each class as further
                channels, "classifier" returns `logits` beside the score and leaves the label to the loss. The
                generator's normalizations have a gain and a bias for each class; with the normalization "none" it takes
                an embedding of the label beside its latent vector.
            attention: The smaller side of the feature maps with self-attention in both networks, 8 or more and at most
                half of the image's; None for no attention. The paper's is 32, for images of 128 pixels.
            upsampling: How the generator doubles sides: "nearest", or "bilinear" between the centres of pixels.
            pooling: The critic's last features are the "mean" over pixels or, as in Miyato et al., the "sum".
            initializer: How kernels start. "he" is uniform as in He et al. (2015) in the 3x3 convolutions of blocks and
                as in Glorot and Bengio (2010) elsewhere; "he_normal" is normal as in He et al. throughout; "xavier" is
                as in Glorot and Bengio throughout, with twice the variance in those convolutions; "normal" has the
                deviation 0.02 of Radford et al. (2016); "orthogonal" is that of Brock et al. (2019). Attention,
                embeddings of labels and the projection keep their own.
            biases: "needed" leaves out biases of shortcuts and those that a batch normalization would take out again;
                "all" has them, as other programs do.
            critic_hidden: The channels between the two convolutions of a critic's block: those of its "output", or of
                its "input" as in the authors' code. Equal at 32 pixels.
            rectified_shortcuts: The shortcuts of the critic's blocks after the first take its input behind the ReLU,
                as in programs whose ReLU overwrites its input.
        """
        check_choice("resnet.generator_normalization", generator_normalization, GENERATOR_NORMALIZATIONS)
        check_choice("resnet.critic_normalization", critic_normalization, CRITIC_NORMALIZATIONS)
        check_choice("resnet.labels", labels, LABELS)
        check_choice("resnet.upsampling", upsampling, ("nearest", "bilinear"))
        check_choice("resnet.pooling", pooling, ("mean", "sum"))
        check_choice("resnet.initializer", initializer, INITIALIZERS)
        check_choice("resnet.biases", biases, ("needed", "all"))
        check_choice("resnet.critic_hidden", critic_hidden, ("output", "input"))
        self.latent_dim, self.labels, self.attention, self.pooling = latent_dim, labels, attention, pooling
        self.generator_channels, self.critic_channels = generator_channels or channels, critic_channels or channels
        self._generator_style = BlockStyle(
            normalization=generator_normalization,
            initializer=initializer,
            all_biases=biases == "all",
            upsampling=upsampling,
        )
        self._critic_style = BlockStyle(
            normalization=critic_normalization,
            initializer=initializer,
            all_biases=biases == "all",
            hidden_as_input=critic_hidden == "input",
            rectified_shortcuts=rectified_shortcuts,
        )
        self.conditional = labels != "none"

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, latent_dim) -> (n, height, width, c)` in [-1, 1], float32; a conditional one takes labels."""
        (height, width), halvings = self._sides(sample_shape)
        style = self._generator_style
        start, *widths = _widths(self.generator_channels, min(height, width), halvings)[::-1]
        latent = keras.Input((self.latent_dim,), name="latent")
        inputs, x, label = latent, latent, None
        if self.conditional:
            label = label_input(classes, "resnet")
            inputs = [latent, label]
            if style.normalization == "none":
                x = embedded(latent, label)
        first = kernel_start(style.initializer)
        x = keras.layers.Dense(height * width * start, kernel_initializer=first, name="project")(x)
        x = keras.layers.Reshape((height, width, start), name="base")(x)
        by_label = functools.partial(normalize_by_label, label=label, kind=style.normalization)
        for i, width in enumerate(widths, start=1):
            x = up_block(x, width, f"block_{i}", style, lambda x, name: by_label(x, name=name))
            x = self._attend(x)
        x = normalize(x, style.normalization, "last_normalization")
        x = keras.layers.ReLU(name="last_activation")(x)
        last = kernel_start(style.initializer)
        x = keras.layers.Conv2D(sample_shape[2], 3, padding="same", kernel_initializer=last, name="last_convolution")(x)
        return keras.Model(inputs, to_pixels(x), name="generator")

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, height, width, c) -> (n, 1)`, float32; a conditional one takes labels too."""
        base, halvings = self._sides(sample_shape)
        style = self._critic_style
        widths, pooled = _critic_blocks(self.critic_channels, min(base), halvings)
        x = sample = keras.Input(sample_shape, name="sample")
        label = label_input(classes, "resnet") if self.conditional else None
        if self.labels == "concatenation":
            x = with_planes(sample, label)
        x = self._attend(first_block(x, widths[0], "block_1", style))
        for i, width in enumerate(widths[1:], start=2):
            pool = i <= pooled
            x = down_block(x, width, f"block_{i}", style, pool=pool)
            x = self._attend(x) if pool else x
        x = normalize(x, style.normalization, "last_normalization", critic=True)
        x = keras.layers.ReLU(name="last_activation")(x)
        pixels = x.shape[1] * x.shape[2]
        x = keras.layers.GlobalAveragePooling2D(dtype="float32", name="pool")(x)
        if self.pooling == "sum":
            x = keras.layers.Rescaling(float(pixels), dtype="float32", name="sum")(x)
        start = kernel_start(style.initializer)
        if label is None:
            return keras.Model(sample, to_score(x, start), name="critic")
        return keras.Model([sample, label], scored(x, label, self.labels, start), name="critic")

    def _attend(self, x: Any) -> Any:
        """Self-attention behind a block, where its feature maps have the chosen side."""
        return ganlab.layers.SelfAttention(name="attention")(x) if min(x.shape[1:3]) == self.attention else x

    def _sides(self, sample_shape: tuple[int, ...]) -> tuple[tuple[int, int], int]:
        """The height and width of the generator's smallest feature maps, and how often the image's are twice these."""
        height, width = image_sides("resnet", sample_shape, _RULE)
        side = min(height, width)
        halvings = max(0, side.bit_length() - 3)  # 3 bits: 4 to 7
        base = side >> halvings
        if side < _SMALLEST or base not in _BASES or height % (1 << halvings) or width % (1 << halvings):
            raise unsupported("resnet", sample_shape, _RULE)
        sides = [base << k for k in range(1, halvings)]
        if self.attention not in (None, *sides):
            raise ganlab.ConfigError(
                f"architectures.resnet.attention = {self.attention} must be the side of feature maps of both networks: "
                f"{', '.join(map(str, sides))} for images of {side} pixels, or None."
            )
        return (height >> halvings, width >> halvings), halvings


def _is_flat(base: int, halvings: int) -> bool:
    """Whether all feature maps have equally many channels: at 32 pixels."""
    return base << halvings == _SMALLEST


def _widths(channels: int | None, base: int, halvings: int) -> list[int]:
    """Channels of feature maps from the image's side down to the base; as many doublings as halvings, capped."""
    if _is_flat(base, halvings):
        return [channels or 128] * (halvings + 1)
    return [(channels or 64) * min(2**i, _WIDEST) for i in range(halvings + 1)]


def _critic_blocks(channels: int | None, base: int, halvings: int) -> tuple[list[int], int]:
    """The channels of the critic's blocks, and how many of these pool: 48 pixels to 3, 64 to 2, 128 to 4."""
    if _is_flat(base, halvings):
        return _widths(channels, base, halvings), 2
    return _widths(channels, base, max(4, halvings)), halvings + 1 if halvings < 5 else halvings
