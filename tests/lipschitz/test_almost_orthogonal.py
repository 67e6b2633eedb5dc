"""Rescaled kernels, against the matrix of the convolution in numpy's float64."""

import numpy as np
import pytest
import tensorflow as tf
from explicit import convolution_matrix

from ganlab.functional import almost_orthogonal, gram_row_sums

# Kernel, stride of each axis, padding, and the space of an image.
GEOMETRIES = {
    "dense": ((5, 3), (), "valid", ()),
    "wide": ((3, 7), (), "valid", ()),
    "line": ((3, 2, 4), (2,), "valid", (9,)),
    "square": ((3, 3, 2, 3), (1, 1), "same", (6, 5)),
    "even": ((2, 4, 3, 2), (1, 1), "same", (5, 4)),
    "strided": ((3, 3, 2, 5), (2, 2), "same", (7, 6)),
    "leaping": ((2, 3, 2, 3), (3, 2), "valid", (8, 7)),
}
RANDOM = np.random.default_rng(0)
KERNELS = {name: RANDOM.normal(size=geometry[0]) for name, geometry in GEOMETRIES.items()}


def matrix_of(kernel, strides, padding, space):
    """The matrix on images of this space, `(outputs, inputs)`."""
    taps = kernel.shape[:-2]
    if not taps:
        return kernel.T
    sides = [
        -(-n // s) if padding == "same" else (n - t) // s + 1 for n, t, s in zip(space, taps, strides, strict=True)
    ]
    shapes = (*space, kernel.shape[-2]), (*sides, kernel.shape[-1])
    return convolution_matrix(kernel, *shapes, strides=strides, dilation=(1,) * len(taps), padding=padding)


def norm(kernel, name):
    _, strides, padding, space = GEOMETRIES[name]
    return np.linalg.norm(matrix_of(np.asarray(kernel, np.float64), strides, padding, space), 2)


@pytest.mark.parametrize("outputs", [False, True])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_norm_is_at_most_one(name, outputs):
    for dtype in ("float32", "float64"):
        kernel = tf.constant(KERNELS[name], dtype)
        for scale in (1e-3, 1.0, 1e3):
            rescaled = almost_orthogonal(scale * kernel, GEOMETRIES[name][1], outputs=outputs)
            assert rescaled.dtype == dtype
            assert 0.3 < norm(rescaled, name) <= 1


@pytest.mark.parametrize("outputs", [False, True])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_sums_are_those_of_the_explicit_gram_matrix(name, outputs):
    shape, strides, _, _ = GEOMETRIES[name]
    kernel = KERNELS[name]
    # Without borders: the middle of a large image under "valid" padding.
    large = tuple(4 * (t + s) + 1 for t, s in zip(shape, strides, strict=False))
    matrix = matrix_of(kernel, strides, "valid", large)
    sums = np.abs(matrix @ matrix.T if outputs else matrix.T @ matrix).sum(axis=1)
    seen = tuple((n - t) // s + 1 for n, t, s in zip(large, shape, strides, strict=False))
    sums = sums.reshape(*(seen if outputs else large), -1)
    if outputs:
        middle = tuple(n // 2 for n in seen)
        expected = sums[middle]
    else:  # a window of one stride in the middle, from phase zero
        starts = [(n // 2 // s) * s for n, s in zip(large, strides, strict=True)]
        expected = sums[tuple(slice(b, b + s) for b, s in zip(starts, strides, strict=True))]
    found = gram_row_sums(tf.constant(kernel), strides, outputs=outputs)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("name", "outputs"), [("dense", False), ("dense", True), ("square", True), ("strided", True)])
def test_weights_keep_the_matrix_below_the_diagonal(name, outputs):
    shape, strides, padding, space = GEOMETRIES[name]
    matrix = matrix_of(KERNELS[name], strides, padding, space)
    gram = matrix @ matrix.T if outputs else matrix.T @ matrix
    weights = RANDOM.uniform(0.2, 5, size=shape[-1 if outputs else -2])
    kernel = tf.constant(KERNELS[name])
    sums = gram_row_sums(kernel, strides, outputs=outputs, weights=tf.constant(weights)).numpy()
    diagonal = np.diag(np.tile(sums, len(gram) // len(sums)))
    assert np.linalg.eigvalsh(diagonal - gram).min() > -1e-10
    if not strides:
        np.testing.assert_allclose(sums, (np.abs(gram) * weights).sum(1) / weights, rtol=1e-12)


def test_orthogonal_maps_stay_and_zero_is_finite():
    orthogonal = np.linalg.qr(RANDOM.normal(size=(4, 4)))[0]
    np.testing.assert_allclose(almost_orthogonal(tf.constant(orthogonal)), orthogonal, atol=1e-5)
    zero = tf.zeros([3, 3, 2, 2])
    with tf.GradientTape() as tape:
        tape.watch(zero)
        rescaled = almost_orthogonal(zero)
    assert not rescaled.numpy().any()
    assert np.isfinite(tape.gradient(rescaled, zero)).all()
