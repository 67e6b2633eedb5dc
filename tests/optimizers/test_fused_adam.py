"""The fused Adam against Kingma and Ba's formula in numpy, and against Keras' own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ganlab

RATE, BETA_1, BETA_2, EPSILON = 0.02, 0.5, 0.9, 1e-7


def fused(**settings):
    given = {"learning_rate": RATE, "beta_1": BETA_1, "beta_2": BETA_2, "epsilon": EPSILON, **settings}
    return ganlab.component("optimizers", "adamw" if "weight_decay" in given else "adam")(**given)


def gradients(count, shape):
    return np.random.default_rng(0).normal(size=(count, *shape)).astype(np.float32)


def by_hand(start, given, *, beta_2=BETA_2, epsilon=EPSILON, corrected=False, weight_decay=0.0):
    """Algorithm 1 of the paper, after AdamW's decay; epsilon is corrected, too, or is that of the end of section 2."""
    x = start.astype(np.float64)
    m, v = np.zeros_like(x), np.zeros_like(x)
    for t, g in enumerate(given.astype(np.float64), start=1):
        m, v = BETA_1 * m + (1 - BETA_1) * g, beta_2 * v + (1 - beta_2) * g**2
        correction = np.sqrt(1 - beta_2**t)
        added = epsilon if corrected else epsilon / correction
        x -= RATE * weight_decay * x
        x -= RATE * (m / (1 - BETA_1**t)) / (np.sqrt(v) / correction + added)
    return x


@pytest.mark.parametrize(
    ("size", "settings"),
    [
        (1.0, {}),
        # Gradients as small as epsilon, where it counts.
        (1e-3, {"epsilon": 1e-3}),
        (1e-3, {"epsilon": 1e-3, "corrected": True}),
        (1e-3, {"epsilon": 1e-3, "corrected": True, "beta_2": 0.999}),
        (1e-3, {"epsilon": 1e-3, "corrected": True, "weight_decay": 0.3}),
    ],
    ids=str,
)
def test_ten_updates_are_the_papers(size, settings):
    start, given = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), size * gradients(10, (3, 4))
    renamed = {{"corrected": "corrected_epsilon"}.get(name, name): value for name, value in settings.items()}
    if "weight_decay" in renamed:
        del renamed["corrected_epsilon"]  # always, as in PyTorch
    optimizer = fused(**renamed)
    optimizer = type(optimizer).from_config(optimizer.get_config())  # as training makes it
    variable = keras.Variable(start)
    optimizer.build([variable])
    for g in given:
        optimizer.apply([tf.constant(g)], [variable])
    np.testing.assert_allclose(variable.numpy(), by_hand(start, given, **settings), rtol=1e-5, atol=1e-6)


def test_variables_and_config_are_those_of_keras():
    mine, keras_own = fused(), keras.optimizers.Adam(RATE, BETA_1, BETA_2, EPSILON)
    for optimizer in (mine, keras_own):
        optimizer.build([keras.Variable(np.zeros((2, 3), np.float32))])
    assert [v.shape for v in mine.variables] == [v.shape for v in keras_own.variables]
    assert {**mine.get_config(), "name": ""} == {**keras_own.get_config(), "name": "", "corrected_epsilon": False}


def test_a_gradient_of_rows_moves_them_as_a_dense_one_does():
    start, rows = np.ones((4, 2), np.float32), np.asarray([[1.0, -2.0]], np.float32)
    variable, optimizer = keras.Variable(start), fused()
    optimizer.build([variable])
    optimizer.apply([tf.IndexedSlices(tf.constant(rows), tf.constant([2]), tf.constant([4, 2]))], [variable])
    dense = np.zeros((1, 4, 2), np.float32)
    dense[0, 2] = rows
    np.testing.assert_allclose(variable.numpy(), by_hand(start, dense), rtol=1e-5)


def test_what_is_the_same_for_all_variables_is_computed_once():
    variables, optimizer = [keras.Variable(np.ones([n], np.float32)) for n in (2, 3, 4)], fused()
    optimizer.build(variables)

    @tf.function(autograph=False)
    def update():
        for _ in range(2):
            optimizer.apply([tf.ones_like(variable.value) for variable in variables], variables)

    made = [op.type for op in update.get_concrete_function().graph.get_operations()]
    assert made.count("ResourceApplyAdam") == 2 * 3
    assert made.count("Pow") == 2 * 2
    update()
    np.testing.assert_allclose(variables[0].numpy(), by_hand(np.ones(2), np.ones((2, 2))), rtol=1e-6)
