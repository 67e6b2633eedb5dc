"""The base of architectures that change or extend another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import ganlab
from ganlab.functional import call

if TYPE_CHECKING:
    import keras
    import tensorflow as tf


class Around(ganlab.Architecture):
    """Holds another architecture, whose networks it passes on."""

    def __init__(self, architecture: ganlab.Architecture) -> None:
        """Takes the architecture."""
        self.architecture = architecture
        self.latent_dim, self.conditional = architecture.latent_dim, architecture.conditional
        self.packing = architecture.packing
        if type(self).latent is ganlab.Architecture.latent:
            self.latent = architecture.latent  # type: ignore[method-assign]

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """The architecture's."""
        return call(self.architecture.generator, sample_shape, classes=classes)

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """The architecture's."""
        return call(self.architecture.critic, sample_shape, classes=classes)

    def networks(
        self, sample_shape: tuple[int, ...], classes: int | None = None
    ) -> Mapping[str, Mapping[str, keras.Model]]:
        """The architecture's."""
        further: Mapping[str, Any] = call(self.architecture.networks, sample_shape, classes=classes)
        return further

    def coupled(self, numbers: tf.Tensor, seed: int) -> tf.Tensor | None:
        """The architecture's."""
        return self.architecture.coupled(numbers, seed)
