"""Layers and settings that would go wrong silently are refused, by name."""

import random

import keras
import numpy as np
import pytest
import tensorflow as tf
from small import Layers, Points, assert_same, constraint, normalized_critic, sgd, small, trained, values

import ganlab
from ganlab import ConfigError, ContractError, GanlabError, IncompatibleError, layers
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: keras.layers.BatchNormalization(name="bn"), r"'bn' \(BatchNormalization\).*synchronized=True"),
        (lambda: keras.layers.Dropout(0.5, name="drop"), r"'drop' \(Dropout\).*ganlab.layers.Dropout"),
        (lambda: keras.layers.GaussianNoise(0.5, name="noise"), r"'noise' \(GaussianNoise\).*ganlab.layers"),
        (lambda: keras.Sequential([keras.layers.Dropout(0.5, name="inner")], name="block"), r"'inner' \(Dropout\)"),
        (
            lambda: keras.layers.SpectralNormalization(keras.layers.Dense(4), name="s"),
            r"'s' \(SpectralNormalization\).*constraints\.spectral_norm",
        ),
    ],
)
@pytest.mark.parametrize("role", ["generator", "critic"])
def test_layers_that_go_wrong_under_replicas(make, message, role):
    with pytest.raises(IncompatibleError, match=rf"The {role}'s layer {message}"):
        TrainingState(small(2, architecture=with_layer(role, make)))


def with_layer(role, make):
    """Networks of which this one has the layer between two dense ones."""

    def network(x):
        return keras.layers.Dense(2 if role == "generator" else 1)(make()(keras.layers.Dense(4)(x)))

    return Layers(**{role: network})


class Weighed(keras.layers.Layer):
    """A layer with a loss of its own: on a weight, or on its output."""

    def __init__(self, term, **kwargs):
        super().__init__(**kwargs)
        self.term = term

    def build(self, shape):
        self.scale = self.add_weight(shape=(1,), name="scale", regularizer="l2" if self.term == "weight" else None)

    def call(self, x):
        if self.term == "add_loss":
            self.add_loss(keras.ops.sum(x))
        return self.scale * x


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: keras.layers.Dense(4, kernel_regularizer="l2", name="d"), r"'d' \(Dense\) has a kernel_regularizer"),
        (lambda: keras.layers.Dense(4, bias_regularizer="l1", name="d"), r"'d' \(Dense\) has a bias_regularizer"),
        (lambda: keras.layers.Activation("tanh", activity_regularizer="l2", name="a"), r"'a'.*activity_regularizer"),
        (
            lambda: keras.Sequential([keras.layers.Dense(4, kernel_regularizer="l2", name="inner")], name="block"),
            r"'inner' \(Dense\) has a kernel_regularizer",
        ),
        (lambda: Weighed("weight", name="w"), "'w/scale' has a regularizer"),
        (lambda: Weighed("add_loss", name="w"), "adds a loss of its own"),
    ],
    ids=["kernel", "bias", "activity", "nested", "weight", "add_loss"],
)
@pytest.mark.parametrize("role", ["generator", "critic"])
def test_losses_of_layers_would_be_ignored(make, message, role):
    with pytest.raises(IncompatibleError, match=rf"The {role}.*{message}.*ignored.*weight_penalty"):
        Trainer(small(0, architecture=with_layer(role, make))).trace()


def test_building_leaves_the_users_random_numbers():
    random.seed(5)
    np.random.seed(5)
    expected = random.random(), np.random.rand()
    random.seed(5)
    np.random.seed(5)
    TrainingState(small(0, seed=3))
    assert (random.random(), np.random.rand()) == expected


def test_float32_is_float32():
    switch = tf.config.experimental
    before = switch.tensor_float_32_execution_enabled()
    try:
        one, two = (Trainer(small(0, precision=precision)) for precision in ("float32", "mixed_bfloat16"))
        for trainer, allowed in ((one, False), (two, True), (one, False)):
            trainer.train(1)
            assert switch.tensor_float_32_execution_enabled() is allowed
    finally:
        switch.enable_tensor_float_32_execution(before)


class Sized(Points):
    def __init__(self, **attributes):
        super().__init__(np.zeros((4, 2)))
        vars(self).update(attributes)


class Unsized(ganlab.Architecture):
    pass


def latent(dimension):
    return Layers(latent_dim=dimension)


@pytest.mark.parametrize(
    ("part", "value", "kind", "message"),
    [
        ("dataset", lambda: Sized(size=0), ContractError, r"Sized\.size is 0; .*Is its source empty\?"),
        ("dataset", lambda: Sized(size=2.0), ContractError, r"Sized\.size is 2\.0"),
        ("dataset", lambda: Sized(size=True), ContractError, r"Sized\.size is True"),
        ("dataset", lambda: Sized(sample_shape=2), ContractError, r"Sized\.sample_shape is 2; .*\(d,\)"),
        ("dataset", lambda: Sized(sample_shape=()), ContractError, r"Sized\.sample_shape is \(\)"),
        ("dataset", lambda: Sized(sample_shape=(None, 2)), ContractError, r"sample_shape is \(None, 2\)"),
        ("dataset", ganlab.Dataset, ContractError, r"Dataset\.sample_shape is None"),
        ("architecture", Unsized, ContractError, r"Unsized\.latent_dim is None; .*at least 1"),
        ("architecture", lambda: latent(-1), ContractError, r"Layers\.latent_dim is -1"),
        ("architecture", lambda: latent("8"), ContractError, r"Layers\.latent_dim is '8'"),
        ("strategy", lambda: "mirrored", ConfigError, r"strategy is 'mirrored', of type str; .*tf\.distribute\.St"),
        ("loss", lambda: ganlab.Dataset, ConfigError, r"must be a ganlab\.Loss: call it"),
        ("critic_optimizer", lambda: "adam", ConfigError, r"must be a keras\.optimizers\.Optimizer"),
        ("constraints", lambda: constraint("r1"), ConfigError, r"must be a list of ganlab\.Constraint .*brackets"),
        ("constraints", lambda: [1], ConfigError, r"constraints is 1, of type int; it must be a ganlab\.Constr"),
        ("evaluators", lambda: None, ConfigError, r"evaluators is None; it must be a list of ganlab\.Evaluator"),
    ],
)
def test_parts_without_valid_sizes_or_roles_are_refused(part, value, kind, message):
    with pytest.raises(kind, match=message):
        small(0, **{part: value()})


FIGURE = "evaluation/mode_coverage/modes"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"microbatches": 5}, r"batch_size = 12 does not divide into 5 microbatches on one replica"),
        ({"generator_batch_size": 0}, r"generator_batch_size = 0 must be a whole number of at least 1"),
        ({"ema_half_life": -1.0}, r"ema_half_life = -1\.0 must be at least 0 and finite"),
        ({"ema_half_life": 5.0, "ema_decay": 0.9}, r"Set one, not both"),
        ({"ema_buffers": True}, r"ema_buffers = True has no effect without an average"),
        ({"ema_buffers": 1, "ema_decay": 0.5}, r"ema_buffers = 1 must be True or False"),
        ({"augmentations": [3]}, r"it must be a ganlab\.Augmentation"),
        ({"keep_best": FIGURE}, r"must be a figure and a direction, as in 'evaluation/frechet_distance/distance:min'"),
        ({"keep_best": ":min"}, r"must be a figure and a direction"),
        ({"keep_best": 3}, r"experiment\.keep_best = 3 must be a text"),
        ({"keep_best": f"{FIGURE}:max", "evaluate_beside": True}, r"keep_best = .*evaluate_beside = True its figures"),
        ({"evaluate_beside": 1}, r"evaluate_beside = 1 must be True or False"),
        ({"rematerialize": 1}, r"experiment\.rematerialize = 1 must be True or False"),
        ({"rematerialize": "yes"}, r"experiment\.rematerialize = 'yes' must be True or False"),
        ({"rematerialize": None}, r"experiment\.rematerialize = None must be True or False"),
        ({"replicas": 4, "batch_size": 10}, r"batch_size = 10 does not divide over 4 replicas.* 12"),
    ],
    ids=str,
)
def test_settings_that_an_experiment_cannot_have_are_named(settings, message):
    if "evaluate_beside" in settings:
        settings = {**settings, "evaluators": [ganlab.component("evaluators", "mode_coverage")()]}
    with pytest.raises(GanlabError, match=message):
        small(**settings)


def test_numpys_whole_numbers_are_whole():
    parts = {"dataset": Sized(size=np.int64(4), sample_shape=(np.int32(2),)), "architecture": latent(np.int64(3))}
    assert np.isfinite(Trainer(small(0, **parts)).train(1)).all()


def test_a_batch_larger_than_the_dataset_spans_epochs():
    # A batch has twelve examples of four points: each occurs three times, so the batch's mean is that of the points.
    class Mean(ganlab.Constraint):
        def advance(self, weights, state, batch, replica):
            replica.log("mean", batch.real)
            return state

    points = np.arange(8.0).reshape(4, 2)
    seen = trained(2, count=3, dataset=Points(points), constraints=[Mean()]).reduced()["constraints/mean/mean"]
    np.testing.assert_allclose(seen, np.full(3, 3.5), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "kind"), [("gradient_penalty", "GradientPenalty"), ("gradient_normalization", "GradientNormalization")]
)
def test_batch_normalization_under_a_constraint_on_slopes(name, kind):
    with pytest.raises(IncompatibleError, match=rf"critic's layer .*BatchNormalization.*{kind}.*LayerNorm"):
        TrainingState(small(0, architecture=Layers(critic=normalized_critic), constraints=[constraint(name)]))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("clipnorm", 1.0),
        ("global_clipnorm", 1.0),
        ("clipvalue", 1.0),
        ("gradient_accumulation_steps", 2),
        ("use_ema", True),
        ("loss_scale_factor", 128.0),
    ],
)
@pytest.mark.parametrize("part", ["critic_optimizer", "generator_optimizer"])
def test_optimizer_settings_that_depend_on_replicas(part, setting, value):
    optimizer = keras.optimizers.Adam(1e-3, **{setting: value})
    with pytest.raises(IncompatibleError, match=f"experiment.{part} sets {setting}"):
        TrainingState(small(0, **{part: optimizer}))


def test_a_loss_scaling_optimizer():
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-3, clipnorm=1.0))
    with pytest.raises(IncompatibleError, match=r"experiment\.critic_optimizer is a LossScaleOptimizer"):
        TrainingState(small(0, critic_optimizer=scaled))


def test_one_optimizer_may_serve_both_networks():
    shared = sgd(momentum=0.9)
    state = TrainingState(small(2, critic_optimizer=shared, generator_optimizer=shared))
    assert state.critic.optimizer is not state.generator.optimizer
    assert shared not in (state.critic.optimizer, state.generator.optimizer)
    assert not shared.built
    one = trained(0, count=3, critic_optimizer=shared, generator_optimizer=shared)
    assert_same(one, trained(0, count=3, critic_optimizer=sgd(momentum=0.9), generator_optimizer=sgd(momentum=0.9)))


def test_training_leaves_the_users_keras_as_it_was(precision):
    precision("mixed_bfloat16")
    state = TrainingState(small(0))
    assert keras.config.dtype_policy().name == "mixed_bfloat16"
    assert state.critic.network.model.layers[1].dtype_policy.name == "float32"


def test_two_states_of_one_process_start_alike_under_equal_names():
    one, two = values(TrainingState(small(0, ema_decay=0.5))), values(TrainingState(small(2, ema_decay=0.5)))
    assert list(one) == list(two)
    for name, value in one.items():
        np.testing.assert_array_equal(two[name], value)
    other = values(TrainingState(small(0, seed=1)))
    assert not np.array_equal(other["critic/weights/hidden_1/kernel"], one["critic/weights/hidden_1/kernel"])


def test_dropout_drops_and_scales():
    inputs = np.ones((4, 1000), np.float32)

    class Source:
        def uniform(self, shape):
            return np.linspace(0, 1, int(np.prod(shape)), endpoint=False, dtype=np.float32).reshape(shape)

    with layers.noise_from(Source()):
        dropped = np.asarray(layers.Dropout(0.25)(inputs, training=True))
        kept = np.asarray(layers.Dropout(0.25)(inputs, training=False))
    # Uniform numbers below the rate drop: the first thousand of four.
    np.testing.assert_allclose(dropped, np.repeat([[0.0], [4 / 3], [4 / 3], [4 / 3]], 1000, axis=1), rtol=1e-6)
    np.testing.assert_array_equal(kept, inputs)
    np.testing.assert_array_equal(layers.Dropout(0.25)(inputs, training=True), inputs)  # no source to draw from


def test_gaussian_noise_adds():
    class Source:
        def normal(self, shape):
            return np.full(shape, 3.0, np.float32)

    with layers.noise_from(Source()):
        np.testing.assert_allclose(layers.GaussianNoise(0.5)(np.ones((2, 3)), training=True), np.full((2, 3), 2.5))


def test_noisy_layers_draw_anew_for_every_call_and_update():
    def only_noise(x):
        noisy = layers.GaussianNoise(1.0)(keras.layers.Lambda(lambda y: 0.0 * y)(x))
        return keras.layers.Dense(1, kernel_initializer="ones", trainable=False)(noisy)

    gaps = trained(0, count=5, architecture=Layers(critic=only_noise)).metric("critic/wasserstein")[:, 0]
    # If real and fake examples shared their noise, these would be zero; if two updates did, equal.
    assert np.abs(gaps).min() > 1e-4
    assert len(np.unique(gaps)) == 5


class OwnNoise(keras.layers.Layer):
    noisy = True

    def call(self, inputs, training=None):
        source = layers.noise(training)
        return inputs if source is None else inputs + source.uniform((*inputs.shape[:-1], 1))


def test_a_layer_of_ones_own_draws_by_example():
    def noisy(x):
        return keras.layers.Dense(1)(OwnNoise()(keras.layers.Dense(5, activation="tanh")(x)))

    one, two = (trained(replicas, count=3, architecture=Layers(critic=noisy)) for replicas in (0, 2))
    assert_same(one, two)
    assert layers.noise(True) is None  # no network is being called
    critic = one.trainer.state.critic.network.model
    assert [type(layer) for layer in layers.noisy_layers(critic)] == [OwnNoise]
    x = np.ones((2, 2), np.float32)
    np.testing.assert_array_equal(critic(x, training=False), critic(x, training=True))


@pytest.mark.parametrize(
    "layer", [lambda: layers.Dropout(1.0), lambda: layers.Dropout(-0.1), lambda: layers.GaussianNoise(-1.0)]
)
def test_rates_out_of_range(layer):
    with pytest.raises(ValueError, match="must be"):
        layer()


def test_layers_are_saved_with_their_settings():
    for layer in (layers.Dropout(0.25, name="a"), layers.GaussianNoise(0.5, name="b")):
        again = keras.layers.deserialize(keras.layers.serialize(layer))
        assert type(again) is type(layer)
        assert again.get_config() == layer.get_config()


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.layers.LSTM(3, unroll=True),
        lambda: keras.layers.SimpleRNN(3, unroll=True),
        pytest.param(lambda: keras.layers.SimpleRNN(3), marks=pytest.mark.slow),
    ],
    ids=["lstm", "simple", "loop"],
)
def test_recurrent_layers_without_dropout_draw_nothing(make):
    def critic(x):
        return keras.layers.Dense(1)(make()(keras.layers.Reshape((2, 1))(x)))

    trainer = Trainer(small(0, architecture=Layers(critic=critic), constraints=[constraint("gradient_penalty")]))
    assert np.isfinite(trainer.train(1)).all()
    assert not trainer.state.critic.buffers  # no seed in a checkpoint


@pytest.mark.parametrize("rates", [{"dropout": 0.5}, {"recurrent_dropout": 0.5}])
def test_recurrent_layers_with_dropout_draw_the_same_on_every_replica(rates):
    def critic(x):
        return keras.layers.Dense(1)(keras.layers.LSTM(3, **rates)(keras.layers.Reshape((2, 1))(x)))

    with pytest.raises(IncompatibleError, match=r"\(LSTMCell\) draws the same noise"):
        TrainingState(small(0, architecture=Layers(critic=critic)))
