"""BigGAN-deep's networks: sides, blocks, shortcuts, labels. tests/fidelity has the numbers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ganlab


def make(**arguments):
    defaults = {"channels": 4, "embedding_dim": 3, "latent_dim": 5, "initializer": "xavier"}
    return ganlab.component("architectures", "biggan_deep")(**defaults | arguments)


@pytest.mark.parametrize(("side", "stages"), [(32, 3), (64, 4), (128, 5), (256, 6)])
def test_every_side_begins_at_four_pixels_and_ends_at_its_own(side, stages):
    architecture = make(blocks=1)
    generator, critic = architecture.generator((side, side, 3), 5), architecture.critic((side, side, 3), 5)
    assert generator.output_shape == (None, side, side, 3)
    assert critic.output_shape == (None, 1)
    assert [generator.get_layer(f"stage_{i}_block_1").output.shape[1] for i in range(1, stages + 1)] == [
        8 << i for i in range(stages)
    ]
    # At 32 pixels only two of the critic's three stages pool.
    assert critic.get_layer("pool").input.shape[1:3] == ((8, 8) if side == 32 else (4, 4))


def test_blocks_work_on_a_quarter_of_their_channels_and_only_the_last_doubles_the_side():
    generator, critic = make(blocks=3).generator((64, 64, 3), 2), make(blocks=3).critic((64, 64, 3), 2)
    # From 64 channels to 32 in the second stage of 8 and 16 pixels.
    shapes = [generator.get_layer(f"stage_2_block_{j}").output.shape[1:] for j in (1, 2, 3)]
    assert shapes == [(8, 8, 64), (8, 8, 32), (16, 16, 32)]
    assert generator.get_layer("stage_2_block_2_convolution_2").kernel.shape == (3, 3, 16, 16)
    assert [critic.get_layer(f"stage_2_block_{j}").output.shape[1:] for j in (1, 2)] == [(16, 16, 16)] * 2
    assert critic.get_layer("stage_2_block_1_convolution_2").kernel.shape == (3, 3, 4, 4)


def test_shortcuts_drop_channels_in_the_generator_and_add_some_in_the_critic():
    generator, critic = make().generator((64, 64, 3), 2), make().critic((64, 64, 3), 2)
    for network, layer in ((generator, "stage_2_block_2"), (critic, "stage_2_block_1")):
        for part in ("kernel", "bias"):
            variable = getattr(network.get_layer(f"{layer}_convolution_4"), part)
            variable.assign(tf.zeros(variable.shape))
    x = tf.random.stateless_normal([2, 8, 8, 64], [1, 2])
    vector = tf.zeros([2, 8])
    block = keras.Model(
        [generator.get_layer("stage_2_block_1").output, generator.get_layer("with_label").output],
        generator.get_layer("stage_2_block_2").output,
    )
    np.testing.assert_array_equal(block([x, vector]), np.asarray(x)[..., :32].repeat(2, 1).repeat(2, 2))
    x = tf.random.stateless_normal([2, 32, 32, 8], [1, 2])
    block = keras.Model(critic.get_layer("stage_1_block_2").output, critic.get_layer("stage_2_block_1").output)
    pooled = np.asarray(x, np.float64).reshape(2, 16, 2, 16, 2, 8).mean((2, 4))
    kernel = np.asarray(critic.get_layer("stage_2_block_1_shortcut").kernel)[0, 0]
    np.testing.assert_allclose(block(x), np.concatenate([pooled, pooled @ kernel], -1), rtol=1e-4, atol=1e-5)


def test_every_block_sees_the_label_and_the_whole_latent_vector():
    generator = make().generator((32, 32, 3), 3)
    gains = [v for v in generator.trainable_variables if v.path.endswith("_gain/kernel")]
    assert len(gains) == 4 * 2 * 3
    assert {v.shape[0] for v in gains} == {3 + 5}
    assert generator.get_layer("project").kernel.shape[0] == 3 + 5


@pytest.mark.parametrize(
    ("arguments", "shape", "classes", "message"),
    [
        ({}, (48, 48, 3), 2, r"architectures\.biggan_deep cannot .* \(48, 48, 3\): .* of side 32, 64, 128 or 256"),
        ({}, (32, 32, 3), None, r"architectures\.biggan_deep needs a dataset with classes"),
        ({"attention": 32}, (32, 32, 3), 2, r"biggan_deep\.attention = 32 must be the side .*: 8, 16 for images of 32"),
        ({"channels": 6}, (32, 32, 3), 2, r"biggan_deep\.channels = 6 must be a multiple of 4"),
    ],
)
def test_impossible_networks_are_refused(arguments, shape, classes, message):
    with pytest.raises(ganlab.GanlabError, match=message):
        make(**arguments).generator(shape, classes)
