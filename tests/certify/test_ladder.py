"""Certificates as a ladder: each rung is above every slope, and the tight ones are what others compute."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from critics import points, weights_of
from ganlab_certify.attacks import tiled_constant
from ganlab_certify.averaged import averaged_bound
from ganlab_certify.boxes import within
from ganlab_certify.keras_networks import network_of
from ganlab_certify.patterns import exact_constant
from ganlab_certify.semidefinite import program_of, semidefinite_bound
from ganlab_certify.splitting import _bounds, split_bound
from scipy.optimize import minimize

from ganlab import layers as ours
from ganlab.functional import input_gradient
from ganlab.layers import Dropout, FullSort, GroupSort
from ganlab.lipschitz import ACTIVATION_SLOPES, attacked_constant, ladder


def critic(widths, activation="relu", *, inputs=2, seed=0):
    """A critic of dense layers; the activation is a name or makes a layer."""
    keras.utils.set_random_seed(seed)
    x = y = keras.Input((inputs,))
    for width in widths:
        y = keras.layers.Dense(width, kernel_initializer="he_normal", bias_initializer="random_normal")(y)
        y = keras.layers.Activation(activation)(y) if isinstance(activation, str) else activation()(y)
    return keras.Model(x, keras.layers.Dense(1)(y))


CRITICS = {
    "relu": lambda: critic([6, 5]),
    "leaky": lambda: critic([6, 5], lambda: keras.layers.LeakyReLU(0.3)),
    "tanh": lambda: critic([7, 5, 4], "tanh", inputs=3),
    "silu": lambda: critic([6, 5], "silu"),
    "sorted": lambda: critic([6, 4], GroupSort),
    "sorted in threes": lambda: critic([6, 6], lambda: GroupSort(3)),
    "sorted in full": lambda: critic([5, 4], FullSort),
    "dropout": lambda: critic([6, 5], lambda: Dropout(0.25)),
    "linear": lambda: critic([], inputs=4),
}


def chained(model):
    (chain,) = network_of(model, weights_of(model)).chains()
    return chain


def slopes(model, x):
    x = tf.constant(x, tf.float32)
    gradient, _ = input_gradient(lambda x: tf.reshape(model(x), [-1]), x)
    return np.linalg.norm(np.asarray(gradient).reshape(len(x), -1), axis=1)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in ("leaky", "dropout") else ()) for n in CRITICS]
)
def test_every_rung_is_above_every_slope_and_below_the_rung_before(name):
    model = CRITICS[name]()
    chain = chained(model)
    steepest = slopes(model, points(model, spread=2.0)).max()
    averaged, semidefinite = averaged_bound(chain), semidefinite_bound(chain, seconds=5)
    product = np.linalg.norm(chain.last)
    for stage in chain.stages:
        product *= np.linalg.norm(stage.matrix, 2) * max(np.abs(stage.lower).max(), np.abs(stage.upper).max())
    assert steepest <= semidefinite * (1 + 1e-5)
    assert semidefinite <= averaged * (1 + 2e-3)  # those that sort start a thousandth above
    assert averaged <= product * (1 + 1e-9)
    rungs = {rung.name: rung for rung in ladder(model, weights_of(model), seconds=5)}
    assert rungs["products"].bound == pytest.approx(product, rel=1e-5)
    assert rungs["averaged"].bound == pytest.approx(averaged)
    assert rungs["semidefinite"].bound <= averaged
    assert (rungs["box"].bound, rungs["box"].note) == (None, "No box is given.")


@pytest.mark.parametrize("name", ACTIVATION_SLOPES)
def test_the_least_slopes_of_activations(name):
    x = tf.constant(np.concatenate([np.linspace(-40, 40, 160001), [0.0]]), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(getattr(keras.activations, name)(x))
    least = float(tf.reduce_min(tape.gradient(y, x)))
    claimed, _ = ACTIVATION_SLOPES[name]
    assert claimed <= least + 1e-6
    assert claimed == pytest.approx(least, abs=0.002)


@pytest.mark.parametrize("name", ["tanh", "leaky", "sorted in threes"])
def test_the_gradient_of_the_semidefinite_bound(name):
    program = program_of(chained(CRITICS[name]()))
    logs = program.evaluated(None)[0]
    logs += np.linspace(0.5, 1.0, len(logs))
    logs[-len(program.steps[-1].radius) :] += 1.0  # the larger matrices of earlier weights need larger ones behind
    _, _, value, gradient = program.evaluated(logs, 0.1)
    assert np.isfinite(value)
    ends = [[program.evaluated(logs + d, 0.1)[2] for d in e * np.eye(len(logs))] for e in (1e-6, -1e-6)]
    differences = (np.array(ends[0]) - ends[1]) / 2e-6
    np.testing.assert_allclose(gradient, differences, atol=1e-7)


def test_weights_that_overflow_have_no_bound():
    program = program_of(chained(CRITICS["relu"]()))
    with np.errstate(over="ignore", invalid="ignore"):
        assert program.evaluated(program.evaluated(None)[0] + 800.0)[2] == np.inf


def lipsdp(matrices, last, logs):
    """The least bound with these multipliers, from the matrix inequality as the paper (theorem 2) writes it."""
    sizes = [matrices[0].shape[1], *(len(m) for m in matrices)]
    start = np.cumsum([0, *sizes])
    multipliers = np.split(np.exp(logs), np.cumsum(sizes[1:])[:-1])
    table = np.zeros((start[-1], start[-1]))
    for i, (matrix, t) in enumerate(zip(matrices, multipliers, strict=True)):
        before, after = slice(start[i], start[i + 1]), slice(start[i + 1], start[i + 2])
        # Slopes in [0, 1]: -2 v' T v + 2 v' T W x is never negative.
        table[after, before] += t[:, None] * matrix
        table[before, after] += (t[:, None] * matrix).T
        table[after, after] -= 2 * np.diag(t)
    table[start[-2] :, start[-2] :] += np.outer(last, last)
    rest = table[sizes[0] :, sizes[0] :]
    if np.linalg.eigvalsh(rest)[-1] >= 0:
        return np.inf
    corner = table[: sizes[0], sizes[0] :]
    return np.sqrt(max(np.linalg.eigvalsh(corner @ np.linalg.solve(-rest, corner.T))[-1], 0.0))


def test_the_semidefinite_bound_is_that_of_lipsdp():
    chain = chained(critic([3, 3]))
    matrices = [stage.matrix for stage in chain.stages]
    found = semidefinite_bound(chain, seconds=20, tolerance=1e-9)
    starts = np.random.default_rng(0).normal(size=(6, 6)) * 0.5 + np.log(np.linalg.norm(chain.last) ** 2 + 1)
    options = {"maxiter": 8000, "maxfev": 8000, "xatol": 1e-9, "fatol": 1e-12, "adaptive": True}
    others = [
        minimize(lambda logs: lipsdp(matrices, chain.last, logs), start, method="Nelder-Mead", options=options).fun
        for start in starts + np.linspace(0, 3, 6)[:, None]
    ]
    assert found == pytest.approx(min(others), rel=3e-4)


def pieces(chain, x):
    """The slopes of a chain of rectifiers at points of the line, from its signs there."""
    gradient, y = np.ones((len(x), 1)), x[:, None]
    for stage in chain.stages:
        before = y @ stage.matrix.T + stage.bias
        sign = np.where(before > 0, 1.0, stage.kink)
        gradient, y = sign * (gradient @ stage.matrix.T), sign * before
    return np.abs(gradient @ chain.last)


def kinks(chain):
    """Every point of the line at which a rectifier of two stages changes its sign, from crossings of straight lines."""
    first, second = chain.stages
    ends = np.sort(-first.bias / first.matrix[:, 0])
    middles = np.concatenate([[ends[0] - 1], (ends[1:] + ends[:-1]) / 2, [ends[-1] + 1]])
    found = list(ends)
    for middle in middles:
        sign = np.where(first.matrix[:, 0] * middle + first.bias > 0, 1.0, first.kink)
        slope = second.matrix @ (sign * first.matrix[:, 0])
        offset = second.matrix @ (sign * first.bias) + second.bias
        found += list(-offset / slope)
    return np.sort(found)


@pytest.mark.parametrize("width", [5, pytest.param(16, marks=pytest.mark.slow)])
def test_the_exact_rung_is_the_steepest_of_all_pieces(width):
    chain = chained(critic([width, width], inputs=1))
    ends = kinks(chain)
    middles = np.concatenate([[ends[0] - 1], (ends[1:] + ends[:-1]) / 2, [ends[-1] + 1]])
    lower, upper = exact_constant(chain)
    assert lower == upper == pytest.approx(pieces(chain, middles).max(), rel=1e-9)


def test_a_search_that_is_not_finished_is_sound():
    chain = chained(critic([16, 16]))
    lower, upper = exact_constant(chain, seconds=0.0)
    assert lower == 0
    assert upper == pytest.approx(averaged_bound(chain))


@pytest.mark.parametrize(
    ("widths", "inputs"), [([21] * 3, 2), ([22] * 3, 2), ([6], 6), pytest.param([20], 5, marks=pytest.mark.slow)]
)
def test_a_finished_search_is_the_constant_itself(widths, inputs):
    model = critic(widths, inputs=inputs)
    (rung,) = ladder(model, weights_of(model), rungs=("exact",), seconds=20)
    assert rung.note == ""
    assert max(slopes(model, points(model, 20_000, spread)).max() for spread in (0.1, 1, 10)) <= rung.bound * (1 + 1e-5)
    assert rung.lower <= rung.bound <= rung.lower * (1 + 1e-5)


def test_a_search_that_is_not_finished_is_not_above_the_rungs_before_it():
    model = critic([40, 40], inputs=6)
    before, rung = ladder(model, weights_of(model), rungs=("semidefinite", "exact"), seconds=1)
    assert rung.note == "not finished"
    assert 0 < slopes(model, points(model, spread=2.0)).max() <= rung.bound == before.bound


def test_no_slope_is_taken_on_a_kink():
    model = critic([3], inputs=1)  # 2 relu(x + 9) - relu(x) + relu(-x)
    for variable, values in zip(model.weights, ([[1, -1, 1]], [0, 0, 9], [[-1], [1], [2]], [0]), strict=True):
        variable.assign(values)
    chain = chained(model)
    for x, slope in ((0.5, 1.0), (0.0, 0.0)):
        assert (
            _bounds(chain, [np.abs(s.matrix) for s in chain.stages], np.array([[x]]), np.zeros((1, 1)), 0.0)[0] == slope
        )


def test_a_box_narrows_the_bound_and_holds_in_it():
    model = critic([16, 16], seed=3)
    chain = chained(model)
    low, high = np.array([1.0, -0.5]), np.array([1.5, 0.0])
    local = semidefinite_bound(within(chain, low, high), seconds=5)
    inside = np.random.default_rng(0).uniform(low, high, size=(5000, 2))
    assert slopes(model, inside).max() <= local * (1 + 1e-5)
    assert local < 0.9 * semidefinite_bound(chain, seconds=5)
    _, exact = exact_constant(chain, box=(low, high))
    assert slopes(model, inside).max() == pytest.approx(exact, rel=1e-5)
    (rung,) = ladder(model, weights_of(model), box=(low, high), rungs=("box",), seconds=5)
    assert exact <= rung.bound <= 1.01 * exact * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("below", [0.0, 0.3, 2.0])
def test_splitting_a_box_finds_the_constant_in_it(below):
    chain = chained(critic([8, 6, 5], lambda: keras.layers.LeakyReLU(below), seed=4))
    low, high = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    _, exact = exact_constant(chain, box=(low, high))
    found, bound = split_bound(chain, low, high, seconds=20, tolerance=0.005)
    assert found <= exact * (1 + 1e-9) <= bound <= 1.00501 * exact
    stopped = split_bound(chain, low, high, seconds=0.0)
    assert stopped == (0.0, np.inf)  # nothing was looked at yet
    within_little = split_bound(chain, low, high, seconds=20, tolerance=1.0)
    assert exact <= within_little[1]


@pytest.mark.parametrize("size", [0.5, 0.02])
def test_every_part_of_a_split_box_is_bounded(size):
    chain = chained(critic([8, 6, 5], lambda: keras.layers.LeakyReLU(0.1), seed=5))
    random = np.random.default_rng(0)
    middle, half = random.uniform(-1, 1, size=(500, 2)), random.uniform(0.01 * size, size, size=(500, 2))
    sizes = [np.abs(s.matrix) for s in chain.stages]
    _, loose = _bounds(chain, sizes, middle, half, np.inf)
    _, bounds = _bounds(chain, sizes, middle, half, 0.0)
    assert (bounds <= loose).all()
    assert (bounds < 0.99 * loose).any()  # all patterns are tried where few signs are open
    for _ in range(100):
        x = middle + half * random.uniform(-1, 1, size=(500, 2))
        slope, _ = _bounds(chain, sizes, x, 0 * half, np.inf)
        assert (slope <= bounds).all()


def test_an_attack_finds_the_steepest_piece():
    model = critic([8, 8], seed=2)
    found = attacked_constant(lambda x: tf.reshape(model(x), [-1]), points(model, 500), steps=50)
    lower, upper = exact_constant(chained(model))
    assert 0.95 * lower <= found <= upper * (1 + 1e-4)


def test_an_attack_looks_around_zero_too():
    angles = np.linspace(0, 2 * np.pi, 200)
    ring = 2 * np.column_stack([np.cos(angles), np.sin(angles)])
    found = attacked_constant(lambda x: tf.nn.relu(1 - 100 * tf.norm(x, axis=1)), ring, steps=10)
    assert found == pytest.approx(100, rel=1e-4)


def test_an_attack_by_tiles_finds_where_all_places_are_steep():
    kernel = np.random.default_rng(0).normal(size=(2, 2, 3, 1)).astype(np.float32)

    def scores(x, labels):
        rectified = tf.nn.relu(tf.nn.conv2d(x, kernel, 2, "VALID") - 3.0)
        return tf.reduce_mean(rectified, axis=[1, 2, 3]) * tf.gather([1.0, 3.0, -2.0], labels)

    starts = np.random.default_rng(1).normal(size=(64, 8, 8, 3))
    # Sixteen places are averaged, each with the same slope.
    steepest = 3.0 * np.linalg.norm(kernel) * np.sqrt(16) / 16
    assert tiled_constant(scores, starts, 3, seconds=2) == pytest.approx(steepest, rel=1e-5)
    assert tiled_constant(scores, starts[:, :7], 3, seconds=2) == 0.0


def test_critics_that_are_not_understood_say_so():
    x = keras.Input((2,))
    y = keras.layers.Dense(4, name="first")(x)
    model = keras.Model(x, keras.layers.Dense(1)(keras.layers.Maximum(name="most")([y, keras.layers.ReLU()(y)])))
    found = {rung.name: rung for rung in ladder(model, weights_of(model))}
    assert found["products"].bound > 0
    assert "layer 'most' (Maximum): it joins branches otherwise" in found["semidefinite"].note
    assert found["semidefinite"].bound is None


def test_large_critics_are_not_searched():
    model = critic([40, 40], inputs=7)
    (rung,) = ladder(model, weights_of(model), rungs=("exact",))
    assert (rung.bound, rung.note) == (None, "It has 80 units, too many to search all signs of; at most 64.")


def test_a_layer_that_is_called_twice_is_two_stages():
    x = keras.Input((3,))
    twice = keras.layers.Dense(3, activation="tanh")
    model = keras.Model(x, keras.layers.Dense(1)(twice(twice(x))))
    chain = chained(model)
    assert [stage.matrix.shape for stage in chain.stages] == [(3, 3), (3, 3)]
    assert slopes(model, points(model, spread=2.0)).max() <= semidefinite_bound(chain, seconds=2) * (1 + 1e-5)


@pytest.mark.parametrize("kind", ["points", "images"])
def test_layers_of_constant_one_are_part_of_a_chain(kind):
    if kind == "points":
        x = keras.Input((3,))
        y = ours.BatchLipNorm()(ours.LayerCentering()(keras.layers.ReLU()(ours.AOLDense(6)(x))))
    else:
        from ganlab_builtin import layers as further

        x = keras.Input((4, 4, 2))
        y = ours.InvertibleDownsampling()(keras.layers.ReLU()(ours.SkewConv2D(4)(x)))
        y = further.BROConv2D(4, 1)(further.AOCConv2D(4, 2, padding="same")(y))
        y = ours.ScaledAveragePooling2D()(keras.layers.ReLU()(ours.OrthogonalConv2D(3)(ours.AOLConv2D(4, 1)(y))))
    model = keras.Model(x, keras.layers.Dense(1)(keras.layers.Flatten()(y)))
    random = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(random.normal(size=variable.shape))
    chain = chained(model)
    given = points(model, 300, 2.0)
    found = given.reshape(300, -1)
    for stage in chain.stages:
        found = stage.apply(found @ stage.matrix.T + stage.bias)
    np.testing.assert_allclose(found @ chain.last + chain.bias, np.ravel(model(given)), rtol=1e-4, atol=1e-4)
    rungs = {r.name: r.bound for r in ladder(model, weights_of(model), seconds=2, rungs=("products", "semidefinite"))}
    assert slopes(model, given).max() <= rungs["semidefinite"] * (1 + 1e-5) <= rungs["products"] * (1 + 1e-4)


def test_a_cell_that_the_solver_gives_up_on_counts(monkeypatch):
    import scipy.optimize

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: scipy.optimize.OptimizeResult(status=4, x=None))
    model = critic([3, 2])
    _, upper = exact_constant(chained(model), seconds=10)
    assert upper * (1 + 1e-6) >= slopes(model, points(model, spread=2.0)).max()
