"""Networks that grow from small images to larger ones."""

from __future__ import annotations

from typing import Annotated, Any

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import keras
from ganlab_builtin.architectures.parts import to_score, unsupported


class Growing(ganlab.Architecture):
    """A generator and a critic of images to which one resolution after another is faded in.

    Karras, Aila, Laine and Lehtinen, "Progressive growing of GANs for improved quality, stability, and variation"
    (2018), section 2 and figure 2, by one network whose `grown` follows a schedule: the k-th doubling has the share
    `min(1, max(0, grown - k))` of its resolution. What the share leaves out gets no gradient, but is computed.
    """

    scheduled = ("grown",)

    def __init__(
        self,
        *,
        grown: Annotated[float, Ge(0)] = 1.0,
        doublings: Annotated[int, Ge(1)] = 1,
        channels: Annotated[int, Ge(1)] = 32,
        latent_dim: Annotated[int, Ge(1)] = 32,
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            grown: How many doublings are faded in: a schedule, from 0 to `doublings`.
            doublings: How often the smallest resolution is doubled to that of the images.
            channels: Channels of every layer.
            latent_dim: The length of the generator's input.
        """
        self.grown, self.doublings, self.channels, self.latent_dim = grown, doublings, channels, latent_dim

    def generator(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, latent_dim) -> (n, *sample_shape)` of both inputs, pixels in [-1, 1], float32."""
        height, width, colours = self._smallest(sample_shape)
        latent, grown = keras.Input((self.latent_dim,), name="latent"), keras.Input((), name="grown")
        x = keras.layers.Dense(height * width * self.channels, activation="leaky_relu", name="project")(latent)
        x = keras.layers.Reshape((height, width, self.channels), name="base")(x)
        image = keras.layers.Conv2D(colours, 1, name="to_pixels_0")(x)
        for k in range(self.doublings):
            x = self._convolved(keras.layers.UpSampling2D(name=f"up_{k + 1}")(x), k + 1)
            new = keras.layers.Conv2D(colours, 1, name=f"to_pixels_{k + 1}")(x)
            image = _faded(grown, k, keras.layers.UpSampling2D(name=f"old_{k + 1}")(image), new)
        return keras.Model([latent, grown], keras.layers.Activation("tanh", dtype="float32", name="pixels")(image))

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, *sample_shape) -> (n, 1)` of both inputs, float32."""
        self._smallest(sample_shape)
        image, grown = keras.Input(sample_shape, name="sample"), keras.Input((), name="grown")
        seen, x = image, self._from_pixels(image, self.doublings)
        for k in reversed(range(self.doublings)):
            x = keras.layers.AveragePooling2D(2, name=f"down_{k + 1}")(self._convolved(x, k + 1))
            seen = keras.layers.AveragePooling2D(2, name=f"old_{k + 1}")(seen)
            x = _faded(grown, k, self._from_pixels(seen, k), x)
        return keras.Model([image, grown], to_score(keras.layers.Flatten(name="flat")(self._convolved(x, 0))))

    def _convolved(self, x: Any, k: int) -> Any:
        name = f"convolution_{k}"
        return keras.layers.Conv2D(self.channels, 3, padding="same", activation="leaky_relu", name=name)(x)

    def _from_pixels(self, x: Any, k: int) -> Any:
        return keras.layers.Conv2D(self.channels, 1, activation="leaky_relu", name=f"from_pixels_{k}")(x)

    def _smallest(self, sample_shape: tuple[int, ...]) -> tuple[int, ...]:
        if len(sample_shape) != 3 or any(side % 2**self.doublings for side in sample_shape[:2]):
            raise unsupported("growing", sample_shape, f"images of sides that {2**self.doublings} divides")
        return *(side // 2**self.doublings for side in sample_shape[:2]), sample_shape[2]


def _faded(grown: Any, k: int, old: Any, new: Any) -> Any:
    share = keras.ops.reshape(keras.ops.clip(grown - float(k), 0.0, 1.0), (-1, 1, 1, 1))
    return old + share * (new - old)
