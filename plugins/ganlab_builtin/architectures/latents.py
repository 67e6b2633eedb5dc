"""Another architecture with other latent numbers than normal ones."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Gt
from ganlab.lazy import keras
from ganlab_builtin.architectures.around import Around

_DISTRIBUTIONS = ("uniform", "truncated")


class Latents(Around):
    """The networks of another architecture, whose generator takes uniform or truncated latent numbers.

    The generator still takes normal numbers and first maps each to one of the other distribution, by the inverse of its
    distribution function: samples, exports and interpolations need nothing else.
    """

    def __init__(
        self,
        *,
        architecture: ganlab.Architecture,
        distribution: Literal["uniform", "truncated"] = "uniform",
        bound: Annotated[float, Gt(0)] = 2.0,
    ) -> None:
        """Keeps the architecture.

        Args:
            architecture: Whose networks these are.
            distribution: "uniform" in [-1, 1], or the normal distribution "truncated" to [-bound, bound], as by drawing
                again (Brock, Donahue and Simonyan, "Large scale GAN training for high fidelity natural image
                synthesis", 2019, section 3.1).
            bound: The largest absolute value of a truncated number.
        """
        if distribution not in _DISTRIBUTIONS:
            raise ganlab.ConfigError(
                f"architectures.latents.distribution = {distribution!r} must be one of "
                f"{', '.join(map(repr, _DISTRIBUTIONS))}."
            )
        super().__init__(architecture)
        self._distribution, self._bound = distribution, bound

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """The other architecture's generator behind the map: `(n, latent_dim) -> (n, *sample_shape)`."""
        inner = super().generator(sample_shape, classes)
        latent, *rest = [keras.Input(x.shape[1:], dtype=x.dtype, name=x.name) for x in inner.inputs]
        changed = self._changed(latent)
        return keras.Model([latent, *rest] if rest else latent, inner([changed, *rest] if rest else changed))

    def _changed(self, latent: Any) -> Any:
        uniform = keras.ops.erf(latent / math.sqrt(2.0))
        if self._distribution == "uniform":
            return uniform
        return math.sqrt(2.0) * keras.ops.erfinv(math.erf(self._bound / math.sqrt(2.0)) * uniform)
