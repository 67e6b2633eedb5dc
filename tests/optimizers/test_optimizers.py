import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from making import optimizer as make

import ganlab


def filled(optimizer, updates):
    """The optimizer as training makes it: from its config, with the length of the run."""
    config = optimizer.get_config()
    if config["learning_rate"]["config"]["decay_steps"] is None:
        config["learning_rate"]["config"]["decay_steps"] = updates
    return type(optimizer).from_config(config)


def rates(optimizer, steps):
    schedule = optimizer._learning_rate
    traced = tf.function(schedule, input_signature=[tf.TensorSpec([], tf.int64)])
    return [float(traced(tf.constant(step, tf.int64))) for step in steps]


def updated(optimizer, gradients, start=1.0):
    variable = keras.Variable(start, dtype="float32")
    values = []
    for gradient in gradients:
        optimizer.apply([tf.constant(gradient)], [variable])
        values.append(float(variable))
    return values


def test_adam_has_the_moments_of_the_gradient_penalty_paper():
    adam = make("adam")
    assert isinstance(adam, keras.optimizers.Adam)
    config = adam.get_config()
    assert (config["learning_rate"], config["beta_1"], config["beta_2"]) == (pytest.approx(1e-4), 0.5, 0.9)
    # After gradients 2 and -1 the first moment is .5 * 1 - .5 * 1 = 0: the second update is nothing.
    first, second = updated(make("adam", learning_rate=0.1), [2.0, -1.0])
    assert first == pytest.approx(0.9, abs=1e-6)
    assert second == pytest.approx(first, abs=1e-6)


def test_rmsprop_divides_by_the_running_root_mean_square():
    # v = .01 g^2 after one update: the step is lr g / (.1 |g|) = 10 lr.
    assert updated(make("rmsprop", learning_rate=0.01), [3.0]) == [pytest.approx(0.9, abs=1e-6)]
    assert make("rmsprop").get_config()["learning_rate"] == pytest.approx(5e-5)


def test_rmsprop_still_normalizes_small_gradients():
    # Keras adds its usual epsilon of 1e-7 under the root, where it would make this step about a third as long.
    assert updated(make("rmsprop", learning_rate=0.01), [1e-3]) == [pytest.approx(0.9, abs=1e-3)]


def test_sgd_steps_by_the_gradient_and_with_momentum_by_its_velocity():
    assert updated(make("sgd", learning_rate=0.1), [2.0, 2.0]) == pytest.approx([0.8, 0.6])
    # Velocities -.2 and .5 * -.2 - .2 = -.3.
    assert updated(make("sgd", learning_rate=0.1, momentum=0.5), [2.0, 2.0]) == pytest.approx([0.8, 0.5])
    # Nesterov looks ahead: steps m v - lr g = .5 * -.2 - .2 and .5 * -.3 - .2.
    nesterov = make("sgd", learning_rate=0.1, momentum=0.5, nesterov=True)
    assert updated(nesterov, [2.0, 2.0]) == pytest.approx([0.7, 0.35])


@pytest.mark.parametrize("learning_rate", [0.02, None])
def test_optimistic_adam_is_algorithm_1_of_daskalakis_et_al(learning_rate):
    given = {"learning_rate": 0.02} if learning_rate else {"learning_rate": 0.02, "schedule": "linear"}
    optimizer = make("optimistic_adam", beta_1=0.5, beta_2=0.9, epsilon=1e-3, **given)
    optimizer = type(optimizer).from_config(optimizer.get_config()) if learning_rate else filled(optimizer, 10)
    start, gradients = np.linspace(-1, 1, 6, dtype=np.float32), np.random.default_rng(0).normal(size=(10, 6))
    variable = keras.Variable(start)
    optimizer.build([variable])
    x, m, v, last = start.astype(np.float64), 0.0, 0.0, 0.0
    for t, g in enumerate(gradients, start=1):
        optimizer.apply([tf.constant(g, tf.float32)], [variable])
        m, v = 0.5 * m + 0.5 * g, 0.9 * v + 0.1 * g**2
        rate = learning_rate or 0.02 * (1 - (t - 1) / 10)
        step = rate * (m / (1 - 0.5**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)
        x, last = x - 2 * step + last, step
        np.testing.assert_allclose(variable.numpy(), x, rtol=1e-5, atol=1e-6)


def orthogonalized(matrix):
    """Line 5 of muon.py (KellerJordan/Muon, 857d1ad), on singular values, each of which its polynomial maps alone."""
    u, values, v = np.linalg.svd(matrix, full_matrices=False)
    values /= np.sqrt(np.sum(values**2))
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return u * values @ v


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (3, 2, 2, 5)])
def test_muon_orthogonalizes_nesterovs_momentum(shape):
    optimizer = make("muon", learning_rate=0.02, momentum=0.9, weight_decay=0.3)
    optimizer = type(optimizer).from_config(optimizer.get_config())
    random = np.random.default_rng(0)
    x, bias, momentum = random.normal(size=shape), np.ones(shape[-1]), 0.0
    variables = [keras.Variable(x.astype(np.float32)), keras.Variable(bias), keras.Variable(x, name="score")]
    adam = make("adamw", learning_rate=0.02, weight_decay=0.3, beta_1=0.5)
    others = [keras.Variable(bias), keras.Variable(x)]
    for g in random.normal(size=(6, *shape)):
        gradients = [tf.constant(part, tf.float32) for part in (g, g.reshape(-1, shape[-1])[0], g)]
        optimizer.apply(gradients, variables)
        adam.apply(gradients[1:], others)
        momentum = 0.9 * momentum + 0.1 * g
        step = orthogonalized((0.1 * g + 0.9 * momentum).reshape(-1, shape[-1]))
        x = x * (1 - 0.02 * 0.3) - 0.02 * 0.2 * np.sqrt(max(step.shape)) * step.reshape(shape)
        np.testing.assert_allclose(variables[0].numpy(), x, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(variables[1:], others, strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())
    assert len(optimizer.variables) == 2 + 1 + 2 + 2  # a momentum alone for the matrix


def test_extragradient_steps_by_the_gradient_and_looks_as_far_ahead():
    assert updated(make("extragradient", learning_rate=0.1), [2.0, 2.0]) == pytest.approx([0.8, 0.6])
    optimizer = filled(make("extragradient", learning_rate=0.4, schedule="linear"), 4)
    assert updated(optimizer, [0.0, 0.0]) == [1.0, 1.0]
    (ahead,) = optimizer.look_ahead([tf.constant([2.0])], [tf.constant([1.0])])
    assert float(ahead[0]) == pytest.approx(1.0 - 0.2 * 2.0)  # half of the updates are made


@pytest.mark.parametrize("name", ["adam", "adamw", "extragradient", "muon", "optimistic_adam", "rmsprop", "sgd"])
def test_schedules_fall_from_the_start_to_the_final_fraction_and_stay(name):
    steps = [0, 25, 50, 100, 1000]
    cosine = filled(make(name, learning_rate=0.2, schedule="cosine"), 100)
    quarter = 0.5 * (1 + math.cos(math.pi / 4))
    assert rates(cosine, steps) == pytest.approx([0.2, 0.2 * quarter, 0.1, 0.0, 0.0], abs=1e-8)
    linear = filled(make(name, learning_rate=0.2, schedule="linear", final_fraction=0.1), 100)
    assert rates(linear, steps) == pytest.approx([0.2, 0.155, 0.11, 0.02, 0.02], rel=1e-6)


def test_explicit_decay_steps_are_unchanged():
    optimizer = filled(make("adam", learning_rate=0.2, schedule="linear", decay_steps=10), 100)
    assert rates(optimizer, [5, 10]) == pytest.approx([0.1, 0.0])


def test_a_schedule_follows_the_updates_inside_a_graph():
    optimizer = filled(make("sgd", learning_rate=1.0, schedule="linear"), 4)
    variable = keras.Variable(0.0)
    optimizer.build([variable])

    @tf.function
    def run():
        for _ in tf.range(5):
            optimizer.apply([tf.constant(1.0)], [variable])

    run()
    # Rates 1, 3/4, 1/2, 1/4, 0.
    assert float(variable) == pytest.approx(-2.5)


def test_the_config_survives_serialization_with_and_without_the_length():
    optimizer = make("adam", schedule="cosine", final_fraction=0.25)
    assert optimizer.get_config()["learning_rate"]["config"]["decay_steps"] is None
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(filled(optimizer, 8)))
    assert again.get_config() == filled(optimizer, 8).get_config()
    assert rates(again, [8]) == pytest.approx([0.25e-4])


def test_a_schedule_of_unknown_length_fails_eagerly_and_in_a_graph():
    optimizer = make("adam", schedule="cosine")
    message = r"decay_steps is None, which stands for the whole run.*give the optimizer decay_steps"
    with pytest.raises(ganlab.ConfigError, match=message):
        updated(optimizer, [1.0])
    with pytest.raises(ganlab.ConfigError, match=message):
        tf.function(optimizer._learning_rate)(tf.constant(0))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "sgd",
            {"nesterov": True},
            r"nesterov = True has no effect with momentum = 0\.0\. Set optimizers\.sgd\.momentum",
        ),
        ("adam", {"decay_steps": 5}, r"decay_steps = 5 has no effect with schedule = 'constant'. Set .*schedule"),
        ("adam", {"final_fraction": 0.5}, r"final_fraction = 0\.5 has no effect with schedule = 'constant'"),
    ],
)
def test_settings_without_effect_are_named(name, arguments, message):
    with pytest.raises(ganlab.ConfigError, match=message):
        make(name, **arguments)
