"""The options of `architectures.resnet`, against counts by hand and variances.

How channels double, `upsampling`, `critic_hidden` and `rectified_shortcuts`: tests/fidelity.
"""

import keras
import numpy as np
import pytest

import ganlab
from ganlab import lipschitz


def make(**arguments):
    keras.utils.set_random_seed(1)
    return ganlab.component("architectures", "resnet")(**{"latent_dim": 6, **arguments})


def test_widths_of_both_networks_are_separate():
    resnet = make(generator_channels=3, critic_channels=2)
    assert resnet.generator((32, 32, 3)).get_layer("base").output.shape[-1] == 3
    assert resnet.critic((32, 32, 3)).get_layer("pool").output.shape[-1] == 2
    both = make(channels=4, critic_channels=2)
    assert both.generator((32, 32, 3)).get_layer("base").output.shape[-1] == 4
    assert both.critic((32, 32, 3)).get_layer("pool").output.shape[-1] == 2


def test_the_certificate_of_a_sum_is_as_many_times_larger_as_there_are_pixels():
    first, second = make(channels=3).critic((32, 32, 3)), make(channels=3, pooling="sum").critic((32, 32, 3))
    weights = {v.path: v.numpy() for v in first.trainable_variables}
    bounds = [float(lipschitz.certificate(critic)(weights)) for critic in (first, second)]
    assert bounds[1] == pytest.approx(64 * bounds[0], rel=1e-5)


def test_all_biases_are_those_of_every_convolution():
    for build in ("generator", "critic"):
        needed = getattr(make(channels=2), build)((32, 32, 3))
        every = getattr(make(channels=2, biases="all"), build)((32, 32, 3))
        convolutions = [layer for layer in every.layers if isinstance(layer, keras.layers.Conv2D)]
        assert all(layer.use_bias for layer in convolutions)
        without = [layer for layer in needed.layers if isinstance(layer, keras.layers.Conv2D) and not layer.use_bias]
        # Three shortcuts and six convolutions before batch normalizations; two shortcuts.
        assert len(without) == {"generator": 9, "critic": 2}[build]
        assert every.count_params() - needed.count_params() == 2 * len(without)


@pytest.mark.parametrize(
    ("initializer", "inside", "shortcut"),
    [
        ("he", 2 / (9 * 64), 1 / 64),
        ("he_normal", 2 / (9 * 64), 2 / 64),
        ("xavier", 2 / (9 * 64), 1 / 64),
        ("normal", 0.02**2, 0.02**2),
        ("orthogonal", 1 / (9 * 64), 1 / 64),
    ],
)
def test_initializers_have_their_variance(initializer, inside, shortcut):
    # As many inputs as outputs, where He's distribution and twice Glorot's are the same.
    critic = make(channels=64, initializer=initializer).critic((32, 32, 3))
    assert np.var(critic.get_layer("block_2_convolution_1").kernel) == pytest.approx(inside, rel=0.03)
    assert np.var(critic.get_layer("block_2_shortcut").kernel) == pytest.approx(shortcut, rel=0.06)


def test_he_normal_covers_both_ends_of_both_networks():
    architecture = make(channels=64, initializer="he_normal")
    generator, critic = architecture.generator((32, 32, 3)), architecture.critic((32, 32, 3))
    # Each layer with the inputs of a unit: its numbers are normal, of the variance 2 / inputs.
    ends = [
        (generator, "project", architecture.latent_dim),
        (generator, "last_convolution", 9 * 64),
        (critic, "block_1_shortcut", 3),
    ]
    numbers = [np.ravel(net.get_layer(name).kernel) * np.sqrt(fan / 2) for net, name, fan in ends]
    for found in numbers:
        assert np.var(found) == pytest.approx(1.0, abs=5 * np.sqrt(2 / found.size))
    # Beyond two deviations lie 4.55% of normal numbers.
    beyond = np.mean(np.abs(numbers[0]) > 2)
    assert beyond == pytest.approx(0.0455, abs=0.005)
    assert np.var(critic.get_layer("score").kernel) == pytest.approx(2 / 64, abs=5 * 2 / 64 * np.sqrt(2 / 64))


def test_he_and_xavier_differ_where_channels_change():
    kernels = [
        np.var(make(channels=32, initializer=kind).critic((48, 48, 3)).get_layer("block_2_convolution_1").kernel)
        for kind in ("he", "xavier")
    ]
    assert kernels == [pytest.approx(2 / (9 * 32), rel=0.03), pytest.approx(4 / (9 * (32 + 64)), rel=0.03)]
