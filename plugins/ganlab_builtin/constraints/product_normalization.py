"""Normalization of a whole critic by the product of its norms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.gram_norm import GramNorm


class ProductNormalization(GramNorm):
    """Divides the last kernel by the bounds of all kernels' norms, so that the critic is 1-Lipschitz as a whole.

    The bound that Leino, Wang and Fredrikson, "Globally-robust neural networks" (2021), section 4, train with: the
    product of the norms of all layers. Divided by it, a chain of dense layers, convolutions and 1-Lipschitz activations
    is 1-Lipschitz, while single layers may stretch and others shrink: but for its last bias the critic is the
    unconstrained one over one number. Norms are bounded from above as under gram_norm, with its parameters, where the
    paper iterates powers from below.

    The last kernel is that of the layer that comes last in the model. Branches are not counted: in a critic with
    shortcuts the product may be too small, and the logged lipschitz_bound shows what holds.
    """

    _name: ClassVar[str] = "product_normalization"

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The weights, with the last kernel over the product of all bounds."""
        normalized = dict(weights)
        *_, last = self._operators
        for name in self._operators:
            # One by one, because the product for a deep critic may be too large a number.
            normalized[last] = normalized[last] / self._norm_bound(name, weights[name])
        return normalized
