"""Another architecture whose critic sees pixels from 0 to 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ganlab
from ganlab import functional
from ganlab.lazy import keras

if TYPE_CHECKING:
    import tensorflow


class UnitPixels(ganlab.Architecture):
    """The networks of another architecture, whose critic sees `(x + 1) / 2` in place of images x in [-1, 1].

    Programs that keep images in [0, 1] have such critics, and zeros around an image are then black. Constraints on
    slopes still count them for x, in [-1, 1], where they are half of those in [0, 1].
    """

    def __init__(self, *, architecture: ganlab.Architecture) -> None:
        """Keeps the architecture.

        Args:
            architecture: Whose networks these are.
        """
        self._architecture = architecture
        self.latent_dim, self.conditional = architecture.latent_dim, architecture.conditional

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """The other architecture's generator."""
        return functional.call(self._architecture.generator, sample_shape, classes=classes)

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """The other architecture's critic behind the map."""
        inner = functional.call(self._architecture.critic, sample_shape, classes=classes)
        sample, *rest = [keras.Input(x.shape[1:], dtype=x.dtype, name=x.name) for x in inner.inputs]
        rescaled = keras.layers.Rescaling(0.5, 0.5, name="unit_pixels")(sample)
        return keras.Model([sample, *rest] if rest else sample, inner([rescaled, *rest] if rest else rescaled))

    def coupled(self, numbers: tensorflow.Tensor, seed: int) -> tensorflow.Tensor | None:
        """The other architecture's, if any."""
        return self._architecture.coupled(numbers, seed)
