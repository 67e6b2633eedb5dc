"""Orthonormal kernels by Householder's reflections."""

from __future__ import annotations

from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.orthonormal_kernels import OrthonormalKernels


class Householder(OrthonormalKernels):
    """Makes every kernel a product of reflections, one for each of its columns, orthonormal in one step and exactly.

    Mhammedi, Hellicar, Rahman and Bailey, "Efficient orthogonal parametrisation of recurrent neural networks using
    Householder reflections" (2017): the first n columns of `H_1 H_2 ... H_n` with `H_i = I - 2 v_i v_i' / |v_i|^2`,
    where v_i is column i of an m x n kernel, taken whole. The product is computed at once as `I - V T V'` with the
    triangular `T^-1 = I / 2 + striu(V'V)` of unit columns V: Joffrain, Low, Quintana-Ortí, van de Geijn and Van Zee,
    "Accumulating Householder transformations, revisited" (2006). Rows or columns become orthonormal, whichever are
    fewer.

    Every matrix with orthonormal columns is such a product if it is not square. Square ones have the determinant
    `(-1)^n`. A kernel's length does not matter, and a column of zeros is a reflection left out. A convolution's kernel
    is taken as the matrix (everything else, outputs) and divided by the square root of how many patches an input lies
    in, which bounds the convolution by one.
    """

    def orthonormal(self, matrix: tf.Tensor) -> tf.Tensor:
        """The first columns of the product of reflections."""
        rows, count = matrix.shape
        matrix = matrix / tf.maximum(tf.reduce_max(tf.abs(matrix), axis=0), 1e-12)
        units = matrix * tf.math.rsqrt(tf.reduce_sum(tf.square(matrix), axis=0) + 1e-24)
        products = tf.matmul(units, units, transpose_a=True)
        triangle = tf.linalg.band_part(products, 0, -1) - tf.linalg.diag(tf.linalg.diag_part(products) - 0.5)
        turned = tf.linalg.triangular_solve(triangle, tf.transpose(units[:count]), lower=False)
        return tf.eye(rows, count) - tf.matmul(units, turned)
