"""Networks of pix2pix: a U-Net from image to image, and a critic of patches that sees both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab.lazy import keras
from ganlab_builtin.architectures.conditioning import given_input
from ganlab_builtin.architectures.parts import (
    GENERATOR_NORMALIZATIONS,
    check_choice,
    drop,
    image_sides,
    normalize,
    to_pixels,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_RULE = "images whose sides are multiples of 2 ** depth"
_MOST = 8  # times `channels`, as in the paper


class UNet(ganlab.Architecture):
    """A U-Net that makes an image from its source, and PatchGAN, which scores the pair by patches.

    Isola et al., "Image-to-image translation with conditional adversarial networks" (2017), section 3.2 and appendix
    6.1: convolutions of 4 x 4 with stride 2 on the way in and out, leaky and plain rectifiers, each layer of the way
    out seeing its counterpart's output on the way in. The noise of the paper is dropout in the generator; here it is
    drawn in training alone. The score is the mean over patches, `patches` the score of each, `(n, rows, columns, 1)`.
    """

    latent_dim = 0

    def __init__(
        self,
        *,
        channels: Annotated[int, Ge(1)] = 64,
        depth: Annotated[int, Ge(1), Le(1000)] = 4,
        patch_depth: Annotated[int, Ge(1), Le(1000)] = 2,
        normalization: Literal["batch", "layer", "none"] = "layer",
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            channels: Channels of the first layer; each further one has twice as many, up to eight times.
            depth: How often the generator halves the image.
            patch_depth: How often the critic does, before two convolutions of stride 1.
            normalization: The generator's: "batch", "layer", or "none".
            dropout: The probability of dropping a unit in the generator's inner half on the way out; the paper has 0.5.
        """
        check_choice("unet.normalization", normalization, GENERATOR_NORMALIZATIONS)
        self.channels, self.depth, self.patch_depth = channels, depth, patch_depth
        self.normalization, self.dropout = normalization, dropout

    def generator(self, sample_shape: tuple[int, ...], source_shape: tuple[int, ...] | None = None) -> keras.Model:
        """A model `(n, *source_shape) -> (n, *sample_shape)` in [-1, 1], float32."""
        source = self._source(sample_shape, source_shape)
        x, ways = source, []
        for i in range(self.depth):
            x = keras.layers.Conv2D(self._width(i), 4, strides=2, padding="same", name=f"in_{i}")(x)
            x = normalize(x, self.normalization if 0 < i < self.depth - 1 else "none", f"in_{i}_norm")
            x = keras.layers.LeakyReLU(negative_slope=0.2, name=f"in_{i}_relu")(x)
            ways.append(x)
        for i in reversed(range(self.depth - 1)):
            x = keras.layers.Conv2DTranspose(self._width(i), 4, strides=2, padding="same", name=f"out_{i}")(x)
            x = normalize(x, self.normalization, f"out_{i}_norm")
            x = drop(x, self.dropout if 2 * i >= self.depth - 1 else 0.0, f"out_{i}_dropout")
            x = keras.layers.Activation("relu", name=f"out_{i}_relu")(x)
            x = keras.layers.Concatenate(name=f"skip_{i}")([x, ways[i]])
        last = keras.layers.Conv2DTranspose(sample_shape[-1], 4, strides=2, padding="same", name="image")
        return keras.Model(source, to_pixels(last(x)), name="generator")

    def critic(self, sample_shape: tuple[int, ...], source_shape: tuple[int, ...] | None = None) -> keras.Model:
        """A model `[(n, *sample_shape), (n, *source_shape)]` to a dict of `score`, `(n, 1)`, and `patches`."""
        ends = [keras.Input(sample_shape, name="sample"), self._source(sample_shape, source_shape)]
        x: Any = keras.layers.Concatenate(name="pair")(ends)
        for i in range(self.patch_depth + 1):
            strides = 2 if i < self.patch_depth else 1
            x = keras.layers.Conv2D(self._width(i), 4, strides=strides, padding="same", name=f"conv_{i}")(x)
            x = keras.layers.LeakyReLU(negative_slope=0.2, name=f"relu_{i}")(x)
        patches = keras.layers.Conv2D(1, 4, padding="same", dtype="float32", name="patches")(x)
        score = keras.layers.GlobalAveragePooling2D(dtype="float32", name="score")(patches)
        outputs: Mapping[str, Any] = {"score": score, "patches": patches}
        return keras.Model(ends, outputs, name="critic")

    def _width(self, layer: int) -> int:
        return self.channels * min(2**layer, _MOST)

    def _source(self, sample_shape: tuple[int, ...], source_shape: tuple[int, ...] | None) -> Any:
        sides = image_sides("unet", sample_shape, _RULE)
        source = given_input("source", source_shape, "architectures.unet")
        if any(side % 2**self.depth for side in sides) or source_shape is None or source_shape[:2] != sides:
            raise ganlab.IncompatibleError(
                f"architectures.unet makes {_RULE} from images of the same sides, and the dataset has {sample_shape} "
                f"and sources {source_shape}. Lower architectures.unet.depth = {self.depth}, or use other data."
            )
        return source
