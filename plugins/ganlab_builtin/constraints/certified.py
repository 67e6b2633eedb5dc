"""Base classes of constraints on weights, which certify the critic as they leave it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import ganlab
from ganlab import lipschitz
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    import keras


class Certified(ganlab.Constraint):
    """Bounds the critic, layer by layer, with the weights that it computes with."""

    def prepare(self, critic: keras.Model) -> None:
        """Prepares the bound of the critic."""
        self._bound = lipschitz.certificate(critic)

    def lipschitz_bound(self, weights: Mapping[str, tf.Tensor]) -> float | None:
        """The certificate of the critic with these weights."""
        return self._bound(weights)


class KernelNorms(Certified):
    """Works with the largest singular value of every kernel.

    Attributes:
        operator: A convolution's kernel as a "matrix", or the "convolution" itself.
    """

    operator: str = "convolution"

    def prepare(self, critic: keras.Model) -> None:
        """Prepares the operator of each kernel."""
        self._operators = lipschitz.operators(critic, reshaped=self.operator == "matrix")
        super().prepare(critic)


class MatrixKernels(Certified):
    """Takes every kernel as a matrix, a convolution's as (everything else, outputs).

    Convolutions compute with it over the square root of how many patches an input lies in, which bounds them by it.
    """

    def prepare(self, critic: keras.Model) -> None:
        """Counts the patches that the inputs of each kernel lie in."""
        self._overlaps = {name: operator.overlap for name, operator in lipschitz.operators(critic).items()}
        super().prepare(critic)

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The kernels of convolutions over the square root of the overlap of their patches."""
        return {name: weight / math.sqrt(self._overlaps.get(name, 1)) for name, weight in weights.items()}
