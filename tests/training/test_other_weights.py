"""Networks with other weights: what plugins compute with `weights` and `at`, against numpy in float64."""

import numpy as np
import pytest
import tensorflow as tf
from making import loss
from networks_by_hand import assert_moved, differences, gradients, latents, outputs, sigmoid
from small import Layers, assert_same, constraint, dropping_critic, sgd, small, trained

import ganlab
from ganlab.training.graph import noise
from ganlab.training.graph.inputs import OF_GENERATOR, Inputs
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

RATE, GAMMA, ROWS = 0.05, 0.5, 12


def critic_loss(critic, real, fake):
    return np.mean(np.logaddexp(0, -outputs(critic, real)) + np.logaddexp(0, outputs(critic, fake)))


def generator_loss(critic, fake):
    return np.mean(np.logaddexp(0, -outputs(critic, fake)))


def by_critic(critic, real, fake):
    of_real, _ = gradients(critic, real, -sigmoid(-outputs(critic, real)) / len(real))
    of_fake, _ = gradients(critic, fake, sigmoid(outputs(critic, fake)) / len(fake))
    return [a + b for a, b in zip(of_real, of_fake, strict=True)]


def by_generator(critic, generator, latent):
    fake = outputs(generator, latent)
    _, upstream = gradients(critic, fake, -sigmoid(-outputs(critic, fake)) / len(fake))
    return gradients(generator, latent, upstream)[0]


def consensus(critic, generator, real, latent, side):
    """A side's loss with half the squared norm of the field, of the game of Goodfellow et al."""
    fake = outputs(generator, latent)
    own = critic_loss(critic, real, fake) if side == "critic" else generator_loss(critic, fake)
    field = [*by_critic(critic, real, fake), *by_generator(critic, generator, latent)]
    return own + GAMMA / 2 * sum((v**2).sum() for v in field)


def unrolled(critic, generator, real, latent, side):
    """A side's loss, the generator's against the critic three steps later."""
    fake = outputs(generator, latent)
    if side == "critic":
        return critic_loss(critic, real, fake)
    for _ in range(3):
        critic = [w - 0.4 * g for w, g in zip(critic, by_critic(critic, real, fake), strict=True)]
    return generator_loss(critic, fake)


GAMES = {
    "consensus": (consensus, lambda: loss("consensus", gamma=GAMMA)),
    "unrolled": (unrolled, lambda: loss("unrolled", steps=3, learning_rate=0.4)),
}


def parts(name):
    return {"architecture": Layers(), "loss": GAMES[name][1](), "optimizer": sgd(RATE)}


def descend(weights, gradient):
    for w, g in zip(weights, gradient, strict=True):
        w -= RATE * g


def loop(experiment, first, game, steps):
    """Alternating gradient descent in float64, each gradient by central differences of the loss."""
    inputs = Inputs(experiment)
    names = {role: [n for n in first if n.startswith(f"{role}/weights/")] for role in ("critic", "generator")}
    nets = {role: [np.asarray(first[n], np.float64) for n in own] for role, own in names.items()}

    for step in range(steps):
        examples = {k: np.asarray(x, np.float64) for k, x in inputs.of(tf.constant(step, tf.int64), 0).items()}
        for side, real, stream in (
            ("critic", examples["real"][0], noise.FAKE_LATENT),
            ("generator", examples[f"{OF_GENERATOR}real"], noise.LATENT),
        ):
            z = latents(step, stream)
            gradient = differences(lambda: game(*nets.values(), real, z, side), nets[side])  # noqa: B023 called here
            descend(nets[side], gradient)
    return {name: w for role, own in names.items() for name, w in zip(own, nets[role], strict=True)}


@pytest.mark.parametrize("name", ["unrolled", pytest.param("consensus", marks=pytest.mark.slow)])
def test_twenty_updates_are_those_of_a_loop_in_numpy(name):
    training = trained(2, **parts(name))
    expected = loop(small(**parts(name)), training.start, GAMES[name][0], 20)
    assert_moved(training, expected)
    alone = trained(**{**parts(name), "loss": loss("non_saturating")}).values
    assert max(np.abs(alone[key] - value).max() for key, value in expected.items()) > 1e-3


def test_without_steps_the_game_is_not_changed():
    games = loss("non_saturating"), loss("unrolled", steps=0)
    assert_same(*(trained(loss=game, optimizer=sgd(RATE)) for game in games))


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_constraints_and_layers_with_noise_on_replicas(name):
    given = {
        **parts(name),
        "architecture": Layers(critic=dropping_critic),
        "constraints": [constraint("spectral_norm"), constraint("gradient_normalization")],
        "generator_constraints": [constraint("weight_normalization")],
    }
    assert_same(trained(0, count=6, **given), trained(2, count=6, **given))


@pytest.mark.parametrize("name", GAMES)
def test_parts_of_a_batch_are_refused_by_name(name):
    with pytest.raises(ganlab.IncompatibleError, match=rf"^The loss {name} takes statistics of the whole batch"):
        trained(0, count=1, microbatches=3, **parts(name))


def test_a_game_that_scores_pairs_is_refused():
    with pytest.raises(ganlab.IncompatibleError, match=r"^losses\.unrolled computes scores .* and losses\.ali takes"):
        loss("unrolled", game=loss("ali"))


class Reporting(ganlab.Constraint):
    """Halves weights, triples the function, and logs what the networks give with other weights."""

    differentiates = False

    def __init__(self, every):
        self.every = every

    def initial_state(self, weights):
        return {"before": tf.zeros([])}

    def reparameterize(self, weights, state):
        return {name: 0.5 * w for name, w in weights.items()}

    def transform(self, function):
        return lambda x: 3.0 * function(x)

    def advance(self, weights, state, batch, replica, networks):
        asked = networks["critic"], networks["generator"](batch.latent)
        return {"before": replica.mean(tf.reduce_mean(moved(*asked)))}

    def penalty(self, critic, batch, state, replica, networks):
        return self.generator_penalty(networks["generator"], critic, batch, state, replica, networks)

    def generator_penalty(self, generator, critic, batch, state, replica, networks):
        replica.log("generator", moved(generator, batch.latent))
        replica.log("critic", moved(critic, batch.fake))
        replica.log("named", moved(networks["critic"], batch.fake))
        replica.log("before", state["before"])
        return 0.0 * critic(batch.fake)


def moved(network, x):
    """The output with weights that are 1.5 times as large."""
    return network.at({name: 1.5 * w for name, w in network.weights.items()})(x)


class Asking(ganlab.Loss):
    """The scores, and what a loss sees of networks with other weights."""

    def critic(self, real_scores, fake_scores, batch, replica, networks):
        replica.log("critic", moved(networks["critic"], batch.fake))
        replica.log("generator", moved(networks["generator"], batch.latent))
        return fake_scores - real_scores

    def generator(self, fake_scores, batch, replica, networks):
        replica.log("critic_later", moved(networks["critic"], batch.fake))
        replica.log("generator_later", moved(networks["generator"], batch.latent))
        return -fake_scores


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 2])  # the second makes networks inside tf.cond
def test_constraints_reparameterize_and_wrap_other_weights_as_their_own(every):
    both = {"constraints": [Reporting(every)], "generator_constraints": [Reporting(every)]}
    run = trained(2, count=1, architecture=Layers(), loss=Asking(), **both)
    first, after = run.start, run.values
    nets = {
        (role, when): [np.asarray(x, np.float64) for name, x in named.items() if name.startswith(f"{role}/weights/")]
        for role in ("critic", "generator")
        for when, named in (("first", first), ("after", after))
    }

    def made(network, role, when, x, factor):
        return 3 * network([factor * w for w in nets[role, when]], x)

    found = {tag: value[0] for tag, value in run.reduced().items()}
    for when, stream, kind, end in (
        ("first", noise.FAKE_LATENT, "constraints", ""),
        ("after", noise.LATENT, "generator_constraints", "_later"),
    ):
        z = latents(0, stream)
        fake = made(outputs, "generator", "first", z, 0.5)
        of_critic = made(outputs, "critic", when, fake, 0.75).mean()
        of_generator = made(outputs, "generator", "first", z, 0.75).mean()
        expected = {f"losses/asking/critic{end}": of_critic, f"losses/asking/generator{end}": of_generator}
        expected |= {f"{kind}/reporting/{name}": of_critic for name in ("critic", "named", "before")}
        expected |= {f"{kind}/reporting/generator": of_generator}
        for tag, value in expected.items():
            np.testing.assert_allclose(found[tag], value, rtol=2e-6, atol=1e-6, err_msg=tag)


@pytest.mark.slow
def test_a_witness_takes_the_place_of_the_score_with_other_weights_too():
    mlp = ganlab.component("architectures", "mlp")(width=8, depth=2, latent_dim=3, embedding_dim=4)
    run = trained(0, count=1, architecture=mlp, loss=loss("cramer"), constraints=[Compared()]).reduced()
    assert run["constraints/compared/same"][0] == 0.0
    assert run["constraints/compared/other"][0] > 1e-3


class Compared(ganlab.Constraint):
    """Logs how far the critic's function is from that with the same weights, and with others."""

    def penalty(self, critic, batch, state, replica):
        own = critic(batch.real)
        replica.log("same", tf.abs(critic.at(critic.weights)(batch.real) - own))
        replica.log("other", tf.abs(moved(critic, batch.real) - own))
        return own - critic(batch.real)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda w: {}, r"changed the names of the weights in at: \['dense"),
        (lambda w: {**w, "more": 1.0}, r"changed the names of the weights in at: \['more'\]\. It must give a value"),
        (lambda w: {name: x[..., :1] for name, x in w.items()}, r"gave '.*' in at the shape \(2, 1\), float32; it was"),
    ],
)
def test_weights_that_do_not_fit_are_refused(changed, message):
    class Wrong(ganlab.Constraint):
        def penalty(self, critic, batch, state, replica):
            return critic.at(changed(critic.weights))(batch.real)

    with pytest.raises(ganlab.ContractError, match=f"^A caller of the critic {message}"):
        Trainer(small(architecture=Layers(), constraints=[Wrong()])).train(1)
