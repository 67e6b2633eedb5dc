"""Spectral norm regularization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import ganlab
from ganlab import lipschitz
from ganlab.bounds import Ge, Le
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import KernelMaps


class SpectralRegularization(KernelMaps):
    """Penalizes the largest singular value of every kernel.

    Yoshida and Miyato, "Spectral norm regularization for improving the generalizability of deep learning" (2017),
    section 3: `weight / 2 * sum(sigma(W)^2)` over kernels, by power iteration, whose vectors carry no gradient. As in
    the paper a convolution's kernel is taken as the matrix (everything else, outputs); `operator = "convolution"` takes
    the convolution itself. The power iteration starts anew at each update, which needs more iterations than the paper's
    one from the last update's vector.
    """

    def __init__(
        self,
        *,
        weight: Annotated[float, Ge(0)] = 0.01,
        operator: Literal["matrix", "convolution"] = "matrix",
        power_iterations: Annotated[int, Ge(1), Le(10_000)] = 20,
    ) -> None:
        """Chooses the penalty.

        Args:
            weight: Twice the penalty's factor; the paper's 0.01.
            operator: A convolution's kernel as a "matrix", as in the paper, or the "convolution" itself.
            power_iterations: Power iterations per critic update; 20 come within a few percent for most kernels.
        """
        if operator not in ("matrix", "convolution"):
            raise ganlab.ConfigError(
                f"constraints.spectral_regularization.operator = {operator!r} must be 'matrix' or 'convolution'."
            )
        self.weight, self.operator, self.power_iterations = weight, operator, power_iterations

    def weight_penalty(self, weights: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The penalty, a scalar."""
        norms = [
            lipschitz.spectral_norm(operator, weights[name], iterations=self.power_iterations)[0]
            for name, operator in self._operators.items()
        ]
        return 0.5 * self.weight * sum(tf.square(norm) for norm in norms)
