import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from making import architecture as make

import ganlab

# Small networks of every kind: an architecture, its arguments, and a sample shape that it takes.
SMALL = {
    "mlp": ("mlp", {"width": 8, "depth": 2}, (2,)),
    "mlp-leaky": ("mlp", {"width": 8, "activation": "leaky_relu"}, (4, 4, 1)),
    "mlp-elu": ("mlp", {"width": 8, "activation": "elu"}, (5, 3)),
    "mlp-softplus": ("mlp", {"width": 8, "activation": "softplus"}, (2,)),
    "mlp-tanh": ("mlp", {"width": 8, "activation": "tanh"}, (2,)),
    "mlp-max-min": ("mlp", {"width": 8, "depth": 2, "activation": "max_min"}, (2,)),
    "mlp-full-sort": ("mlp", {"width": 7, "activation": "full_sort"}, (2,)),
    "mlp-dropout": ("mlp", {"width": 8, "depth": 2, "dropout": 0.3}, (2,)),
    "dcgan": ("dcgan", {"channels": 4, "latent_dim": 6}, (28, 28, 1)),
    "dcgan-dropout": ("dcgan", {"channels": 4, "latent_dim": 6, "dropout": 0.3}, (16, 16, 1)),
    "dcgan-layer": (
        "dcgan",
        {"channels": 4, "latent_dim": 6, "generator_normalization": "layer", "critic_normalization": "layer"},
        (16, 16, 3),
    ),
    "dcgan-none": ("dcgan", {"channels": 4, "kernel_size": 4, "generator_normalization": "none"}, (8, 8, 3)),
    "lip_convnet": ("lip_convnet", {"channels": 4, "latent_dim": 6}, (12, 12, 3)),
    "lip_convnet-sll": ("lip_convnet", {"channels": 4, "latent_dim": 6, "convolution": "sll", "blocks": 2}, (8, 8, 1)),
    "lip_convnet-soc": ("lip_convnet", {"channels": 4, "latent_dim": 6, "convolution": "soc", "blocks": 2}, (8, 8, 1)),
    "lip_convnet-bcop": ("lip_convnet", {"channels": 4, "latent_dim": 6, "convolution": "bcop"}, (12, 12, 3)),
    "lip_convnet-aoc": ("lip_convnet", {"channels": 4, "latent_dim": 6, "convolution": "aoc", "blocks": 2}, (8, 8, 3)),
    "lip_convnet-bro": ("lip_convnet", {"channels": 4, "latent_dim": 6, "convolution": "bro"}, (12, 12, 3)),
    "sndcgan": ("sndcgan", {"channels": 4, "latent_dim": 6, "initializer": "xavier"}, (16, 16, 3)),
    "resnet": ("resnet", {"channels": 4, "latent_dim": 6}, (32, 32, 3)),
    "resnet-layer": (
        "resnet",
        {"channels": 2, "latent_dim": 6, "generator_normalization": "layer", "critic_normalization": "layer"},
        (64, 64, 3),
    ),
    "resnet-variant": (
        "resnet",
        {
            **{"generator_channels": 2, "critic_channels": 3, "latent_dim": 6, "upsampling": "bilinear"},
            **{"pooling": "sum", "initializer": "xavier", "critic_hidden": "input", "rectified_shortcuts": True},
        },
        (48, 48, 3),
    ),
}
# Options of networks whose other cases are quick.
OPTIONS = ("mlp-elu", "mlp-softplus", "mlp-tanh", "dcgan-layer", "lip_convnet-sll", "resnet-layer", "resnet-variant")
small = pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if case in OPTIONS else ()) for case in SMALL]
)


def fresh(case):
    name, arguments, shape = SMALL[case]
    keras.utils.set_random_seed(1)
    architecture = make(name, **arguments)
    return architecture, architecture.generator(shape), architecture.critic(shape), shape


built = functools.cache(fresh)


def normal(shape, seed=0):
    return tf.random.stateless_normal(shape, [seed, 1])


def sides(model):
    """The sides of the feature maps after convolutions and croppings."""
    kinds = (keras.layers.Conv2D, keras.layers.Conv2DTranspose, keras.layers.Cropping2D)
    return [layer.output.shape[1] for layer in model.layers if isinstance(layer, kinds)]


@pytest.mark.parametrize(("size", "base"), [(8, 4), (16, 4), (20, 3), (28, 4), (32, 4), (36, 3), (64, 4), (128, 4)])
def test_dcgan_makes_squares_of_any_side(size, base):
    dcgan = make("dcgan", channels=2, latent_dim=3)
    generator, critic = dcgan.generator((size, size, 3)), dcgan.critic((size, size, 3))
    assert generator.input_shape == (None, 3)
    assert generator.output_shape == critic.input_shape == (None, size, size, 3)
    assert critic.output_shape == (None, 1)
    assert generator.get_layer("base").output.shape[1] == sides(critic)[-1] == base
    assert generator(normal((2, 3))).shape == (2, size, size, 3)


def test_images_need_not_be_square():
    for name, shape, base, channels in (("dcgan", (21, 50, 3), (3, 7), 1), ("resnet", (48, 32, 3), (6, 4), 2)):
        one = make(name, channels=channels, latent_dim=3)
        generator, critic = one.generator(shape), one.critic(shape)
        assert generator.output_shape == critic.input_shape == (None, *shape)
        assert generator.get_layer("base").output.shape[1:3] == base
        assert generator(normal((2, 3))).shape == (2, *shape)
        assert critic(normal((2, *shape))).shape == (2, 1)


def test_a_sum_over_pixels_counts_those_of_either_side():
    shape = (64, 48, 3)
    critics = [make("resnet", channels=1, pooling=pooling).critic(shape) for pooling in ("mean", "sum")]
    critics[1].set_weights(critics[0].get_weights())
    sample, pixels = normal((2, *shape)), np.prod(critics[0].get_layer("last_activation").output.shape[1:3])
    bias = critics[0].get_layer("score").bias
    np.testing.assert_allclose(critics[1](sample) - bias, pixels * (critics[0](sample) - bias), rtol=1e-4, atol=1e-5)


def test_dcgan_doubles_its_channels_up_to_eight_times():
    critic = make("dcgan", channels=2).critic((128, 128, 3))
    assert [layer.filters for layer in critic.layers if isinstance(layer, keras.layers.Conv2D)] == [2, 4, 8, 16, 16]


@pytest.mark.parametrize(
    ("size", "base", "end"), [(32, 4, 8), (40, 5, 2), (48, 6, 3), (56, 7, 3), (64, 4, 2), (112, 7, 3), (128, 4, 4)]
)
def test_resnet_makes_the_papers_sizes(size, base, end):
    resnet = make("resnet", channels=1, latent_dim=3)
    generator, critic = resnet.generator((size, size, 3)), resnet.critic((size, size, 3))
    assert generator.output_shape == critic.input_shape == (None, size, size, 3)
    assert critic.output_shape == (None, 1)
    assert generator.get_layer("base").output.shape[1] == base
    assert critic.get_layer("last_activation").output.shape[1] == end


def test_sndcgan_halves_three_times_and_ends_at_the_papers_sides():
    for size, base in ((32, 4), (48, 6), (128, 16)):
        sndcgan = make("sndcgan", channels=1, latent_dim=3)
        generator, critic = sndcgan.generator((size, size, 3)), sndcgan.critic((size, size, 3))
        assert generator.get_layer("base").output.shape[1:] == (base, base, 8)
        assert sides(generator) == [2 * base, 4 * base, size, size]
        assert sides(critic) == [size, size // 2, size // 2, size // 4, size // 4, base, base]


@pytest.mark.parametrize(
    ("doubling", "widths"),
    [("strided", [64, 128, 128, 256, 256, 512, 512]), ("plain", [64, 64, 128, 128, 256, 256, 512])],
)
def test_sndcgan_has_the_parameters_of_its_published_widths(doubling, widths):
    sndcgan = make("sndcgan", doubling=doubling, biases="all")
    critic = sndcgan.critic((32, 32, 3))
    convolutions = [layer for layer in critic.layers if isinstance(layer, keras.layers.Conv2D)]
    assert [(layer.filters, layer.kernel_size[0], layer.strides[0]) for layer in convolutions] == [
        (width, *shape) for width, shape in zip(widths, [(3, 1), (4, 2)] * 3 + [(3, 1)], strict=True)
    ]
    kernels = sum(k * k * a * b + b for k, a, b in zip([3, 4] * 3 + [3], [3, *widths], widths, strict=False))
    assert critic.count_params() == kernels + 16 * 512 + 1
    assert {layer.negative_slope for layer in critic.layers if isinstance(layer, keras.layers.LeakyReLU)} == {0.1}
    up = [(512, 256), (256, 128), (128, 64)]
    normalized = 4 * (512 + 256 + 128 + 64)  # scale, offset and two moments for each channel
    project, last = 129 * 16 * 512, 9 * 64 * 3 + 3
    generator = sndcgan.generator((32, 32, 3))
    assert generator.count_params() == project + sum(16 * a * b + b for a, b in up) + last + normalized


def test_sndcgan_starts_with_the_deviation_of_dcgan():
    keras.utils.set_random_seed(1)
    critic = make("sndcgan").critic((32, 32, 3))
    assert np.std(critic.get_layer("convolution_4").kernel) == pytest.approx(0.02, rel=0.01)


@pytest.mark.parametrize(("size", "base"), [(8, 4), (12, 3), (20, 5), (28, 7), (32, 4), (36, 9)])
def test_lip_convnet_halves_even_sides(size, base):
    architecture = make("lip_convnet", channels=2, latent_dim=3)
    generator, critic = architecture.generator((size, size, 3)), architecture.critic((size, size, 3))
    assert generator.output_shape == critic.input_shape == (None, size, size, 3)
    assert critic.get_layer("flat").output.shape[1] == base**2 * 2 * size // base // 2


@pytest.mark.parametrize("convolution", ["aol", "sll", "soc", "bcop", "aoc", "bro", "lires"])
def test_lip_convnet_has_the_lipschitz_constant_one(convolution):
    critic = make("lip_convnet", channels=4, convolution=convolution).critic((12, 12, 3))
    critic.set_weights([np.random.default_rng(0).normal(size=v.shape) for v in critic.weights])
    weights = {v.path: v.numpy() for v in critic.trainable_variables}
    assert ganlab.lipschitz.certificate(critic)(weights) == 1.0
    slopes = ganlab.functional.slopes(lambda x: critic(x)[:, 0], normal((50, 12, 12, 3)))
    assert 0.01 < np.max(slopes) <= 1


def test_the_toy_networks_have_the_papers_parameters():
    mlp = make("mlp")
    hidden = (2 * 512 + 512) + 2 * (512 * 512 + 512)
    assert mlp.generator((2,)).count_params() == hidden + 512 * 2 + 2
    assert mlp.critic((2,)).count_params() == hidden + 512 + 1


def test_the_mnist_networks_have_the_papers_parameters():
    dcgan = make("dcgan", generator_normalization="none")
    project, up = 128 * 4096 + 4096, (25 * 256 * 128 + 128) + (25 * 128 * 64 + 64) + (25 * 64 + 1)
    assert dcgan.generator((28, 28, 1)).count_params() == project + up
    down = (25 * 64 + 64) + (25 * 64 * 128 + 128) + (25 * 128 * 256 + 256)
    assert dcgan.critic((28, 28, 1)).count_params() == down + 4 * 4 * 256 + 1


def test_the_cifar_critic_has_the_papers_parameters():
    convolution, shortcut = 9 * 128 * 128 + 128, 128 * 128
    first = (9 * 3 * 128 + 128) + convolution + 3 * 128
    blocks = (2 * convolution + shortcut) + 2 * (2 * convolution)
    assert make("resnet").critic((32, 32, 3)).count_params() == first + blocks + 128 + 1


def test_weights_before_rectifiers_have_the_variance_of_he():
    keras.utils.set_random_seed(1)
    mlp = make("mlp").critic((2,)).get_layer("hidden_2").kernel
    assert np.var(mlp) == pytest.approx(2 / 512, rel=0.02)
    assert np.abs(mlp).max() < np.sqrt(6 / 512)
    # An output pixel of a convolution transposed at stride 2 sees a quarter of 25 taps of 256 channels.
    up = make("dcgan").generator((28, 28, 1)).get_layer("convolution_1").kernel
    assert np.var(up) == pytest.approx(2 / (256 * 25 / 4), rel=0.02)


# Variances by igul222/improved_wgan_training at fa66c57, tflib/ops: conv2d.py:62-70, deconv2d.py:49-53, linear.py:58.
@pytest.mark.parametrize(
    ("initializer", "project", "up", "down", "score"),
    [
        ("xavier", 2 / (128 + 4096), 4 / (25 * 256 / 4 + 25 * 128), 4 / (25 * 64 + 25 * 128 / 4), 2 / 4097),
        ("normal", 0.02**2, 0.02**2, 0.02**2, 0.02**2),
    ],
)
def test_dcgan_starts_as_published_networks(initializer, project, up, down, score):
    keras.utils.set_random_seed(1)
    dcgan = make("dcgan", initializer=initializer)
    generator, critic = dcgan.generator((28, 28, 1)), dcgan.critic((28, 28, 1))
    kernels = [(generator, "project"), (generator, "convolution_1"), (critic, "convolution_2"), (critic, "score")]
    found = [np.var(network.get_layer(name).kernel) for network, name in kernels]
    assert found == [pytest.approx(variance, rel=0.06) for variance in (project, up, down, score)]
    flattest = np.abs(generator.get_layer("convolution_1").kernel).max() / np.sqrt(up)
    assert (flattest < np.sqrt(3)) == (initializer == "xavier")


def test_dcgan_has_biases_where_they_are_asked_for():
    counts = [make("dcgan", biases=kind).generator((28, 28, 1)).count_params() for kind in ("needed", "all")]
    assert counts[1] - counts[0] == 128 + 64


@pytest.mark.parametrize(
    ("shape", "output", "activation"),
    [
        ((2,), "auto", "linear"),
        ((4, 4, 1), "auto", "tanh"),
        ((5, 3), "auto", "linear"),
        ((4, 4, 1), "linear", "linear"),
        ((2,), "tanh", "tanh"),
    ],
)
def test_mlp_ends_in_tanh_for_images(shape, output, activation):
    generator = make("mlp", width=4, output=output).generator(shape)
    assert generator.get_layer("output").activation.__name__ == activation
    assert generator.output_shape == (None, *shape)


@pytest.mark.parametrize(("case", "count"), [("mlp-dropout", 2), ("dcgan-dropout", 2)])
def test_dropout_is_after_each_activation_of_the_critic_alone(case, count):
    _, generator, critic, shape = built(case)
    kinds = [type(layer) for layer in critic.layers]
    dropped = [i for i, kind in enumerate(kinds) if kind is ganlab.layers.Dropout]
    assert len(dropped) == count
    assert all(critic.layers[i].rate == 0.3 and critic.layers[i - 1].name.startswith("activation") for i in dropped)
    assert not ganlab.layers.noisy_layers(generator)

    class KeepsNothing:
        def uniform(self, shape):
            return tf.zeros(shape)

    # Every unit dropped leaves the last layer's bias, which starts at zero; outside training nothing is dropped.
    x = normal((3, *shape))
    with ganlab.layers.noise_from(KeepsNothing()):
        np.testing.assert_array_equal(critic(x, training=True), np.zeros((3, 1)))
        assert np.all(critic(x, training=False) != 0)


def penalty_gradients(critic, x):
    """The penalty's gradient by each weight that it depends on: the last bias, for one, moves no slope."""
    with tf.GradientTape() as tape:
        slopes = ganlab.functional.slopes(lambda x: critic(x, training=True)[:, 0], x)
        value = tf.reduce_mean(tf.square(slopes - 1.0))
    gradients = tape.gradient(value, [v.value for v in critic.trainable_variables])
    return {v.path: g for v, g in zip(critic.trainable_variables, gradients, strict=True) if g is not None}


@small
def test_a_penalty_on_slopes_can_be_differentiated(case):
    _, _, critic, shape = built(case)
    gradients = penalty_gradients(critic, 0.5 * normal((3, *shape)))
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())
    assert all(np.any(gradients[v.path]) for v in critic.trainable_variables if v.path.endswith("kernel"))


@small
def test_a_score_depends_on_its_own_example_alone(case):
    _, _, critic, shape = built(case)
    x = normal((3, *shape))
    np.testing.assert_allclose(critic(x, training=True)[:1], critic(x[:1], training=True), rtol=1e-4, atol=1e-5)


@small
def test_mixed_precision_computes_in_bfloat16_and_ends_in_float32(case, precision):
    precision("mixed_bfloat16")
    architecture, generator, critic, _ = fresh(case)
    samples = generator(normal((2, architecture.latent_dim)), training=True)
    scores = critic(samples, training=True)
    assert samples.dtype == scores.dtype == tf.float32
    assert {v.dtype for v in generator.variables + critic.variables} == {"float32"}
    for model in (generator, critic):
        assert any(layer.weights and layer.compute_dtype == "bfloat16" for layer in model.layers)
    # bfloat16 has 8 significant bits: numbers of full precision need more than a rounding to it leaves.
    assert not np.array_equal(scores, tf.cast(tf.cast(scores, tf.bfloat16), tf.float32))


@small
def test_names_are_explicit_and_the_same_in_a_second_build(case):
    _, generator, critic, _ = built(case)
    _, second_generator, second_critic, _ = fresh(case)
    for first, second in ((generator, second_generator), (critic, second_critic)):
        assert [layer.name for layer in first.layers] == [layer.name for layer in second.layers]
        assert len({v.path for v in first.variables}) == len(first.variables)


@small
def test_no_generator_weight_is_without_effect(case):
    # A bias that a batch normalization removes again has a gradient of mere rounding, which Adam turns into drift.
    architecture, generator, _, shape = built(case)
    with tf.GradientTape() as tape:
        samples = generator(normal((16, architecture.latent_dim)), training=True)
        loss = tf.reduce_sum(samples * normal((16, *shape), seed=2))
    gradients = tape.gradient(loss, [v.value for v in generator.trainable_variables])
    norms = {v.path: float(tf.norm(g)) for v, g in zip(generator.trainable_variables, gradients, strict=True)}
    assert min(norms.values()) > 1e-5 * max(norms.values()), norms


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("dcgan", (28, 7, 1), r"architectures\.dcgan cannot make samples of shape \(28, 7, 1\): .*architectures\.mlp"),
        ("dcgan", (7, 7, 1), r"\(7, 7, 1\): it makes images .* of 8 pixels or more either way"),
        ("dcgan", (2,), r"architectures\.dcgan cannot make samples of shape \(2,\)"),
        ("resnet", (28, 28, 1), r"architectures\.resnet cannot .* \(28, 28, 1\): .* side is 32, 40, 48, 56, or one"),
        ("resnet", (36, 36, 1), r"architectures\.resnet cannot .* \(36, 36, 1\): .* side is 32, 40, 48, 56, or one"),
        ("resnet", (32, 36, 3), r"resnet cannot .* \(32, 36, 3\): .* larger side can be halved as often"),
        ("resnet", (100, 100, 1), r"architectures\.resnet cannot .* \(100, 100, 1\)"),
        ("resnet", (32, 32), r"architectures\.resnet cannot .* \(32, 32\)"),
        ("sndcgan", (36, 36, 1), r"sndcgan cannot make samples of shape \(36, 36, 1\): .* that is a multiple of 8"),
        ("sndcgan", (8, 8, 1), r"sndcgan cannot make samples of shape \(8, 8, 1\)"),
        ("lip_convnet", (28, 20, 1), r"lip_convnet cannot make samples of shape \(28, 20, 1\): .*square images"),
        ("lip_convnet", (9, 9, 1), r"\(9, 9, 1\): it makes square images .* of even side, 8 or more"),
        ("mlp", (), r"architectures\.mlp cannot make samples of shape \(\): it needs at least one axis"),
        ("mlp", (0,), r"architectures\.mlp cannot make samples of shape \(0,\)"),
    ],
)
def test_unsupported_sample_shapes_are_refused_by_name(name, shape, message):
    architecture = make(name)
    for method in (architecture.generator, architecture.critic):
        with pytest.raises(ganlab.IncompatibleError, match=message):
            method(shape)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("mlp", {"width": 9, "activation": "max_min"}, r'mlp\.width = 9 must be even if activation = "max_min"'),
        ("dcgan", {"critic_normalization": "batch"}, r"critic_normalization = 'batch' .* couples .* use 'layer'"),
        ("lip_convnet", {"channels": 5}, r"lip_convnet\.channels = 5 must be even, because MaxMin sorts pairs"),
        ("lip_convnet", {"convolution": "soc", "kernel_size": 4}, "kernel_size = 4 must be odd with convolution"),
        ("lip_convnet", {"convolution": "aoc", "kernel_size": 1}, "kernel_size = 1 must be at least 2 with convolut"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused_by_name(name, arguments, message):
    with pytest.raises(ganlab.ConfigError, match=message):
        make(name, **arguments)


def test_the_critic_of_mlp_scores_an_embedding_and_returns_a_proxy_of_the_label():
    critic = make("mlp", width=8, depth=1, labels="proxy", embedding_dim=5).critic((2,), classes=3)
    x, labels = tf.random.normal([4, 2]), tf.one_hot([2, 0, 2, 1], 3)
    found = {name: value.numpy() for name, value in critic([x, labels]).items()}
    assert {name: (value.shape, value.dtype) for name, value in found.items()} == {
        name: ((4, width), np.float32) for name, width in (("score", 1), ("embedding", 5), ("proxy", 5))
    }
    weights = {w.path: w.numpy() for w in critic.trainable_variables}
    np.testing.assert_allclose(found["score"], found["embedding"] @ weights["score/kernel"], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found["proxy"], weights["proxy/kernel"][[2, 0, 2, 1]])
    plain = make("mlp", width=8, depth=1, embedding_dim=5).critic((2,))(x)
    assert {name: value.shape[1] for name, value in plain.items()} == {"score": 1, "embedding": 5}
