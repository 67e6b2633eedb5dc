"""Networks of CycleGAN: a generator each way, and a critic at each end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import ganlab
from ganlab.bounds import Ge, Le
from ganlab_builtin.architectures.mlp import MLP

if TYPE_CHECKING:
    from collections.abc import Mapping

    import keras


class CycleGAN(ganlab.Architecture):
    """Four fully connected networks for a source and examples of any shapes, without latent vectors.

    Zhu et al., "Unpaired image-to-image translation using cycle-consistent adversarial networks" (2017): the generator
    is G from X, the source, to Y, the critic D_Y. "back", of the generator's side, is F from Y to X, and
    "source_critic" is D_X. The paper's are convolutional. losses.cycle trains them.
    """

    latent_dim = 0

    def __init__(self, *, depth: Annotated[int, Ge(1), Le(1000)] = 3, width: Annotated[int, Ge(1)] = 256) -> None:
        """Sets the sizes of the networks.

        Args:
            depth: Hidden layers of each network.
            width: Units of each hidden layer.
        """
        self.depth, self.width = depth, width
        self._mlp = MLP(depth=depth, width=width, activation="leaky_relu", source=True)

    def generator(self, sample_shape: tuple[int, ...], source_shape: tuple[int, ...] | None = None) -> keras.Model:
        """A model `(n, *source_shape) -> (n, *sample_shape)`, float32."""
        return self._mlp.generator(sample_shape, source_shape=source_shape)

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, *sample_shape) -> (n, 1)`, float32."""
        return self._mlp.critic(sample_shape)

    def networks(
        self, sample_shape: tuple[int, ...], source_shape: tuple[int, ...] | None = None
    ) -> Mapping[str, Mapping[str, keras.Model]]:
        """The generator back and the critic of sources."""
        assert source_shape is not None  # the generator, which is made first, refuses it
        back = self._mlp.generator(source_shape, source_shape=sample_shape)
        return {"generator": {"back": back}, "critic": {"source_critic": self._mlp.critic(source_shape)}}
