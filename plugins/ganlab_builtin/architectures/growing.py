"""Networks that grow from small images to larger ones."""

from __future__ import annotations

from typing import Annotated, Any

import ganlab
from ganlab.bounds import Ge, Le
from ganlab.lazy import keras
from ganlab_builtin.architectures.parts import to_pixels, to_score, unsupported


class Growing(ganlab.Architecture):
    """A generator and a critic of images to which one resolution after another is faded in.

    Karras, Aila, Laine and Lehtinen, "Progressive growing of GANs for improved quality, stability, and variation"
    (2018), section 2 and figure 2. Here the networks are whole from the start, and `grown` follows a schedule: doubling
    k of the resolution, from 0, has the share `min(1, max(0, grown - k))`. Where that is 0, its layers learn nothing.
    """

    latent_dim, scheduled = 32, ("grown",)

    def __init__(
        self,
        *,
        grown: Annotated[float, Ge(0)] = 1.0,
        doublings: Annotated[int, Ge(1), Le(16)] = 1,
        channels: Annotated[int, Ge(1)] = 32,
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            grown: How many doublings are faded in; it may follow a schedule.
            doublings: How often the lowest resolution is doubled to that of the images.
            channels: Channels of every layer.
        """
        self.grown, self.doublings, self.channels = grown, doublings, channels

    def generator(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, 32), (n,) -> (n, *sample_shape)`: of latent vectors and `grown`."""
        *small, colours = self._lowest(sample_shape)
        latent, grown = keras.Input((self.latent_dim,), name="latent"), keras.Input((), name="grown")
        x = keras.layers.Dense(small[0] * small[1] * self.channels, activation="leaky_relu", name="project")(latent)
        x = keras.layers.Reshape((*small, self.channels), name="base")(x)
        image = keras.layers.Conv2D(colours, 1, name="to_pixels_0")(x)
        for k in range(self.doublings):
            old, x = (keras.layers.UpSampling2D(2)(each) for each in (image, x))
            x = self._layer(x, 3, f"convolution_{k}")
            image = _faded(grown - k, old, keras.layers.Conv2D(colours, 1, name=f"to_pixels_{k + 1}")(x))
        return keras.Model([latent, grown], to_pixels(image), name="generator")

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, *sample_shape), (n,) -> (n, 1)`: of images and `grown`."""
        self._lowest(sample_shape)
        image, grown = keras.Input(sample_shape, name="sample"), keras.Input((), name="grown")
        seen, x = image, self._layer(image, 1, f"from_pixels_{self.doublings}")
        for k in reversed(range(self.doublings)):
            x = self._layer(x, 3, f"convolution_{k}")
            seen, x = (keras.layers.AveragePooling2D(2)(each) for each in (seen, x))
            x = _faded(grown - k, self._layer(seen, 1, f"from_pixels_{k}"), x)
        x = keras.layers.Flatten()(self._layer(x, 3, "base"))
        return keras.Model([image, grown], to_score(x), name="critic")

    def _layer(self, x: Any, size: int, name: str) -> Any:
        return keras.layers.Conv2D(self.channels, size, padding="same", activation="leaky_relu", name=name)(x)

    def _lowest(self, sample_shape: tuple[int, ...]) -> tuple[int, ...]:
        factor = 2**self.doublings
        if len(sample_shape) != 3 or any(side % factor for side in sample_shape[:2]):
            raise unsupported("growing", sample_shape, f"images whose sides {factor} divides")
        return sample_shape[0] // factor, sample_shape[1] // factor, sample_shape[2]


def _faded(grown: Any, old: Any, new: Any) -> Any:
    share = keras.ops.reshape(keras.ops.clip(grown, 0.0, 1.0), (-1, 1, 1, 1))
    return old + share * (new - old)
