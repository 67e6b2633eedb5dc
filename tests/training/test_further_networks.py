"""Networks beside generator and critic: two critics and an encoder, as a plugin adds them."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify.lab import Training, differing, resumed
from ganlab_verify.testing.parts import Wasserstein
from networks_by_hand import Net, assert_moved, latents, sigmoid
from small import Layers, assert_same, computed, constraint, sgd, small, trained, values

import ganlab
from ganlab import ConfigError, ContractError, IncompatibleError, PluginError
from ganlab.training.evaluation import Evaluation
from ganlab.training.graph import noise
from ganlab.training.graph.inputs import Inputs
from ganlab.training.graph.trainer import Trainer
from ganlab.training.graph.variables import read, values_of

pytestmark = pytest.mark.usefixtures("cpus")

RATE, ENCODER_RATE, LIMIT, PULL = 0.05, 0.02, 0.2, 0.3


def mlp(inputs, units, outputs):
    hidden = keras.layers.Dense(units, activation="tanh", name="hidden")(inputs)
    return keras.Model(inputs, keras.layers.Dense(outputs, name="out")(hidden))


class Four(Layers):
    """Generator, two critics, and an encoder of samples."""

    def networks(self, sample_shape):
        encoder = mlp(keras.Input(sample_shape), 5, self.latent_dim)
        return {"generator": {"encoder": encoder}, "critic": {"second": mlp(keras.Input(sample_shape), 6, 1)}}


class Nameless(Four):
    """The same networks, whose layers Keras numbers through all of them."""

    def networks(self, sample_shape):
        encoder, second = (keras.Sequential([keras.Input(sample_shape), keras.layers.Dense(n)]) for n in (3, 1))
        return {"generator": {"encoder": encoder}, "critic": {"second": second}}


class TwoCritics(ganlab.Loss):
    """The game of Goodfellow et al. (2014) with one critic, least squares with the other, and latents to recover."""

    def critic(self, real_scores, fake_scores, batch, networks):
        second = networks["second"]
        squares = (second(batch.real) - 1.0) ** 2 + second(batch.fake) ** 2
        return tf.nn.softplus(-real_scores) + tf.nn.softplus(fake_scores) + 0.5 * squares

    def generator(self, fake_scores, batch, networks, replica):
        missed = tf.reduce_sum((networks["encoder"](batch.fake) - batch.latent) ** 2, axis=1)
        replica.log("missed", missed)
        return tf.nn.softplus(-fake_scores) + 0.5 * (networks["second"](batch.fake) - 1.0) ** 2 + PULL * missed


def parts(**changed):
    given = {
        "architecture": Four(),
        "loss": TwoCritics(),
        "optimizer": sgd(RATE),
        "optimizers": {"encoder": sgd(ENCODER_RATE)},
        "network_constraints": {"second": [constraint("weight_clipping", limit=LIMIT)]},
        "critic_steps": 2,
    }
    return {**given, **changed}


def by_hand(experiment, first, steps):
    """The weights after a loop of the same game, written without ganlab and TensorFlow but for the numbers drawn."""
    nets = {role: Net(first, role) for role in ("generator", "critic", "second", "encoder")}
    generator, critic, second, encoder = nets.values()
    rows, inputs = experiment.batch_size, Inputs(experiment)

    for step in range(steps):
        examples = inputs.of(tf.constant(step, tf.int64), 0)["real"].numpy().astype(np.float64)
        for k in range(2):
            fake = generator(latents(2 * step + k, noise.FAKE_LATENT))
            of_real = critic.back(-sigmoid(-critic(examples[k])) / rows)[0]
            of_fake = critic.back(sigmoid(critic(fake)) / rows)[0]
            other_real = second.back((second(examples[k]) - 1) / rows)[0]
            other_fake = second.back(second(fake) / rows)[0]
            critic.descend(RATE, of_real, of_fake)
            second.descend(RATE, other_real, other_fake)
            second.weights = [np.clip(w, -LIMIT, LIMIT) for w in second.weights]
        z = latents(step, noise.LATENT)
        fake = generator(z)
        _, by_critic = critic.back(-sigmoid(-critic(fake)) / rows)
        _, by_second = second.back((second(fake) - 1) / rows)
        of_encoder, by_encoder = encoder.back(2 * PULL * (encoder(fake) - z) / rows)
        of_generator, _ = generator.back(by_critic + by_second + by_encoder)
        encoder.descend(ENCODER_RATE, of_encoder)
        generator.descend(RATE, of_generator)
    return {name: w for net in nets.values() for name, w in zip(net.names, net.weights, strict=True)}


@pytest.fixture(scope="module")
def one(cpus):
    return trained(0, **parts())


def test_twenty_updates_are_those_of_a_loop_by_hand():
    training = trained(2, **parts())
    after, expected = training.values, by_hand(small(0, **parts()), training.start, 20)
    assert sorted(expected) == sorted(name for name in after if "/weights/" in name)
    assert_moved(training, expected)
    assert max(np.abs(after[name]).max() for name in after if name.startswith("second/weights/")) == np.float32(LIMIT)


@pytest.mark.slow
@computed
def test_they_train_the_same_however_they_are_computed(one, replicas, changed):
    assert_same(one, trained(replicas, **parts(**changed)))


def test_a_resumed_run_has_the_same_bits():
    adam = ganlab.component("optimizers", "adam")
    settings = parts(
        generator_optimizer=adam(learning_rate=0.01),
        optimizers={"second": adam(learning_rate=0.02)},
        network_constraints={"second": [constraint("spectral_norm")], "encoder": [constraint("weight_normalization")]},
        ema_decay=0.5,
    )
    straight, again = resumed(Training(small(0, **settings)), 4, 2)
    assert differing(straight, again) == []
    assert {name.rpartition("/")[0] for name in straight if "second" in name or "encoder" in name} == {
        "encoder/weights/hidden",
        "encoder/weights/out",
        "encoder/average/hidden",
        "encoder/average/out",
        "encoder/optimizer",
        "network_constraints/encoder/weight_normalization/parameters/hidden",
        "network_constraints/encoder/weight_normalization/parameters/out",
        "network_constraints/encoder/weight_normalization/average/hidden",
        "network_constraints/encoder/weight_normalization/average/out",
        "network_constraints/second/spectral_norm/state/hidden",
        "network_constraints/second/spectral_norm/state/out",
        "second/optimizer",
        "second/weights/hidden",
        "second/weights/out",
    }


def test_the_first_two_are_as_they_are_without_them():
    alone, together = values(Trainer(small()).state), values(Trainer(small(architecture=Beside(), loss=Calls())).state)
    assert list(alone) == [name for name in together if not name.startswith("encoder/")]
    for name, value in alone.items():
        np.testing.assert_array_equal(together[name], value, err_msg=name)


class Beside(ganlab.Architecture):
    """The networks of `small`, and an encoder."""

    latent_dim = 3

    def __init__(self, further=None):
        self._mlp = ganlab.component("architectures", "mlp")(width=8, depth=2, activation="tanh", latent_dim=3)
        self._further = further or (lambda shape: {"generator": {"encoder": mlp(keras.Input(shape), 4, 3)}})

    def generator(self, sample_shape):
        return self._mlp.generator(sample_shape)

    def critic(self, sample_shape):
        return self._mlp.critic(sample_shape)

    def networks(self, sample_shape):
        return self._further(sample_shape)


class Calls(Wasserstein):
    """A loss that calls networks by name."""

    def __init__(self, *names):
        self._names = names or ("encoder",)

    def generator(self, fake_scores, batch, networks):
        return -fake_scores + sum(tf.reduce_sum(networks[name](batch.fake), axis=1) for name in self._names)


class Recovers(ganlab.Constraint):
    """A penalty of the generator and one of an encoder, each with the networks by name."""

    def generator_penalty(self, generator, critic, batch, state, replica, networks):
        return tf.reduce_sum((networks["encoder"](batch.fake) - batch.latent) ** 2, axis=1)


class Smooth(ganlab.Constraint):
    """A penalty of an encoder: its own function comes first."""

    def generator_penalty(self, generator, critic, batch, state, replica):
        codes = generator(batch.fake)
        replica.log("code", codes)
        return tf.reduce_sum(codes**2, axis=1)


def test_penalties_reach_networks_by_name_and_their_own():
    recovered = {"generator_constraints": [Recovers()], "architecture": Beside()}
    training = trained(count=1, **recovered, network_constraints={"encoder": [Smooth()]})
    kernel = "encoder/weights/out/kernel"
    assert np.abs(training.values[kernel] - training.start[kernel]).max() > 1e-5
    assert "network_constraints/encoder/smooth/code" in training.reduced()


def test_every_network_of_one_input_has_its_certificates():
    norm = {"generator_constraints": [constraint("spectral_norm", target=3.0)], "ema_decay": 0.5}
    training = Training(experiment := small(**parts(**norm))).train(3)
    records = Evaluation(experiment, training.state)(3, None).records
    logged = {r.tag: r.reduced for r in records if r.tag.endswith("lipschitz_bound")}

    def product(role):
        weights = {name: w.numpy() for name, w in training.state.sampling_weights(role).items()}
        return np.prod([np.linalg.norm(w, 2) for name, w in weights.items() if "kernel" in name])

    assert logged == {
        "generator_constraints/spectral_norm/lipschitz_bound": pytest.approx(product("generator"), rel=1e-3),
        "network_constraints/second/weight_clipping/lipschitz_bound": pytest.approx(product("second"), rel=1e-3),
    }


def test_a_gradient_penalty_constrains_a_second_critic_as_the_first():
    # The second critic has the first one's weights and loss: under the same penalty the two stay alike.
    class Twins(Layers):
        def networks(self, sample_shape):
            return {"critic": {"second": self.critic(sample_shape)}}

    class Both(Wasserstein):
        def critic(self, real_scores, fake_scores, batch, networks):
            second = networks["second"]
            return fake_scores - real_scores + second(batch.fake) - second(batch.real)

    penalized = [constraint("r1", gamma=1.0)]
    trainer = Trainer(
        small(architecture=Twins(), loss=Both(), constraints=penalized, network_constraints={"second": penalized})
    )
    first = {
        name.removeprefix("critic/"): v for name, v in values(trainer.state).items() if name.startswith("critic/w")
    }
    for (_, variable), value in zip(trainer.state.players["second"].weights.items(), first.values(), strict=True):
        variable.assign(value)
    trainer.train(5)
    players = trainer.state.players
    for (name, one), two in zip(players["critic"].weights.items(), players["second"].weights.values(), strict=True):
        np.testing.assert_allclose(two.numpy(), one.numpy(), rtol=1e-5, atol=1e-7, err_msg=name)
        if "kernel" in name:
            assert np.abs(one.numpy() - first[f"weights/{name}"]).max() > 1e-4


def model(shape=(2,), outputs=3):
    return mlp(keras.Input(shape), 4, outputs)


def shared(shape):
    layer = keras.layers.Dense(3, name="layer")
    return {"generator": {name: keras.Sequential([keras.Input(shape), layer]) for name in ("one", "two")}}


def encoder(**changed):
    return {"architecture": Beside(), "loss": Calls(), **changed}


def beside(further):
    return {"architecture": Beside(further)}


MISTAKES = {
    "no dict": (lambda: beside(lambda shape: [model()]), ContractError, "dict by the side"),
    "side": (lambda: beside(lambda s: {"encoder": model()}), ContractError, "generator' or 'critic'"),
    "taken": (lambda: beside(lambda s: {"generator": {"critic": model()}}), ContractError, "names a network 'critic'"),
    "twice": (
        lambda: beside(lambda s: {"generator": {"e": model()}, "critic": {"e": model()}}),
        ContractError,
        "names a network 'e'",
    ),
    "no name": (lambda: beside(lambda s: {"critic": {"a/b": model()}}), ContractError, "identifier"),
    "no model": (lambda: beside(lambda s: {"critic": {"a": 3}}), ContractError, "a keras.Model"),
    "not built": (
        lambda: beside(lambda s: {"critic": {"a": keras.Sequential([keras.layers.Dense(2)])}}),
        ContractError,
        "does not say what its inputs are",
    ),
    "shared": (lambda: {**beside(shared), "loss": Calls("one", "two")}, ContractError, "belongs to one"),
    "untrained": (lambda: beside(None), ContractError, "Nothing trains the network 'encoder'"),
    "wrong side": (
        lambda: {**encoder(), **beside(lambda s: {"critic": {"encoder": model()}})},
        ContractError,
        "Nothing trains the network 'encoder'.*the critic's loss",
    ),
    "optimizer": (lambda: encoder(optimizers={"encodr": sgd()}), ConfigError, "Did you mean 'encoder'"),
    "own optimizer": (
        lambda: encoder(optimizers={"critic": sgd()}),
        ConfigError,
        "whose setting is experiment.critic_optimizer",
    ),
    "constraints": (
        lambda: {"network_constraints": {"encoder": []}},
        ConfigError,
        "'encoder' is none of the networks that architectures.mlp has beside generator and critic; it has none",
    ),
    "other side's constraint": (
        lambda: encoder(network_constraints={"encoder": [constraint("gradient_penalty")]}),
        IncompatibleError,
        re.escape("no effect in experiment.network_constraints['encoder']"),
    ),
    "no list": (
        lambda: encoder(network_constraints={"encoder": constraint("r1")}),
        ConfigError,
        re.escape("experiment.network_constraints['encoder'] is") + ".*put it in brackets",
    ),
    "no optimizer": (lambda: encoder(optimizers={"encoder": 0.1}), ConfigError, "keras.optimizers.Optimizer"),
    "clipped": (
        lambda: encoder(optimizers={"encoder": keras.optimizers.SGD(clipnorm=1.0)}),
        IncompatibleError,
        re.escape("experiment.optimizers['encoder'] sets clipnorm"),
    ),
    "pairs": (
        lambda: {"architecture": ganlab.component("architectures", "ali")(), "loss": Calls()},
        IncompatibleError,
        re.escape("takes sample (2,) and latent (2,), where examples are (2,), and Calls scores examples alone"),
    ),
    "unknown": (lambda: {"loss": Calls("encoder")}, PluginError, "encoder"),
    "seed": (
        lambda: {**encoder(), **beside(lambda s: {"generator": {"encoder": dropping(s)}})},
        IncompatibleError,
        "The encoder's layer .* draws the same noise",
    ),
}


def dropping(shape):
    return keras.Sequential([keras.Input(shape), keras.layers.Dropout(0.5), keras.layers.Dense(3)])


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake):
    given, error, said = MISTAKES[mistake]
    with pytest.raises(error, match=said):
        Trainer(small(**given())).train(1)


@pytest.mark.parametrize("name", ["encoder", "critic"])
@pytest.mark.parametrize("architecture", [Four(), Nameless()], ids=["names", "numbers"])
def test_a_run_gives_a_network_as_it_scores_and_as_samples_are_drawn(architecture, name, tmp_path):
    settings = parts(
        architecture=architecture,
        dataset=ganlab.component("datasets", "gaussian_ring")(),
        network_constraints={"encoder": [constraint("weight_normalization")]},
        constraints=[constraint("spectral_norm")],
        ema_decay=0.5,
        steps=3,
    )
    experiment = small(0, **settings)
    run = ganlab.train(experiment, tmp_path / "run")
    trainer = Trainer(small(0, **settings))
    trainer.train(3)
    player, x = trainer.state.players[name], np.ones([5, 2], np.float32)
    weights = player.stack.effective(values_of(player.sampled))
    expected = player.network(x, weights, {}, training=False)[0]
    loaded = run.network(name, experiment=experiment)
    np.testing.assert_allclose(loaded(x).numpy(), expected.numpy(), rtol=1e-6)
    assert np.abs(expected - player.network(x, read(player.weights), {}, training=False)[0]).max() > 1e-4
    with pytest.raises(ConfigError, match="Did you mean 'encoder'"):
        run.network("encodr", experiment=experiment)
