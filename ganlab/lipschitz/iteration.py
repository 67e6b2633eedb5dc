"""Power iteration on a kernel's map."""

from __future__ import annotations

import numpy as np

from ganlab.functional import fixed
from ganlab.lazy import tensorflow as tf
from ganlab.lipschitz.operators import Operator


def spectral_norm(
    operator: Operator, kernel: tf.Tensor, vector: tf.Tensor | None = None, *, iterations: int = 0
) -> tuple[tf.Tensor, tf.Tensor]:
    """An estimate of an operator's norm, its largest singular value, by power iteration.

    Yoshida and Miyato, "Spectral norm regularization for improving the generalizability of deep learning" (2017), on
    matrices; on a convolution itself and its transpose, Gouk, Frank, Pfahringer and Cree, "Regularisation of neural
    networks by enforcing Lipschitz continuity" (2021) and Farnia, Zhang and Tse, "Generalizable adversarial training
    via spectral normalization" (2019).

    The estimate `<y, A x>`, with `y = A x / ||A x||`, approaches the norm from below. Its gradient reaches the kernel
    and not the vectors; when they are singular vectors, it is the gradient of the norm.

    Args:
        operator: The map.
        kernel: Its kernel, float32.
        vector: The start, a unit vector of `operator.input_shape`; pass the vector of the last call to continue from
            it. None starts from a fixed vector, for callers without state.
        iterations: How often to apply the map and its adjoint. From the fixed start, 20 come within a few percent for
            most kernels; from the vector of the previous update, one is enough.

    Returns:
        The estimate, a float32 scalar, and the unit vector that it is taken at.
    """
    if vector is None:
        vector = tf.constant(_start(operator.input_shape))
    still, vector = tf.stop_gradient(kernel), tf.stop_gradient(vector)

    def further(vector: tf.Tensor) -> tf.Tensor:
        moved = _unit(operator.adjoint(still, _unit(operator.apply(still, vector))))
        return tf.where(tf.reduce_any(moved != 0), moved, vector)  # so that a kernel that is zero once does no harm

    matrix = operator.matrix(still) if iterations > 1 and tf.executing_eagerly() else None
    if matrix is not None:
        vector = tf.constant(_iterated(matrix, vector.numpy(), iterations))
    elif iterations == 1:
        vector = further(vector)
    elif iterations:
        # A loop, because unrolling every iteration into the graph takes minutes.
        (vector,) = tf.while_loop(lambda v: True, lambda v: (further(v),), (vector,), maximum_iterations=iterations)
    vector = fixed(vector)
    image = operator.apply(kernel, vector)
    return tf.reduce_sum(tf.stop_gradient(_unit(image)) * image), vector


def _iterated(matrix: np.ndarray, vector: np.ndarray, iterations: int) -> np.ndarray:
    """The same iterations by numpy, outside a graph ten times as fast as TensorFlow on a kernel of 512 x 512."""
    # Weights that are not finite are reported elsewhere.
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(iterations):
            image = matrix @ vector
            moved = matrix.T @ (image / _length(image))
            moved = moved / _length(moved)
            vector = moved if (moved != 0).any() else vector
    return vector


def _length(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(np.sum(np.square(x)), np.float32(1e-12)))  # as in tf.math.l2_normalize


def _start(shape: tuple[int, ...]) -> np.ndarray:
    # From numpy, because TensorFlow's numbers differ between XLA and the kernels of a device.
    vector = np.random.default_rng(0).standard_normal(shape)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _unit(x: tf.Tensor) -> tf.Tensor:
    return tf.math.l2_normalize(x)
