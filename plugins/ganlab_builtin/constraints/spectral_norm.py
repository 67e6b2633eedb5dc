"""Spectral normalization, of the reshaped matrix or of the convolution itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import ganlab
from ganlab import lipschitz
from ganlab.bounds import Ge, Gt, Le
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import FollowedNorms


class SpectralNorm(FollowedNorms):
    """Divides every kernel by an estimate of its largest singular value.

    Miyato, Kataoka, Koyama and Yoshida, "Spectral normalization for generative adversarial networks" (2018), equation
    8 and algorithm 1: `W / sigma(W)` with `sigma = v' W u`, where u and v follow the leading singular vectors by one
    power iteration an update and carry no gradient. A convolution's kernel is taken as the matrix (everything else,
    outputs), as in the paper, which bounds the convolution only up to a factor that depends on its size and stride.
    With `operator = "convolution"` it is taken as the convolution itself, stride and padding included, and its power
    iteration goes through the convolution and its transpose: Farnia, Zhang and Tse, "Generalizable adversarial training
    via spectral normalization" (2019).

    u is kept as state and moves once per critic update, so that real, fake and interpolated examples of one update are
    scored by one and the same critic. Vectors, for example biases, are left alone.
    """

    def __init__(
        self,
        *,
        operator: Literal["matrix", "convolution"] = "matrix",
        power_iterations: Annotated[int, Ge(1), Le(10_000)] = 1,
        target: Annotated[float, Gt(0)] = 1.0,
    ) -> None:
        """Chooses the operator, the target and how closely the singular vectors are followed.

        Args:
            operator: A convolution's kernel as a "matrix", as in the paper, or the "convolution" itself.
            power_iterations: Power iterations per critic update; the paper's 1.
            target: The largest singular value that every kernel gets.
        """
        if operator not in ("matrix", "convolution"):
            raise ganlab.ConfigError(
                f"constraints.spectral_norm.operator = {operator!r} must be 'matrix' or 'convolution'."
            )
        self.operator, self.power_iterations, self.target = operator, power_iterations, target

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every kernel over its estimated largest singular value, times the target."""
        normalized = dict(weights)
        for name, operator in self._operators.items():
            sigma, _ = lipschitz.spectral_norm(operator, weights[name], state[name])
            normalized[name] = weights[name] * (self.target / tf.maximum(sigma, 1e-12))
        return normalized
