"""Layers of Lipschitz constant one, against matrices and loops in numpy's float64."""

import itertools

import keras
import numpy as np
import pytest
import scipy.linalg
import tensorflow as tf
from central_differences import departure
from ganlab_builtin.layers import AOCConv2D, AOCConv2DTranspose, BROConv2D, LiResConv2D
from orthogonal_formulas import adaptive, circular, product_of_projectors, reflected, skew_series
from steep_pairs import steepest

from ganlab import layers
from ganlab.functional import gram_row_sums, squared_norm_bound
from ganlab.layers.attention import places_bound
from ganlab.layers.starting import MiddleTap
from ganlab.lipschitz import certificate

# A layer and the shape of an example; odd sides and windows that leave a border.
CASES = {
    "aol-dense": (layers.AOLDense, {"units": 7}, (5,)),
    "aol-dense-narrow": (layers.AOLDense, {"units": 2}, (5,)),
    "aol-dense-one": (layers.AOLDense, {"units": 1, "use_bias": False}, (5,)),
    "aol-dense-places": (layers.AOLDense, {"units": 3}, (5, 4)),
    "aol-same": (layers.AOLConv2D, {"filters": 4, "kernel_size": 3}, (5, 4, 2)),
    "aol-valid": (layers.AOLConv2D, {"filters": 2, "kernel_size": (2, 3), "padding": "valid"}, (5, 6, 3)),
    "aol-strided": (layers.AOLConv2D, {"filters": 9, "kernel_size": 3, "strides": 2}, (5, 6, 2)),
    "aol-leaping": (layers.AOLConv2D, {"filters": 2, "kernel_size": (2, 4), "strides": (3, 2)}, (7, 6, 2)),
    "sll-dense": (layers.SLLDense, {}, (5,)),
    "sll-dense-wide": (layers.SLLDense, {"units": 8}, (5,)),
    "sll-conv": (layers.SLLConv2D, {}, (5, 4, 2)),
    "sll-conv-even": (layers.SLLConv2D, {"filters": 5, "kernel_size": (2, 4)}, (5, 6, 2)),
    "cpl-dense": (layers.CPLDense, {}, (5,)),
    "cpl-dense-narrow": (layers.CPLDense, {"units": 3}, (5,)),
    "cpl-dense-places": (layers.CPLDense, {"units": 8}, (5, 4)),
    "cpl-conv": (layers.CPLConv2D, {}, (5, 4, 2)),
    "cpl-conv-even": (layers.CPLConv2D, {"filters": 3, "kernel_size": (2, 4)}, (5, 6, 2)),
    "soc": (layers.SkewConv2D, {"filters": 2}, (5, 4, 2)),
    "soc-wider": (layers.SkewConv2D, {"filters": 3, "kernel_size": (1, 5), "terms": 4}, (5, 4, 2)),
    "soc-narrower": (layers.SkewConv2D, {"filters": 2, "terms": 3, "use_bias": False}, (4, 5, 3)),
    "bcop": (layers.OrthogonalConv2D, {"filters": 3}, (5, 4, 3)),
    "bcop-wider": (layers.OrthogonalConv2D, {"filters": 5, "kernel_size": (2, 4)}, (5, 4, 2)),
    "bcop-narrower": (layers.OrthogonalConv2D, {"filters": 2, "padding": "same", "use_bias": False}, (5, 4, 4)),
    "aoc": (AOCConv2D, {"filters": 6, "strides": 2}, (6, 4, 2)),
    "aoc-groups": (AOCConv2D, {"filters": 4, "kernel_size": (4, 2), "strides": (2, 1), "groups": 2}, (4, 3, 4)),
    "aoc-same": (AOCConv2D, {"filters": 9, "strides": 2, "padding": "same", "use_bias": False}, (5, 4, 2)),
    "aoc-transposed": (AOCConv2DTranspose, {"filters": 2, "strides": 2}, (3, 2, 6)),
    "aoc-transposed-same": (
        AOCConv2DTranspose,
        {"filters": 4, "groups": 2, "strides": 2, "padding": "same"},
        (2, 3, 4),
    ),
    "bro": (BROConv2D, {"filters": 4}, (4, 5, 3)),
    "bro-same": (BROConv2D, {"filters": 3, "kernel_size": (2, 3), "rank": 1, "padding": "same"}, (4, 5, 3)),
    "lires": (LiResConv2D, {"filters": 2}, (5, 4, 2)),
    "sandwich": (layers.SandwichDense, {"units": 5}, (5,)),
    "sandwich-narrow": (layers.SandwichDense, {"units": 2, "activation": "leaky_relu"}, (5,)),
    "sandwich-places": (layers.SandwichDense, {"units": 6}, (5, 4)),
    "sandwich-wide": (layers.SandwichDense, {"units": 8, "activation": "tanh"}, (5,)),
    "l2-attention": (layers.L2SelfAttention, {"heads": 2}, (5, 4)),
    "l2-attention-map": (layers.L2SelfAttention, {}, (2, 3, 4)),
    "householder": (layers.HouseholderActivation, {}, (2, 3, 4)),
    "centering": (layers.LayerCentering, {}, (2, 3, 4)),
    "centering-pixels": (layers.LayerCentering, {"axis": (1, 2), "center": False}, (3, 2, 4)),
    "batch-lip": (layers.BatchLipNorm, {}, (2, 3, 4)),
    "batch-lip-plain": (layers.BatchLipNorm, {"normalize": False}, (4,)),
    "average": (layers.ScaledAveragePooling2D, {"pool_size": (2, 3)}, (5, 7, 2)),
    "l2-norm": (layers.L2NormPooling2D, {"pool_size": (2, 3)}, (5, 7, 2)),
    "down": (layers.InvertibleDownsampling, {"size": 3}, (6, 3, 2)),
}
# Options of layers whose other cases are quick.
OPTIONS = {
    *("aol-dense", "aol-dense-narrow", "aol-dense-one", "aol-dense-places", "aol-valid", "aol-strided", "aol-leaping"),
    *("sll-dense", "sll-dense-wide", "sll-conv-even", "cpl-dense", "cpl-dense-places", "sandwich-places"),
    *("cpl-dense-narrow", "cpl-conv-even", "soc-wider", "soc-narrower", "bcop-wider", "bcop-narrower"),
    *("aoc-groups", "aoc-same", "aoc-transposed", "aoc-transposed-same", "bro-same"),
    *("sandwich-narrow", "sandwich-wide", "l2-attention-map", "centering-pixels", "batch-lip-plain"),
}
SOME_QUICK = [pytest.param(name, marks=pytest.mark.slow if name in OPTIONS else ()) for name in CASES]
# The steepest pair is at least this: of a layer whose rescaling is not tight, well below one.
STEEP = {
    **dict.fromkeys(("l2-attention", "l2-attention-map"), 0.25),  # its bound is loose for several places
    "householder": 1 - 1e-9,
    "centering": 1 - 1e-5,
    "centering-pixels": 1 - 1e-5,
    "aol-dense-one": 1 - 1e-5,
    "soc": (1 - 1 / 720) / (1 + 1 / 720),
    "soc-wider": (1 - 1 / 24) / (1 + 1 / 24),
    "bcop": 1 - 1e-5,
    "bcop-wider": 1 - 1e-5,
    **dict.fromkeys(("aoc", "aoc-transposed", "bro", "batch-lip"), 1 - 1e-5),
    "average": 1 - 1e-5,
    "l2-norm": 0.999,
    "down": 1 - 1e-9,
}


def built(name, dtype="float64", seed=0):
    """A layer with random weights in a model."""
    kind, arguments, shape = CASES[name]
    model = keras.Sequential([keras.Input(shape, dtype=dtype.removeprefix("mixed_")), kind(dtype=dtype, **arguments)])
    random = np.random.default_rng(seed)
    model.set_weights([random.normal(size=v.shape) for v in model.weights])
    return model, shape


def examples(shape, count=3, seed=1):
    return np.random.default_rng(seed).normal(size=(count, *shape))


def gram_sums(kernel, strides, outputs, q=None):
    """`sum_j |P'P|_ij q_j / q_i` of the explicit matrix on so large an image that borders are far from its middle."""
    taps, (inputs, filters) = kernel.shape[:2], kernel.shape[2:]
    side = [5 * max(t, s) for t, s in zip(taps, strides, strict=True)]
    side = [n - n % s + t for n, t, s in zip(side, taps, strides, strict=True)]
    seen = [(n - t) // s + 1 for n, t, s in zip(side, taps, strides, strict=True)]
    matrix = np.zeros((*seen, filters, *side, inputs))
    for i, j in np.ndindex(*seen):
        for a, b in np.ndindex(*taps):
            matrix[i, j, :, i * strides[0] + a, j * strides[1] + b] = kernel[a, b].T
    matrix = matrix.reshape(np.prod(seen) * filters, -1)
    gram = np.abs(matrix @ matrix.T if outputs else matrix.T @ matrix)
    weights = np.ones(len(gram)) if q is None else np.tile(q, len(gram) // len(q))
    sums = (gram @ weights / weights).reshape(*(seen if outputs else side), -1)
    if outputs:
        return sums[seen[0] // 2, seen[1] // 2]
    first, second = (n // 2 // s * s for n, s in zip(side, strides, strict=True))
    window = sums[first : first + strides[0], second : second + strides[1]]
    repeats = [-(-t // s) for t, s in zip(taps, strides, strict=True)]
    return np.tile(window, [*repeats, 1])[: taps[0], : taps[1], :, None]


def convolved(x, kernel, strides=(1, 1), padding="same"):
    """A convolution by loops."""
    taps, space = kernel.shape[:2], x.shape[1:3]
    if padding == "same":
        seen = [-(-n // s) for n, s in zip(space, strides, strict=True)]
        extra = [max((m - 1) * s + t - n, 0) for m, s, t, n in zip(seen, strides, taps, space, strict=True)]
    else:
        seen, extra = [(n - t) // s + 1 for n, t, s in zip(space, taps, strides, strict=True)], (0, 0)
    x = np.pad(x, [(0, 0), *((e // 2, e - e // 2) for e in extra), (0, 0)])
    y = np.zeros((len(x), *seen, kernel.shape[3]))
    for i, j in itertools.product(*map(range, seen)):
        patch = x[:, i * strides[0] :, j * strides[1] :][:, : taps[0], : taps[1]]
        y[:, i, j] = np.einsum("nabc,abcd->nd", patch, kernel)
    return y


def iterated(kernel):
    """`|(A'A)^64|^(1/64)` at the frequencies of a Fourier transform, the largest, raised by what lies between them."""
    samples = [6 * (t - 1) for t in kernel.shape[:-2]]
    matrices = np.fft.fftn(kernel, samples, axes=range(len(samples))).reshape(-1, *kernel.shape[-2:])
    grams = matrices @ matrices.conj().transpose(0, 2, 1)
    if kernel.shape[-1] <= kernel.shape[-2]:
        grams = matrices.conj().transpose(0, 2, 1) @ matrices
    largest = max(np.linalg.norm(np.linalg.matrix_power(gram, 64)) ** (1 / 64) for gram in grams)
    return largest / np.cos(np.pi / 12) ** (2 * len(samples))


def adapted(layer, x):
    """An adaptive orthogonal convolution, group by group; its transpose by the matrix of what it transposes."""
    forward = circular if layer.padding == "circular" else convolved
    parts = []
    for part, kernel in zip(np.split(x, layer.groups, -1), adaptive(layer), strict=True):
        if isinstance(layer, AOCConv2DTranspose):
            shape = [n * s for n, s in zip(x.shape[1:3], layer.strides, strict=True)]
            basis = np.eye(np.prod(shape) * kernel.shape[2]).reshape(-1, *shape, kernel.shape[2])
            matrix = forward(basis, kernel, layer.strides).reshape(len(basis), -1)
            parts.append((part.reshape(len(x), -1) @ matrix.T).reshape(len(x), *shape, -1))
        else:
            parts.append(forward(part, kernel, layer.strides))
    return np.concatenate(parts, -1)


def sandwiched(x, activation, kernel, skew, log_psi, bias):
    """Wang and Manchester's layer, example by example, A and B from the Cayley transform."""
    identity, z = np.eye(len(skew)), skew - skew.T + kernel.T @ kernel
    a = scipy.linalg.solve(identity + z, identity - z).T
    b = scipy.linalg.solve((identity + z).T, -2 * kernel.T)
    np.testing.assert_allclose(a @ a.T + b @ b.T, identity, atol=1e-12)
    psi = np.diag(np.exp(log_psi))
    rows = x.reshape(-1, x.shape[-1])
    hidden = [activation(np.sqrt(2) * np.linalg.inv(psi) @ b @ row + bias).numpy() for row in rows]
    return np.stack([np.sqrt(2) * a.T @ psi @ row for row in hidden]).reshape(*x.shape[:-1], -1)


def attended(x, heads, query, value, merge):
    """Attention of one example, place by place and head by head with explicit A_h, over the bound."""
    width, places = len(query) // heads, len(x)
    parts, folded = [], []
    for h in range(heads):
        block = slice(h * width, (h + 1) * width)
        q, v = query[:, block], value[:, block]
        a = q @ q.T / np.sqrt(width)
        gathered = np.empty_like(x)
        for i in range(places):
            weights = np.exp([-np.sum((q.T @ (x[i] - other)) ** 2) / np.sqrt(width) for other in x])
            gathered[i] = sum(w * other for w, other in zip(weights / weights.sum(), x, strict=True))
        parts.append(gathered @ a @ v)
        folded.append(q.T @ v @ merge[block] / np.sqrt(width))
    divisor = places_bound(places) * np.sqrt(iterated(query) * iterated(np.concatenate(folded)))
    return np.concatenate(parts, 1) @ merge / divisor


def expected(name, layer, x):
    """The output by the papers' formulas."""
    weights = [v.numpy() for v in layer.weights]
    if name.startswith("aol-dense"):
        kernel, bias = weights[0], weights[1] if len(weights) > 1 else 0.0
        narrow = kernel.shape[1] < kernel.shape[0]
        sums = np.abs(kernel.T @ kernel if narrow else kernel @ kernel.T).sum(1)
        return x @ (kernel / np.sqrt(sums if narrow else sums[:, None])) + bias
    if name.startswith("aol"):
        kernel, bias = weights
        narrow = kernel.shape[3] < kernel.shape[2] * np.prod(layer.strides)
        rescaled = kernel / np.sqrt(gram_sums(kernel, layer.strides, narrow))
        return convolved(x, rescaled, layer.strides, layer.padding) + bias
    if name.startswith("soc"):
        return skew_series(x, weights[0], layer.terms)[..., : layer.filters] + sum(weights[1:])
    if name.startswith("bcop"):
        kernel = product_of_projectors(weights[0], layer.kernel_size)[:, :, : x.shape[-1], : layer.filters]
        return (circular if layer.padding == "circular" else convolved)(x, kernel) + sum(weights[1:])
    if name.startswith("aoc"):
        return adapted(layer, x) + (weights[-1] if layer.use_bias else 0)
    if name.startswith("bro"):
        border = [k // 2 if layer.padding == "same" else 0 for k in layer.kernel_size]
        return reflected(x, weights[0], layer.filters, border) + weights[1]
    if name == "lires":
        kernel, bias, gain = weights
        kernel = kernel * gain
        kernel[1, 1] += np.eye(2)
        return convolved(x, kernel / np.sqrt(iterated(kernel))) + bias
    if name.startswith("sandwich"):
        return sandwiched(x, layer.activation, *weights)
    if name.startswith("l2-attention"):
        return np.stack([attended(row.reshape(-1, row.shape[-1]), layer.heads, *weights) for row in x]).reshape(x.shape)
    if name.startswith("centering"):
        return x - x.mean(layer.axis, keepdims=True) + sum(weights)
    if name.startswith("batch-lip"):
        beta, mean, variance = weights
        return x - mean + beta * (np.sqrt(variance.max() + 1e-5) if layer.normalize else 1)
    if name == "householder":
        angles = np.tile(weights[0], x.size // 2 // len(weights[0]))
        lines = np.stack([np.sin(angles / 2), -np.cos(angles / 2)], 1)
        pairs = x.reshape(-1, 2)
        return (pairs - 2 * lines * np.minimum((lines * pairs).sum(1), 0)[:, None]).reshape(x.shape)
    if name.startswith(("sll", "cpl")):
        kernel, bias, q = weights[0], weights[1], np.exp(weights[2]) if name.startswith("sll") else weights[1]
        if kernel.ndim == 2:
            matrix, bias = kernel, np.tile(bias, 1)
            sums = (np.abs(kernel.T @ kernel) * q).sum(1) / q
        else:
            basis = np.eye(x[0].size).reshape(-1, *x.shape[1:])
            matrix = convolved(basis, kernel).reshape(x[0].size, -1)
            repeats = matrix.shape[1] // len(q)
            sums, bias = np.tile(gram_sums(kernel, (1, 1), True, q), repeats), np.tile(bias, repeats)
        sums = iterated(kernel) if name.startswith("cpl") else sums
        flat = x.reshape(-1, len(matrix))
        return (flat - 2 * (np.maximum(flat @ matrix + bias, 0) / sums) @ matrix.T).reshape(x.shape)
    height, width = layer.pool_size if hasattr(layer, "pool_size") else (layer.size, layer.size)
    rows, columns = x.shape[1] // height, x.shape[2] // width
    windows = [x[:, i * height :, j * width :][:, :height, :width] for i in range(rows) for j in range(columns)]
    if name == "average":
        pooled = [w.sum((1, 2)) / np.sqrt(height * width) for w in windows]
    elif name == "l2-norm":
        pooled = [np.linalg.norm(w.reshape(len(x), -1, w.shape[-1]), axis=1) for w in windows]
    else:
        pooled = [w.reshape(len(x), -1) for w in windows]
    return np.stack(pooled, 1).reshape(len(x), rows, columns, -1)


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_those_of_the_formulas(name):
    model, shape = built(name)
    x = examples(shape)
    # The margin in the sums is 2e-6 of them, which moves a kernel by 1e-6 of it and 1 / T by 2e-6.
    np.testing.assert_allclose(model(x), expected(name, model.layers[-1], x), rtol=1e-5, atol=1e-5)
    assert model.output_shape[1:] == model(x).shape[1:]
    assert certificate(model)({v.path: v.numpy() for v in model.trainable_variables}) == 1.0


@pytest.mark.parametrize("name", SOME_QUICK)
def test_no_pair_is_steeper_than_the_constant(name):
    model, shape = built(name)
    found = steepest(model, shape)
    assert STEEP.get(name, 0.6) < found <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME_QUICK)
def test_penalty_gradients_agree_with_central_differences(name):
    kind, arguments, shape = CASES[name]
    x, own = keras.Input(shape, dtype="float64"), {"dtype": "float64"}
    units = keras.layers.Conv2D if len(shape) == 3 else keras.layers.Dense
    size = {"kernel_size": 1} if len(shape) == 3 else {}
    h = kind(**arguments, **own)(units(shape[-1], activation="tanh", **size, **own)(x))
    h = keras.layers.Dense(3, activation="tanh", **own)(keras.layers.Flatten(**own)(h))
    critic = keras.Model(x, keras.layers.Dense(1, **own)(h))
    random = np.random.default_rng(3)
    critic.set_weights([0.5 * random.normal(size=v.shape) for v in critic.weights])
    assert departure(critic, tf.constant(examples(shape))) < 1e-6


@pytest.mark.parametrize("name", SOME_QUICK)
def test_layers_survive_saving(name, tmp_path):
    model, shape = built(name, "float32")
    model.save(tmp_path / "model.keras")
    loaded, x = keras.models.load_model(tmp_path / "model.keras"), examples(shape).astype(np.float32)
    np.testing.assert_array_equal(loaded(x), model(x))
    assert loaded.layers[-1].get_config() == model.layers[-1].get_config()


@pytest.mark.parametrize("shape", [(5, 3), (3, 4), (3, 3, 2, 2), (2, 4, 3, 2), (1, 1, 2, 3)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_gram_iteration_bounds_the_norm_from_above(shape, scale):
    kernel = scale * np.random.default_rng(0).normal(size=shape)
    fine = np.fft.fftn(kernel, [64] * (len(shape) - 2), axes=range(len(shape) - 2)).reshape(-1, *shape[-2:])
    norm = np.linalg.norm(fine, 2, axis=(1, 2)).max() ** 2
    for dtype in ("float32", "float64"):
        bound = float(squared_norm_bound(tf.constant(kernel, dtype)))
        # Of rank 3 at most, and 3.5% for each axis with several taps, squared.
        assert norm * (1 - 1e-6) <= bound <= norm * 3 ** (1 / 64) * np.cos(np.pi / 12) ** (-2 * (len(shape) - 2))


def test_a_residual_has_the_mean_of_both_constants():
    x = keras.Input((4,))
    branch = keras.layers.Dense(4, use_bias=False)
    model = keras.Model(x, layers.LipschitzResidual(name="mean")([x, branch(x)]))
    model.set_weights([3 * np.eye(4), np.array(0.7)])
    weights = {v.path: v.numpy() for v in model.trainable_variables}
    share = 1 / (1 + np.exp(-0.7))
    assert certificate(model)(weights) == pytest.approx(share + 3 * (1 - share), rel=1e-5)
    points = examples((4,)).astype(np.float32)
    np.testing.assert_allclose(model(points), (share + 3 * (1 - share)) * points, rtol=1e-5)
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    np.testing.assert_array_equal(copy(points), model(points))
    with pytest.raises(ValueError, match=r"call it on the shortcut and the branch, which have one shape"):
        layers.LipschitzResidual()([x, keras.layers.Dense(3)(x)])


def test_batch_lip_norm_is_that_of_its_authors_with_their_last_factor():
    random, own = np.random.default_rng(0), {"dtype": "float64"}
    x, product = random.normal(size=(50, 4)) * [1, 2, 3, 4] + 5, 1.0
    model, h = keras.Sequential([keras.Input((4,), **own)]), x
    for _ in range(2):
        kernel, beta = np.linalg.qr(random.normal(size=(4, 4)))[0], random.normal(size=4)
        h = h @ kernel
        # deel-ai/deel-torchlip a477697, deel/torchlip/modules/normalization.py:292 and 344; and all scales.
        scale = np.sqrt(h.var(0, ddof=1).max())
        h = (h - h.mean(0)) / scale + beta * np.sqrt(49 / 50)
        h, product = np.sort(h.reshape(50, 2, 2)).reshape(50, 4), product * scale
        for layer in (keras.layers.Dense(4, use_bias=False, **own), layers.BatchLipNorm(0.0, 0.0, **own)):
            model.add(layer)
        model.layers[-2].set_weights([kernel])
        model.layers[-1].beta.assign(beta)
        model.add(layers.GroupSort(**own))
    for _ in range(2):  # the second layer's moments follow the first one's
        model(x, training=True)
    np.testing.assert_allclose(model(x), h * product, rtol=1e-9)
    # The running mean is that of deel-ai/orthogonium d54ed63, orthogonium/layers/normalization.py:29.
    layer = layers.BatchLipNorm(momentum=0.9, **own)
    np.testing.assert_array_equal(layer(x, training=True), x)  # moments from before the call
    np.testing.assert_allclose(layer.moving_mean, 0.1 * x.mean(0))


def test_half_precision_computes_the_rescaling_in_float32():
    for name in ("aol-same", "sll-conv", "soc", "bcop", "l2-norm"):
        model, shape = built(name, "mixed_bfloat16")
        wide, _ = built(name, "float32")
        x = examples(shape).astype(np.float32)
        assert model(x).dtype == tf.bfloat16
        # Eight bits of mantissa, in sums of up to 18 products.
        np.testing.assert_allclose(tf.cast(model(x), tf.float32), wide(x), atol=0.05)
    kernel = built("aol-same", "mixed_bfloat16")[0].layers[-1].effective_kernel()
    np.testing.assert_array_equal(kernel, built("aol-same", "float32")[0].layers[-1].effective_kernel())


def test_first_kernels_nearly_keep_norms():
    x = examples((6, 6, 3), 2).astype(np.float32)
    norms = np.linalg.norm(x.reshape(2, -1), axis=1)
    for layer in (layers.AOLConv2D(5, 3), layers.AOLConv2D(3, 2), layers.AOLDense(4)):
        kept = np.linalg.norm(np.reshape(layer(x), (2, -1)), axis=1) / norms
        assert np.all((kept > 0.8) & (kept <= 1))


@pytest.mark.parametrize("shape", [(8, 8), (3, 3, 8, 12), (3, 3, 12, 8)])
def test_no_entry_of_a_first_gram_matrix_is_of_the_size_of_rounding(shape):
    # Otherwise the signs of rounding would be in the gradient, and another order of sums would train other weights.
    kernel = keras.initializers.deserialize(keras.initializers.serialize(MiddleTap(seed=3)))(shape).numpy()
    matrix = kernel.astype(np.float64)[tuple(slice((t - 1) // 2, (t + 1) // 2) for t in shape[:-2])].reshape(shape[-2:])
    gram = matrix @ matrix.T if shape[-2] <= shape[-1] else matrix.T @ matrix
    assert np.abs(gram).min() > 1e-6
    np.testing.assert_allclose(np.diag(gram), 1, atol=0.2)  # four deviations of the noise, of an 8 x 8 matrix
    outputs = shape[-1] < shape[-2]
    sums = gram_row_sums(tf.constant(kernel), outputs=outputs).numpy()
    assert 1.05 < sums.mean() < 1.6


_MAP, _HEADS = r"got the shape .* it must be \(n, height, width, channels\)", r"got the shape .* a multiple of heads"


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (lambda: layers.AOLConv2D(2, 3), (4,), rf"AOLConv2D {_MAP}"),
        (layers.SLLConv2D, (4,), rf"SLLConv2D {_MAP}"),
        (layers.L2NormPooling2D, (4,), rf"L2NormPooling2D.* {_MAP}"),
        *((layers.SelfAttention, shape, rf"SelfAttention {_MAP}") for shape in ((4, 16), (None, 4, 16))),
        (layers.InvertibleDownsampling, (5, 4, 1), r"size=2\) got the shape .* 5, 4, 1\); height and width must be mu"),
        (layers.HouseholderActivation, (3,), r"HouseholderActivation got the shape .* 3\); its last axis must have"),
        (lambda: layers.LayerCentering(0), (3,), r"LayerCentering\(axis=0\) would mix the examples of a batch"),
        (lambda: AOCConv2D(2, 2, 3), (), r"strides=3, groups=1\): .* strides must be at least 1 and no larger"),
        (lambda: BROConv2D(4, rank=5), (4, 4, 3), r"BROConv2D\(rank=5\) got .* rank from 1 to the larger number .*, 4"),
        (lambda: LiResConv2D(4), (4, 4, 3), r"LiResConv2D\(filters=4, .* it must have as many channels"),
        (lambda: layers.AOLDense(0), (), r"AOLDense\(units=0\): it must be at least 1"),
        (lambda: layers.SandwichDense(0), (), r"SandwichDense\(units=0\): it must be at least 1"),
        (lambda: layers.SandwichDense(2), (None,), r"SandwichDense got the shape .* None\); it must be of a known"),
        (lambda: layers.L2SelfAttention(0), (), r"L2SelfAttention\(heads=0\): it must be at least 1"),
        *((lambda: layers.L2SelfAttention(2), each, _HEADS) for each in ((4,), (None, 4), (None, 2, 4), (3, 5))),
        (lambda: layers.AOLConv2D(1, 3, padding="causal"), (), r"padding='causal'\): it must be 'same' or 'valid'"),
    ],
)
def test_unknown_and_senseless_sizes_are_refused(layer, shape, message):
    with pytest.raises(ValueError, match=message):
        layer()(keras.Input(shape))
