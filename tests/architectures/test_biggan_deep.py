"""BigGAN-deep's networks: sides. tests/fidelity has the numbers: of blocks, shortcuts and labels."""

import pytest

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
