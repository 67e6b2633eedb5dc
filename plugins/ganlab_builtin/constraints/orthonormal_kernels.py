"""The base class of reparameterizations by orthonormal kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ganlab.functional import as_matrix
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import MatrixKernels


class OrthonormalKernels(MatrixKernels):
    """Computes with orthonormal kernels; a subclass says which.

    A convolution's kernel is taken as the matrix (everything else, outputs) and then divided by the square root of how
    many patches an input lies in, which bounds the convolution by one.
    """

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every kernel orthonormal."""
        orthonormal = dict(weights)
        for name, overlap in self._overlaps.items():
            matrix = as_matrix(weights[name])
            wide = matrix.shape[0] < matrix.shape[1]
            matrix = self.orthonormal(tf.transpose(matrix) if wide else matrix)
            matrix = (tf.transpose(matrix) if wide else matrix) / math.sqrt(overlap)
            orthonormal[name] = tf.reshape(matrix, weights[name].shape)
        return orthonormal

    def orthonormal(self, matrix: tf.Tensor) -> tf.Tensor:
        """A matrix with orthonormal columns, of the shape of this one, whose columns are not longer than its rows."""
        raise NotImplementedError
