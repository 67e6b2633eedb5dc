"""Another architecture's networks, the critic with a number beside each example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ganlab
from ganlab.lazy import keras
from ganlab_builtin.architectures.around import Around

if TYPE_CHECKING:
    from typing import Any


class WithSide(Around):
    """The networks of another architecture, whose critic also takes a number that an augmentation gives.

    The number is one more coordinate of a vector, or one more channel of an image, the same at each pixel; so any
    architecture will do. augmentations.diffusion gives `t`.
    """

    def __init__(self, *, architecture: ganlab.Architecture, side: str = "t") -> None:
        """Chooses the networks and the number.

        Args:
            architecture: The architecture that makes the networks.
            side: The name of the number among the augmentation's side outputs.
        """
        super().__init__(architecture)
        if not side.isidentifier():
            raise ganlab.ConfigError(f"architectures.with_side.side = {side!r} must be an identifier, for example 't'.")
        self.side = side

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model of `(n, *sample_shape)`, of the labels if the architecture is conditional, and of `(n,)` numbers."""
        *places, channels = sample_shape
        inner = super().critic((*places, channels + 1), classes)
        _, *labels = [keras.Input(x.shape[1:], dtype=x.dtype, name=x.name) for x in inner.inputs]
        sample, side = keras.Input(sample_shape, name="sample"), keras.Input((), name=self.side)
        joined: Any = keras.layers.Reshape((1,) * len(sample_shape), name=f"{self.side}_of_pixel")(side)
        for axis, size in enumerate(places, start=1):
            joined = keras.ops.repeat(joined, size, axis=axis)
        joined = keras.layers.Concatenate(name=f"with_{self.side}")([sample, joined])
        return keras.Model([sample, *labels, side], inner([joined, *labels] if labels else joined))
