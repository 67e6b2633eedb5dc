"""Another architecture whose critic sees pixels from 0 to 1."""

from __future__ import annotations

import ganlab
from ganlab.lazy import keras
from ganlab_builtin.architectures.around import Around


class UnitPixels(Around):
    """The networks of another architecture, whose critic sees `(x + 1) / 2` in place of images x in [-1, 1].

    Programs that keep images in [0, 1] have such critics, and zeros around an image are then black. Constraints on
    slopes still count them for x, in [-1, 1], where they are half of those in [0, 1].
    """

    def __init__(self, *, architecture: ganlab.Architecture) -> None:
        """Keeps the architecture.

        Args:
            architecture: Whose networks these are.
        """
        super().__init__(architecture)

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """The other architecture's critic behind the map."""
        inner = super().critic(sample_shape, classes)
        sample, *rest = [keras.Input(x.shape[1:], dtype=x.dtype, name=x.name) for x in inner.inputs]
        rescaled = keras.layers.Rescaling(0.5, 0.5, name="unit_pixels")(sample)
        return keras.Model([sample, *rest] if rest else sample, inner([rescaled, *rest] if rest else rescaled))
