"""Operators and their norms, compared with numpy's SVD of matrices built entry by entry."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from explicit import convolution_matrix, depthwise_matrix, norm

import ganlab
from ganlab import lipschitz
from ganlab.lipschitz.operators import Dense, ReshapedMatrix

pytestmark = pytest.mark.usefixtures("cpus")


def layer(kind, *arguments, **keywords):
    return lambda: getattr(keras.layers, kind)(*arguments, **keywords)


# By name: a layer and the shape of its input.
LAYERS = {
    "dense": (layer("Dense", 5), (7,)),
    "dense-wide": (layer("Dense", 9), (4, 3)),
    "valid": (layer("Conv2D", 3, 3), (6, 7, 2)),
    "same": (layer("Conv2D", 3, 3, padding="same"), (6, 5, 2)),
    "even-same": (layer("Conv2D", 2, (4, 2), padding="same"), (5, 6, 3)),
    "strided-same": (layer("Conv2D", 4, 5, strides=2, padding="same"), (7, 8, 2)),
    "strided-valid": (layer("Conv2D", 4, 3, strides=(2, 3)), (8, 9, 2)),
    "stride-over-taps": (layer("Conv2D", 3, 2, strides=3), (8, 8, 2)),
    "pointwise": (layer("Conv2D", 4, 1), (3, 3, 5)),
    "dilated": (layer("Conv2D", 3, 3, dilation_rate=2, padding="same"), (7, 6, 2)),
    "grouped": (layer("Conv2D", 6, 3, groups=2, padding="same"), (5, 5, 4)),
    "grouped-strided": (layer("Conv2D", 4, 3, groups=2, strides=2), (7, 7, 2)),
    "one-axis": (layer("Conv1D", 3, 4, strides=2, padding="same"), (9, 2)),
    "causal": (layer("Conv1D", 3, 3, dilation_rate=2, padding="causal"), (9, 2)),
    "three-axes": (layer("Conv3D", 2, 2, padding="same"), (3, 4, 3, 2)),
    "depthwise": (layer("DepthwiseConv2D", 3, depth_multiplier=2, padding="same"), (5, 6, 3)),
    "depthwise-strided": (layer("DepthwiseConv2D", 3, strides=2), (7, 7, 3)),
    "depthwise-one-axis": (layer("DepthwiseConv1D", 3, depth_multiplier=2), (8, 3)),
}
TRANSPOSED = {
    "transposed-same": (layer("Conv2DTranspose", 3, 4, strides=2, padding="same"), (3, 4, 2)),
    "transposed-valid": (layer("Conv2DTranspose", 3, 3, strides=2), (4, 3, 2)),
    "transposed-one-axis": (layer("Conv1DTranspose", 3, 3, padding="same"), (6, 2)),
}

# An operator of each kind; the iteration is the same for all.
FOLLOWED = ("dense-wide", "strided-same", "grouped", "causal", "three-axes", "depthwise", "transposed-same")


def built(case):
    make, shape = {**LAYERS, **TRANSPOSED}[case]
    made = make()
    model = keras.Sequential([keras.Input(shape), made])
    kernel = np.random.default_rng(len(case)).normal(size=made.kernel.shape).astype(np.float32)
    ((name, operator),) = lipschitz.operators(model).items()
    assert ganlab.functional.named_weights(model)[name] is made.kernel
    return made, operator, kernel


def matrix_of(made, operator, kernel):
    if isinstance(made, keras.layers.Dense):
        return kernel.T
    geometry = {"strides": made.strides, "dilation": made.dilation_rate, "padding": made.padding}
    if "Depthwise" in type(made).__name__:
        return depthwise_matrix(kernel, operator.input_shape, operator.output_shape, **geometry)
    if "Transpose" in type(made).__name__:
        return convolution_matrix(kernel, operator.output_shape, operator.input_shape, **geometry).T
    return convolution_matrix(kernel, operator.input_shape, operator.output_shape, groups=made.groups, **geometry)


@pytest.mark.parametrize("case", [*LAYERS, *TRANSPOSED])
def test_an_operator_is_its_layer_and_its_matrix(case):
    made, operator, kernel = built(case)
    made.kernel.assign(kernel)
    shape = {**LAYERS, **TRANSPOSED}[case][1]
    example = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    x = example[0] if case == "dense-wide" else example
    y = operator.apply(kernel, x)
    expected = made(example[None])[0]
    np.testing.assert_allclose(y, expected[0] if case == "dense-wide" else expected, rtol=1e-4, atol=1e-5)
    matrix = matrix_of(made, operator, kernel)
    np.testing.assert_allclose(y, (matrix @ x.ravel()).reshape(operator.output_shape), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", [*LAYERS, *TRANSPOSED])
def test_the_adjoint_is_the_transposed_matrix(case):
    made, operator, kernel = built(case)
    y = np.random.default_rng(2).normal(size=operator.output_shape).astype(np.float32)
    expected = matrix_of(made, operator, kernel).T @ y.ravel()
    np.testing.assert_allclose(
        operator.adjoint(kernel, tf.constant(y)), expected.reshape(operator.input_shape), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in FOLLOWED else pytest.mark.slow) for case in (*LAYERS, *TRANSPOSED)]
)
def test_power_iteration_finds_the_norm(case):
    made, operator, kernel = built(case)
    follow = tf.function(lambda k: lipschitz.spectral_norm(operator, k, iterations=2000), autograph=False)
    sigma, vector = follow(tf.constant(kernel))
    expected = norm(matrix_of(made, operator, kernel))
    assert float(sigma) == pytest.approx(expected, rel=1e-3)
    assert vector.shape == operator.input_shape
    assert np.linalg.norm(vector) == pytest.approx(1, rel=1e-5)
    # From the vector it has reached, no iteration is needed.
    assert float(lipschitz.spectral_norm(operator, kernel, vector)[0]) == pytest.approx(float(sigma), rel=1e-5)


@pytest.mark.parametrize("case", [*LAYERS, *TRANSPOSED])
def test_the_bound_is_above_the_norm_and_near_it(case):
    made, operator, kernel = built(case)
    bound, expected = lipschitz.norm_bound(operator, kernel), norm(matrix_of(made, operator, kernel))
    if case in TRANSPOSED:  # taken without borders, which are most of such a small example
        assert expected <= bound < 1.4 * expected
    else:
        assert expected <= bound < (1 + 1e-6) * expected


@pytest.mark.parametrize("case", [case for case in LAYERS if "dense" not in case])
def test_patches_overlap_at_most_as_often_as_the_overlap(case):
    made, operator, kernel = built(case)
    ones = matrix_of(made, operator, np.ones_like(kernel))
    one_output = ones.reshape(*operator.output_shape, -1)[..., 0, :].reshape(-1, ones.shape[1])
    assert (one_output != 0).sum(axis=0).max() <= operator.overlap
    reshaped = lipschitz.ReshapedMatrix.of(kernel)
    assert norm(matrix_of(made, operator, kernel)) <= np.sqrt(operator.overlap) * lipschitz.norm_bound(reshaped, kernel)


@pytest.mark.parametrize(
    ("case", "overlap"),
    [("same", 9), ("strided-same", 9), ("strided-valid", 2), ("stride-over-taps", 1), ("dilated", 9), ("dense", 1)],
)
def test_overlaps_by_hand(case, overlap):
    assert built(case)[1].overlap == overlap


class TestWithoutBorders:
    """Kernels too large for an explicit matrix in `norm_bound`, and small enough for one here."""

    @pytest.fixture(autouse=True)
    def no_explicit_matrix(self, monkeypatch):
        monkeypatch.setattr("ganlab.lipschitz.bounds._WORK", 0)

    @pytest.mark.parametrize("case", [case for case in LAYERS if "dense" not in case])
    def test_the_bound_is_above_the_norm(self, case):
        made, operator, kernel = built(case)
        expected = norm(matrix_of(made, operator, kernel))
        assert expected <= lipschitz.norm_bound(operator, kernel) < 1.5 * expected

    @pytest.mark.parametrize(
        ("filters", "taps", "strides", "shape"),
        [
            (12, 5, 2, (14, 14, 4)),
            pytest.param(8, 3, 1, (11, 11, 6), marks=pytest.mark.slow),
            pytest.param(6, 4, 2, (20, 20, 3), marks=pytest.mark.slow),
        ],
    )
    def test_it_is_near_the_norm_where_borders_are_few(self, filters, taps, strides, shape):
        made = keras.layers.Conv2D(filters, taps, strides=strides, padding="same")
        ((_, operator),) = lipschitz.operators(keras.Sequential([keras.Input(shape), made])).items()
        kernel = np.random.default_rng(0).normal(size=made.kernel.shape)
        expected = norm(matrix_of(made, operator, kernel))
        assert expected <= lipschitz.norm_bound(operator, kernel) < 1.1 * expected

    def test_a_sharp_peak_between_frequencies_is_not_missed(self):
        # 1 + z' + ... + z'^7 with z' = z * exp(-0.3 i) has the norm 8 only at the frequency 0.3. On two channels this
        # is rotating the plane by the angle and adding up.
        angles = 0.3 * np.arange(8)
        rotations = np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]])
        kernel = np.moveaxis(rotations, -1, 0)
        model = keras.Sequential([keras.Input((4000, 2)), keras.layers.Conv1D(2, 8)])
        ((_, operator),) = lipschitz.operators(model).items()
        assert 8 <= lipschitz.norm_bound(operator, kernel) < 1.02 * 8


def test_one_bordered_axis_lies_between_all_and_none(monkeypatch):
    made = keras.layers.Conv2D(16, 5, strides=2, padding="same")
    ((_, operator),) = lipschitz.operators(keras.Sequential([keras.Input((7, 7, 12)), made])).items()
    kernel = np.random.default_rng(0).normal(size=made.kernel.shape)
    expected = norm(matrix_of(made, operator, kernel))
    bounds = []
    for work in (0, 2e7, 1e10):
        monkeypatch.setattr("ganlab.lipschitz.bounds._WORK", work)
        bounds.append(lipschitz.norm_bound(operator, kernel))
    assert bounds[0] > 1.03 * bounds[1] > 1.03**2 * bounds[2]
    assert expected <= bounds[2] < (1 + 1e-6) * expected


def test_a_kernel_that_is_not_finite_has_no_finite_bound():
    operator = lipschitz.ReshapedMatrix.of(np.zeros((3, 2)))
    assert lipschitz.norm_bound(operator, np.full((3, 2), np.nan)) == np.inf
    assert lipschitz.norm_bound(operator, np.zeros((3, 2))) == 0


def test_the_gradient_of_the_estimate_is_that_of_the_norm():
    # d sigma / dK = the outer product of the leading singular vectors, gathered over the places of the convolution.
    made, operator, kernel = built("strided-same")
    kernel = tf.constant(kernel)
    follow = tf.function(lambda k: lipschitz.spectral_norm(operator, k, iterations=2000)[0], autograph=False)
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        sigma = follow(kernel)
    gradient = tape.gradient(sigma, kernel).numpy()
    step = 1e-3 * np.random.default_rng(5).normal(size=kernel.shape)
    ahead, behind = (norm(matrix_of(made, operator, kernel.numpy() + sign * step)) for sign in (1, -1))
    assert np.sum(gradient * step) == pytest.approx((ahead - behind) / 2, rel=1e-2)


@pytest.mark.slow
def test_compiled_and_on_a_zero_kernel():
    _, operator, kernel = built("strided-same")
    compiled = tf.function(lambda k: lipschitz.spectral_norm(operator, k, iterations=20)[0], jit_compile=True)
    eager = lipschitz.spectral_norm(operator, kernel, iterations=20)[0]
    assert float(compiled(kernel)) == pytest.approx(float(eager), rel=1e-4)
    assert float(compiled(np.zeros_like(kernel))) == 0


@pytest.mark.parametrize("operator", [ReshapedMatrix((5,), (12,)), Dense((12,), (5,))])
def test_power_iteration_outside_a_graph_finds_the_singular_vector(operator):
    kernel = np.random.default_rng(3).normal(size=(12, 5)).astype(np.float32)
    left, singular, right = np.linalg.svd(kernel.astype(np.float64))
    sigma, vector = lipschitz.spectral_norm(operator, tf.constant(kernel), iterations=300)
    assert float(sigma) == pytest.approx(singular[0], rel=1e-6)
    leading = left[:, 0] if isinstance(operator, Dense) else right[0]
    assert abs(float(leading @ vector.numpy())) == pytest.approx(1, abs=1e-6)
    # A kernel of zeros leaves the vector as it is, in a graph, too.
    start = tf.constant(leading, tf.float32)
    for iterate in (lipschitz.spectral_norm, tf.function(lipschitz.spectral_norm)):
        sigma, vector = iterate(operator, tf.zeros([12, 5]), start, iterations=3)
        assert float(sigma) == 0
        np.testing.assert_array_equal(vector, start)


def test_channels_first_is_the_same_map():
    last = lipschitz.operators(keras.Sequential([keras.Input((6, 5, 2)), keras.layers.Conv2D(3, 3, strides=2)]))
    layer = keras.layers.Conv2D(3, 3, strides=2, data_format="channels_first")
    first = lipschitz.operators(keras.Sequential([keras.Input((2, 6, 5)), layer]))
    assert list(first.values()) == list(last.values())


class TestOperators:
    def test_of_a_class_of_its_own(self):
        class Critic(keras.Model):
            def __init__(self):
                super().__init__()
                self.convolution, self.score = keras.layers.Conv2D(4, 3), keras.layers.Dense(1)

            def call(self, x):
                return self.score(keras.ops.reshape(self.convolution(x), (-1, 64)))

        critic = Critic()
        critic(keras.Input((6, 6, 2)))
        convolution, score = lipschitz.operators(critic).values()
        assert (convolution.input_shape, convolution.output_shape) == ((6, 6, 2), (4, 4, 4))
        assert (score.input_shape, score.output_shape) == ((64,), (1,))

    def test_of_a_nested_model_with_normalization(self):
        x = keras.Input((4, 4, 2))
        inner = keras.Sequential([keras.layers.Conv2D(3, 3), keras.layers.LayerNormalization(axis=[1, 2, 3])])
        model = keras.Model(x, keras.layers.Dense(1)(keras.layers.Flatten()(inner(x))))
        assert [type(o).__name__ for o in lipschitz.operators(model).values()] == ["Convolution", "Dense"]

    @pytest.mark.parametrize(
        ("strange", "shape"),
        [
            (lambda: keras.layers.EinsumDense("ab,bc->ac", 3), (4,)),
            (lambda: keras.layers.SeparableConv2D(3, 3), (5, 5, 2)),
            (lambda: type("Mine", (keras.layers.Dense,), {})(3), (4,)),
        ],
        ids=["einsum", "separable", "subclass"],
    )
    def test_others_are_named(self, strange, shape):
        strange = strange()
        model = keras.Sequential([keras.Input(shape), strange])
        with pytest.raises(
            ganlab.IncompatibleError, match=rf"The linear map of .*{strange.name!r} \({type(strange).__name__}\)"
        ):
            lipschitz.operators(model)
        assert lipschitz.operators(model, reshaped=True)

    def test_reshaped_is_the_matrix_of_the_outputs(self):
        made = keras.layers.Conv2D(5, 3)
        ((_, operator),) = lipschitz.operators(keras.Sequential([keras.Input((8, 8, 2)), made]), reshaped=True).items()
        kernel = np.random.default_rng(0).normal(size=(3, 3, 2, 5)).astype(np.float32)
        assert (operator.input_shape, operator.output_shape) == ((5,), (18,))
        expected = norm(kernel.reshape(18, 5))
        assert lipschitz.norm_bound(operator, kernel) == pytest.approx(expected, rel=1e-6)
        assert float(lipschitz.spectral_norm(operator, kernel, iterations=200)[0]) == pytest.approx(expected, rel=1e-3)
