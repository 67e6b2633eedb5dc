"""Another architecture's networks, the critic with one more output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import ganlab
from ganlab.bounds import Ge
from ganlab_builtin.architectures.around import Around
from ganlab_builtin.architectures.parts import with_heads

if TYPE_CHECKING:
    import keras


class WithHead(Around):
    """The networks of another architecture, whose critic returns one more output: linear in the last features.

    The features are what the layer of the score gets, so that the head shares all other layers with the score. A second
    head is one of these around another one. losses.self_supervised uses a head of four, `rotation`.
    """

    def __init__(
        self, *, architecture: ganlab.Architecture, output: str = "rotation", units: Annotated[int, Ge(1)] = 4
    ) -> None:
        """Chooses the networks and the head.

        Args:
            architecture: The architecture that makes the networks.
            output: The name of the output.
            units: How many numbers it has.
        """
        super().__init__(architecture)
        if not output.isidentifier() or output == "score":
            raise ganlab.ConfigError(
                f"architectures.with_head.output = {output!r} must be an identifier other than 'score', for example "
                "'rotation'."
            )
        self.output, self.units = output, units

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """The architecture's critic with the head beside its score, `(n, units)` float32."""
        return with_heads(super().critic(sample_shape, classes), {self.output: self.units})
