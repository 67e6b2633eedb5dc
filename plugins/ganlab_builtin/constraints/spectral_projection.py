"""Spectral projection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import ganlab
from ganlab import lipschitz
from ganlab.bounds import Ge, Gt, Le
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import KernelMaps


class SpectralProjection(KernelMaps):
    """Scales every kernel down to a largest singular value of at most `limit` after each update.

    Gouk, Frank, Pfahringer and Cree, "Regularisation of neural networks by enforcing Lipschitz continuity" (2021),
    section on projecting weights: `W / max(1, sigma(W) / limit)`. sigma is the norm of what the layer does, for a
    convolution that of the convolution with its stride and padding, by power iterations from a fixed start. They come
    from below, so that a norm may be a little above the limit; the logged lipschitz_bound counts what it is.

    Unlike under spectral_norm kernels may be smaller than the limit, and the gradient is that of the plain critic.
    """

    def __init__(
        self,
        *,
        limit: Annotated[float, Gt(0)] = 1.0,
        operator: Literal["convolution", "matrix"] = "convolution",
        power_iterations: Annotated[int, Ge(1), Le(10_000)] = 20,
    ) -> None:
        """Chooses the limit.

        Args:
            limit: The largest singular value that a kernel may have.
            operator: The "convolution" itself, as in the paper, or its kernel as a "matrix" (everything else, outputs).
            power_iterations: Power iterations per critic update; 20 come within a few percent for most kernels.
        """
        if operator not in ("convolution", "matrix"):
            raise ganlab.ConfigError(
                f"constraints.spectral_projection.operator = {operator!r} must be 'convolution' or 'matrix'."
            )
        self.limit, self.operator, self.power_iterations = limit, operator, power_iterations

    def project(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every kernel over its norm where that is above the limit, times the limit."""
        projected = dict(weights)
        for name, operator in self._operators.items():
            sigma, _ = lipschitz.spectral_norm(operator, weights[name], iterations=self.power_iterations)
            projected[name] = weights[name] / tf.maximum(1.0, sigma / self.limit)
        return projected
