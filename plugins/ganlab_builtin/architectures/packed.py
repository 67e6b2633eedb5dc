"""Another architecture whose critic sees several examples at once."""

from __future__ import annotations

from typing import Annotated

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import keras
from ganlab_builtin.architectures.around import Around


class Packed(Around):
    """The networks of another architecture, whose critic scores packs of examples rather than single ones.

    Lin, Khetan, Fanti and Oh, "PacGAN: The power of two samples in generative adversarial networks" (2018), section 2:
    samples that lack variety are easier told from data in packs. Here `packing` examples that follow each other in a
    batch are a pack, their channels or coordinates side by side as in section 4.2, and each gets the score of its pack;
    the paper's batch of n packs is one of `packing * n` examples.

    Since the scores of a pack are one number, their sum rises `packing` times as fast in an example as that score does:
    a constraint on slopes at examples measures the larger figure, and is to be set with that in mind.
    """

    def __init__(self, *, architecture: ganlab.Architecture, packing: Annotated[int, Ge(1)] = 2) -> None:
        """Keeps the architecture.

        Args:
            architecture: Whose networks these are; not a conditional one.
            packing: The examples in a pack. Each replica's batch must be a multiple of it.
        """
        super().__init__(architecture)
        if self.conditional:
            raise ganlab.ConfigError(
                f"architectures.packed.architecture = {type(architecture).__name__} is conditional, and a pack has no "
                "label. Use an architecture without labels."
            )
        self._count, self.packing = packing, packing * architecture.packing

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A model `(n, *sample_shape) -> (n, 1)`, n a multiple of `packing`."""
        *sides, channels = sample_shape
        inner = super().critic((*sides, self._count * channels), classes)
        sample = keras.Input(sample_shape, name="sample")
        packs = keras.ops.moveaxis(keras.ops.reshape(sample, (-1, self._count, *sample_shape)), 1, -2)
        scores = inner(keras.ops.reshape(packs, (-1, *inner.inputs[0].shape[1:])))
        return keras.Model(sample, keras.ops.repeat(scores, self._count, axis=0), name="critic")
