"""What products of rounded factors do to 1-Lipschitz critics: figures of docs/constraints.md, emulated in numpy."""

import math

import numpy as np
import pytest
import tensorflow as tf
from explicit import convolution_matrix, norm

from ganlab import component, layers

SIDE, CHANNELS, DEPTH = 4, 4, 8  # images as small as 64 units, and as many layers before the score
UNITS = SIDE * SIDE * CHANNELS
FLOAT32 = 1e-5  # the rounding of nine layers in float32; that of TensorFloat-32 is 5e-4 in one
BITS = {"tensorfloat32": 10, "mixed_bfloat16": 7}


def rounded(x, bits):
    """Float32 numbers with so many bits of mantissa after the point, ties to even."""
    n, dropped = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64), 23 - bits
    n = (n + (1 << (dropped - 1)) - 1 + ((n >> dropped) & 1)) >> dropped << dropped
    return n.astype(np.uint32).view(np.float32)


def kernel(kind, shape, random):
    """The kernel (inputs, outputs) that a shipped constraint or layer computes with, from a random one."""
    if kind != "aol":
        return component("constraints", kind)().orthonormal(tf.constant(random.normal(size=shape), tf.float32)).numpy()
    layer = layers.AOLConv2D(CHANNELS, 3, use_bias=False)
    layer.build((None, SIDE, SIDE, CHANNELS))
    layer.kernel.assign_add(0.1 * random.normal(size=layer.kernel.shape))  # from nearly orthogonal, as if trained
    shape = (SIDE, SIDE, CHANNELS)
    return convolution_matrix(
        layer.effective_kernel().numpy(), shape, shape, strides=(1, 1), dilation=(1, 1), padding="same"
    ).T.astype(np.float32)


def kernels(kind, seed):
    """Eight layers, and a score's row of length one."""
    random = np.random.default_rng(seed)
    score = random.normal(size=(UNITS, 1))
    return [*(kernel(kind, (UNITS, UNITS), random) for _ in range(DEPTH)), (score / norm(score)).astype(np.float32)]


def product(x, w, bits):
    x, w = (x, w) if bits is None else (rounded(x, bits), rounded(w, bits))
    return (x.astype(np.float64) @ w).astype(np.float32)


def scores_and_slopes(x, ws, bits=None, results=False):
    """Scores, and the norms of their gradients, of layers with sorted pairs between them.

    Factors of products are rounded to `bits`, and with `results` products too.
    """
    turned = []
    for i, w in enumerate(ws):
        x = product(x, w, bits)
        x = rounded(x, bits) if results else x
        if i < DEPTH:
            pairs = x.reshape(len(x), -1, 2)
            turned.append(np.argsort(pairs, axis=-1, kind="stable"))
            x = np.sort(pairs, axis=-1).reshape(x.shape)
    gradient = np.ones((len(x), 1), np.float32)
    for i in reversed(range(len(ws))):
        if i < DEPTH:
            pairs = gradient.reshape(len(x), -1, 2)
            gradient = np.take_along_axis(pairs, np.argsort(turned[i], axis=-1), -1).reshape(gradient.shape)
        gradient = product(gradient, w := ws[i].T, bits)
        gradient = rounded(gradient, bits) if results else gradient
        assert w.shape[1] == UNITS
    return x[:, 0].astype(np.float64), gradient.astype(np.float64)


def excess(ws, bits, roundings):
    """By how much more than 1 the product of layers' factors is, each `(1 + u | |W| |)(1 + u)^roundings`."""
    u = 2.0 ** -(bits + 1)
    return math.prod((1 + u * norm(np.abs(w.astype(np.float64)))) * (1 + u) ** roundings for w in ws) - 1


def lengths(x):
    return np.linalg.norm(x.astype(np.float64), axis=1)


def test_rounding_to_seven_bits_is_bfloat16():
    x = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    x[:2] = 1 + 2.0**-8, 1 + 3 * 2.0**-8  # ties
    np.testing.assert_array_equal(rounded(x, 7), tf.cast(tf.cast(x, tf.bfloat16), tf.float32))
    assert rounded(np.float32(1 + 2.0**-11), 10) == 1
    assert rounded(np.float32(1 + 1.01 * 2.0**-11), 10) == 1 + 2.0**-10


@pytest.mark.parametrize("precision", BITS)
@pytest.mark.parametrize(
    "kind", ["householder", pytest.param("cayley", marks=pytest.mark.slow), pytest.param("aol", marks=pytest.mark.slow)]
)
def test_rounded_products_exceed_a_certificate_by_what_the_page_says(kind, precision):
    bits, results = BITS[precision], precision == "mixed_bfloat16"
    u = 2.0 ** -(bits + 1)
    grown, slopes, wrong, near = 0.0, 0.0, 0.0, 0.0
    for seed in range(4):
        ws = kernels(kind, seed)
        random = np.random.default_rng(seed)
        x = random.normal(size=(32, UNITS)).astype(np.float32)
        exact, steepest = scores_and_slopes(x, ws)
        score, gradient = scores_and_slopes(x, ws, bits, results)
        over = excess(ws, bits, 2 if results else 1)
        assert max(norm(w) for w in ws) <= 1 + FLOAT32
        assert lengths(steepest).max() <= 1 + FLOAT32
        # The bounds: of gradients as they are computed, of errors of scores, and so of secants.
        assert lengths(gradient).max() <= 1 + over + FLOAT32
        assert (np.abs(score - exact) <= (over + FLOAT32) * lengths(x)).all()
        unit = steepest / lengths(steepest)[:, None]
        for part in (1.0, 1e-4):
            y = (x + part * lengths(x)[:, None] * unit).astype(np.float32)
            other, _ = scores_and_slopes(y, ws, bits, results)
            apart, secants = lengths(y - x), np.abs(other - score)
            assert (secants <= apart + (over + FLOAT32) * (lengths(x) + lengths(y))).all()
        near = max(near, (secants / apart / lengths(steepest)).max())
        grown = max(grown, *(norm(rounded(w, bits).astype(np.float64)) - norm(w.astype(np.float64)) for w in ws))
        slopes, wrong = max(slopes, lengths(gradient).max() - 1), max(wrong, (np.abs(score - exact) / lengths(x)).max())
    # As the page says: kernels, gradients and scores are off by less than a rounding, and near secants are steep.
    assert max(grown, slopes, wrong) <= u
    assert near > 2
