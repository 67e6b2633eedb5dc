"""BigGAN's networks: sides, parts of the latent vector, the shared embedding. tests/fidelity has the numbers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ganlab


def make(**arguments):
    return ganlab.component("architectures", "biggan")(
        **{"channels": 1, "embedding_dim": 3, "initializer": "xavier"} | arguments
    )


@pytest.mark.parametrize(("side", "parts"), [(32, 4), (64, 5), (128, 6), (256, 7)])
def test_every_side_begins_at_four_pixels_and_ends_at_its_own(side, parts):
    architecture = make(latent_dim=2 * parts)
    generator, critic = architecture.generator((side, side, 3), 5), architecture.critic((side, side, 3), 5)
    assert generator.output_shape == (None, side, side, 3)
    assert critic.output_shape == (None, 1)
    assert generator.get_layer("base").output.shape[1:3] == (4, 4)
    # At 32 pixels only two of the critic's four blocks pool.
    assert critic.get_layer("pool").input.shape[1:3] == ((8, 8) if side == 32 else (4, 4))


def random_network(architecture, side=32):
    keras.utils.set_random_seed(1)
    generator = architecture.generator((side, side, 3), 3)
    for variable in generator.trainable_variables:
        variable.assign_add(0.3 * tf.random.stateless_normal(variable.shape, [len(variable.path), 1]))
    return generator


@pytest.mark.parametrize("hierarchical", [True, False])
def test_a_part_of_the_latent_vector_begins_at_its_block(hierarchical):
    generator = random_network(make(latent_dim=8, hierarchical=hierarchical))
    blocks = keras.Model(generator.inputs, [generator.get_layer(f"block_{i}").output for i in (1, 2, 3)])
    z, labels = tf.random.stateless_normal([4, 8], [1, 2]), tf.one_hot([0, 1, 2, 0], 3)
    before = blocks([z, labels], training=True)
    for part in range(4):
        changed = z + tf.constant([[float(i // 2 == part) for i in range(8)]])
        after = blocks([changed, labels], training=True)
        moved = [bool(np.abs(a - b).max() > 1e-4) for a, b in zip(after, before, strict=True)]
        first = part if hierarchical else 0  # part 0 is the first layer's, which all blocks follow
        assert moved == [i + 1 >= first for i in range(3)]


def test_the_label_reaches_every_block_by_one_embedding_that_constraints_leave_alone():
    generator = random_network(make(latent_dim=8))
    (table,) = [v for v in generator.trainable_variables if v.path.startswith("label_embedding/")]
    assert table.shape == (3 * 3,)
    gains = [v for v in generator.trainable_variables if v.path.endswith("_gain/kernel")]
    assert len(gains) == 6
    assert {v.shape[0] for v in gains} == {3 + 2}
    z = tf.random.stateless_normal([2, 8], [1, 2])
    first, second = (generator([z, tf.one_hot([k, k], 3)], training=True) for k in (0, 1))
    assert np.abs(first - second).max() > 1e-3


def test_gains_and_biases_are_linear_in_the_vector():
    generator = random_network(make(latent_dim=8))
    values = {v.path: np.asarray(v, np.float64) for v in generator.trainable_variables}
    inner = keras.Model(
        generator.inputs,
        [
            generator.get_layer(name).output
            for name in ("base", "block_1_1_normalization", "block_1_1_normalization_shifted")
        ],
    )
    z, labels = tf.random.stateless_normal([4, 8], [1, 2]), tf.one_hot([0, 1, 2, 0], 3)
    base, normalized, shifted = (np.asarray(x, np.float64) for x in inner([z, labels], training=True))
    expected = (base - base.mean((0, 1, 2))) / np.sqrt(base.var((0, 1, 2)) + 1e-5)
    np.testing.assert_allclose(normalized, expected, rtol=1e-4, atol=1e-5)
    embedding = np.asarray(labels) @ values["label_embedding/kernel"].reshape(3, 3)
    vector = np.concatenate([embedding, np.asarray(z)[:, 2:4]], axis=1)
    gain, bias = (vector @ values[f"block_1_1_normalization_{part}/kernel"] for part in ("gain", "bias"))
    np.testing.assert_allclose(
        shifted, expected * (1 + gain[:, None, None]) + bias[:, None, None], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("arguments", "shape", "classes", "message"),
    [
        ({}, (48, 48, 3), 2, r"architectures\.biggan cannot .* \(48, 48, 3\): .* of side 32, 64, 128 or 256"),
        ({}, (32, 32, 3), None, r"architectures\.biggan needs a dataset with classes"),
        ({"latent_dim": 10}, (32, 32, 3), 2, r"latent_dim = 10 must be a multiple of 4, .* Use 8, or hierarchical"),
        ({"latent_dim": 3}, (32, 32, 3), 2, r"latent_dim = 3 must be a multiple of 4, .* Use 4, or"),
        ({"attention": 32}, (32, 32, 3), 2, r"attention = 32 must be the side .*: 8, 16 for images of 32 pixels"),
    ],
)
def test_impossible_networks_are_refused(arguments, shape, classes, message):
    with pytest.raises(ganlab.GanlabError, match=message):
        make(**arguments).generator(shape, classes)
