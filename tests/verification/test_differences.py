"""Gradients compared with differences, on losses whose gradients are known; and float64 graphs, with numpy."""

import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify.differences import slopes, worst
from ganlab_verify.doubling import Double

WEIGHTS = {"kernel": np.linspace(-1.0, 1.5, 12).reshape(3, 4), "bias": np.array([0.5, -0.25])}
DOUBLE = float(np.finfo(np.float64).eps)


def loss(weights):
    return float(np.sum(np.sin(weights["kernel"])) + np.prod(weights["bias"]))


def gradient(weights):
    return {"kernel": np.cos(weights["kernel"]), "bias": weights["bias"][::-1]}


def held(loss, claimed, *, terms=10.0, weights=WEIGHTS, precision=DOUBLE):
    return {s.where: s for s in slopes(loss, weights, claimed, terms=terms, precision=precision)}


def test_a_right_gradient_agrees_along_every_direction():
    found = held(loss, gradient(WEIGHTS))
    assert list(found) == ["", "kernel", "bias"]
    assert not any(s.departs or s.vague for s in found.values())
    assert worst(list(found.values())).error < 1e-8


@pytest.mark.parametrize("name", ["kernel", "bias"])
@pytest.mark.parametrize("factor", [0.0, 0.5, 0.999, 1.01, -1.0])
def test_a_wrong_factor_is_found_in_its_variable_alone(name, factor):
    right = gradient(WEIGHTS)
    found = held(loss, right | {name: factor * right[name]})
    assert [s.where for s in found.values() if s.departs and s.where] == [name]
    assert found[name].error == pytest.approx(abs(1 - factor) / max(1, abs(factor)), rel=0.8)


def test_an_error_at_right_angles_to_the_gradient_is_found():
    right = gradient(WEIGHTS)["bias"]
    found = held(loss, gradient(WEIGHTS) | {"bias": right + 0.1 * right[::-1] * [1, -1]})
    assert found["bias"].departs


def test_nearby_kinks_and_jumps_do_no_harm():
    def jumping(weights):
        # Two millionths away the loss jumps, as a penalty on the slopes of rectifiers does.
        return loss(weights) + 0.1 * np.sum(weights["kernel"] > WEIGHTS["kernel"] + 2e-6)

    assert not any(s.departs for s in held(jumping, gradient(WEIGHTS)).values())


def test_a_slope_lost_in_rounding_is_vague():
    def hidden(weights):
        return 1e10 + 1e-4 * loss(weights)

    small = {name: 1e-4 * value for name, value in gradient(WEIGHTS).items()}
    found = held(hidden, small, terms=2e10)
    assert all(s.vague and not s.departs for s in found.values())
    # Nothing can be concluded, even if it is wrong.
    assert not any(s.departs for s in held(hidden, {n: 2 * g for n, g in small.items()}, terms=2e10).values())


def test_a_gradient_of_zero_where_nothing_changes_is_right():
    found = held(lambda weights: 3.0, {name: np.zeros_like(w) for name, w in WEIGHTS.items()})
    assert all(s.vague and s.error == 0 for s in found.values())


def run(function, arguments):
    single = tf.nest.map_structure(lambda x: tf.constant(x), arguments)
    traced = Double(function, single)
    return traced, traced(arguments)


def test_a_graph_in_float64_is_as_exact_as_numpy():
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)

    def function(given):
        y = tf.cast(tf.linalg.matmul(given["x"], given["x"], transpose_a=True), tf.float32) / 3.0
        with tf.GradientTape() as tape:
            tape.watch(y)
            total = tf.reduce_sum(tf.exp(y) * tf.constant([1.0, 2.0, 3.0]))
        return {"y": y, "gradient": tape.gradient(total, y), "half": tf.cast(tf.cast(y, tf.bfloat16), tf.float32)}

    _, found = run(function, {"x": x})
    long = x.astype(np.float64)
    y = long.T @ long / 3.0
    np.testing.assert_allclose(found["y"], y, rtol=1e-14)
    np.testing.assert_allclose(found["gradient"], np.exp(y) * [1, 2, 3], rtol=1e-13)
    np.testing.assert_allclose(found["half"], y, rtol=1e-14)


def test_branches_loops_and_functions_are_in_float64_too():
    def function(given):
        x = given["x"]
        (looped,) = tf.while_loop(lambda v: True, lambda v: (v / 3.0,), (x,), maximum_iterations=3)
        chosen = tf.cond(tf.equal(given["n"] % 2, 0), lambda: tf.sqrt(x), lambda: tf.zeros_like(x))
        return {"looped": looped, "chosen": chosen, "called": tf.function(lambda v: tf.sin(v) * 0.5)(x)}

    x = np.linspace(0.1, 2.0, 7).astype(np.float32)
    _, found = run(function, {"x": x, "n": np.int64(4)})
    long = x.astype(np.float64)
    np.testing.assert_allclose(found["looped"], long / 27.0, rtol=1e-14)
    np.testing.assert_allclose(found["chosen"], np.sqrt(long), rtol=1e-14)
    np.testing.assert_allclose(found["called"], np.sin(long) / 2, rtol=1e-14)


def test_random_numbers_and_operations_without_a_float64_kernel_stay_in_float32():
    def function(given):
        noise = tf.random.stateless_normal([4], seed=[1, 2])
        image = tf.image.resize(given["x"], (6, 6))
        (slope,) = tf.gradients(tf.reduce_sum(image * image), [given["x"]])
        return {"noise": noise * 1.0, "image": image, "slope": slope}

    x = np.random.default_rng(0).standard_normal((1, 3, 3, 2)).astype(np.float32)
    traced, found = run(function, {"x": x})
    np.testing.assert_array_equal(found["noise"], tf.random.stateless_normal([4], seed=[1, 2]).numpy())
    np.testing.assert_allclose(found["image"], tf.image.resize(x, (6, 6)).numpy(), rtol=1e-5)
    assert found["image"].dtype == np.float64
    single = traced.single({"x": tf.constant(x)})
    np.testing.assert_allclose(found["slope"], single["slope"].numpy(), rtol=1e-5)


def test_a_given_tensor_replaces_the_computed_one():
    def function(given):
        return {"y": tf.stop_gradient(given["x"] * 2.0, name="held") + given["x"]}

    x = np.array([1.0, 2.0], np.float32)
    traced, found = run(function, {"x": x})
    (name,) = traced.named("held")
    np.testing.assert_array_equal(found["y"], [3.0, 6.0])
    np.testing.assert_array_equal(traced({"x": x}, given={name: np.zeros(2)})["y"], [1.0, 2.0])
