"""R3GAN's networks: widths and how they start. tests/fidelity has the numbers: of the filter, groups and labels."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ganlab


def make(**arguments):
    return ganlab.component("architectures", "r3gan")(**{"channels": 8, "group": 4, "latent_dim": 6} | arguments)


@pytest.mark.parametrize(
    ("side", "halve_above", "widths"), [(8, 32, [8, 8]), (64, 32, [8] * 4 + [4]), (64, 64, [8] * 5)]
)
def test_networks_mirror_each_other_from_four_pixels_on(side, halve_above, widths):
    architecture = make(halve_above=halve_above)
    generator, critic = architecture.generator((side, side, 3)), architecture.critic((side, side, 3))
    assert generator.output_shape == (None, side, side, 3)
    assert critic.output_shape == (None, 1)
    stages = range(1, len(widths) + 1)
    ends = [generator.get_layer(f"stage_{i}_block_2").output.shape[1:] for i in stages]
    assert ends == [(4 << i, 4 << i, width) for i, width in enumerate(widths)]
    assert [critic.get_layer(f"stage_{i}_block_2").output.shape[1:] for i in stages] == ends[::-1]


def test_blocks_start_as_nothing_and_the_others_keep_the_variance():
    keras.utils.set_random_seed(0)
    generator = make(channels=256, group=16, latent_dim=64).generator((8, 8, 64))
    latent = tf.random.stateless_normal([64, 64], [1, 2])
    names = ("basis", "stage_1_block_2", "stage_2_block_1_activation_1")
    basis, same, inside = keras.Model(generator.input, [generator.get_layer(name).output for name in names])(latent)
    np.testing.assert_array_equal(basis, same)
    assert np.square(basis).mean() == pytest.approx(1.0, rel=0.1)
    # Four blocks in all: the second moment falls by their root in each of two convolutions.
    before = generator.get_layer("stage_2_blurred_2").output
    at = np.square(keras.Model(generator.input, before)(latent)).mean()
    assert np.square(inside).mean() / at == pytest.approx(4**-0.5, rel=0.1)


def test_the_embedding_of_labels_starts_with_the_deviation_of_its_fan_in():
    keras.utils.set_random_seed(0)
    table = make(labels="projection").critic((8, 8, 3), 3).get_layer("label_embedding").kernel
    assert np.std(table) == pytest.approx((8 * 3) ** -0.5, rel=0.5)


@pytest.mark.parametrize(
    ("arguments", "shape", "message"),
    [
        ({}, (48, 48, 3), r"architectures\.r3gan cannot .* a side that is a power of two, 8 or more"),
        ({}, (4, 4, 3), r"architectures\.r3gan cannot"),
        ({"group": 3}, (8, 8, 3), r"r3gan\.group = 3 must divide twice the channels .* and 8 of 8, 8 is half of 16"),
        ({"channels": 6, "group": 4}, (64, 64, 3), r"and 3 of 6, 6, 6, 6, 3 is half of 6"),
        ({"labels": "projection"}, (8, 8, 3), r"r3gan\.labels needs a dataset with classes"),
    ],
)
def test_impossible_networks_are_refused(arguments, shape, message):
    with pytest.raises(ganlab.GanlabError, match=message):
        make(**arguments).generator(shape)
