"""BigGAN's and BigGAN-deep's networks: sides, and parts of the latent vector. tests/fidelity has the numbers."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from making import architecture

import ganlab


def make(**arguments):
    return architecture("biggan", **{"channels": 1, "embedding_dim": 3, "initializer": "xavier"} | arguments)


def deep(**arguments):
    given = {"channels": 4, "embedding_dim": 3, "latent_dim": 5, "initializer": "xavier"}
    return architecture("biggan_deep", **given | arguments)


@pytest.mark.parametrize("name", ["biggan", "biggan_deep"])
@pytest.mark.parametrize(("side", "stages"), [(32, 3), (64, 4), (128, 5), (256, 6)])
def test_every_side_begins_at_four_pixels_and_ends_at_its_own(name, side, stages):
    made = make(latent_dim=2 * (stages + 1)) if name == "biggan" else deep(blocks=1)
    generator, critic = made.generator((side, side, 3), 5), made.critic((side, side, 3), 5)
    assert generator.output_shape == (None, side, side, 3)
    assert critic.output_shape == (None, 1)
    if name == "biggan":
        assert generator.get_layer("base").output.shape[1:3] == (4, 4)
    else:
        sides = [generator.get_layer(f"stage_{i}_block_1").output.shape[1] for i in range(1, stages + 1)]
        assert sides == [8 << i for i in range(stages)]
    # At 32 pixels only two of the critic's blocks pool.
    assert critic.get_layer("pool").input.shape[1:3] == ((8, 8) if side == 32 else (4, 4))


def random_network(made, side=32):
    keras.utils.set_random_seed(1)
    generator = made.generator((side, side, 3), 3)
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


@pytest.mark.parametrize(
    ("make", "arguments", "side", "classes", "message"),
    [
        (make, {}, 48, 2, r"architectures\.biggan cannot .* \(48, 48, 3\): .* of side 32, 64, 128 or 256"),
        (make, {}, 32, None, r"architectures\.biggan needs a dataset with classes"),
        (make, {"latent_dim": 10}, 32, 2, r"latent_dim = 10 must be a multiple of 4, .* Use 8, or hierarchical"),
        (make, {"latent_dim": 3}, 32, 2, r"latent_dim = 3 must be a multiple of 4, .* Use 4, or"),
        (make, {"attention": 32}, 32, 2, r"attention = 32 must be the side .*: 8, 16 for images of 32 pixels"),
        (deep, {}, 48, 2, r"architectures\.biggan_deep cannot .* \(48, 48, 3\): .* of side 32, 64, 128 or 256"),
        (deep, {}, 32, None, r"architectures\.biggan_deep needs a dataset with classes"),
        (deep, {"attention": 32}, 32, 2, r"biggan_deep\.attention = 32 must be the side .*: 8, 16 for images of 32"),
        (deep, {"channels": 6}, 32, 2, r"biggan_deep\.channels = 6 must be a multiple of 4"),
    ],
)
def test_impossible_networks_are_refused(make, arguments, side, classes, message):
    with pytest.raises(ganlab.GanlabError, match=message):
        make(**arguments).generator((side, side, 3), classes)
