"""Optimizers whose gradient is taken at weights ahead, and the game that descent circles in."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify.lab import Training, differing, resumed
from making import loss
from networks_by_hand import Net, assert_moved, latents, sigmoid
from small import Layers, Points, assert_same, computed, constraint, sgd, small, trained, values

import ganlab
from ganlab.training.graph import noise
from ganlab.training.graph.inputs import Inputs
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

RATE, OTHER_RATE, LIMIT = 0.3, 0.2, 0.4


def extragradient(rate=RATE, **arguments):
    return ganlab.component("optimizers", "extragradient")(learning_rate=rate, **arguments)


@keras.saving.register_keras_serializable("tests")
class One(keras.layers.Layer):
    """A generator of one point: its weight."""

    def build(self, shape):
        self.x = self.add_weight(shape=(1,), initializer=keras.initializers.Constant(1.0), name="x")

    def call(self, latent):
        return 0.0 * latent + self.x


def played(optimizer, count=300):
    """Where this many updates of the game of a generator's point x and a critic y * sample lead from (1, 1).

    Its loss is x * y, and its solution (0, 0).
    """
    one = keras.initializers.Constant(1.0)
    architecture = Layers(
        generator=One(name="point"),
        critic=keras.layers.Dense(1, use_bias=False, kernel_initializer=one, name="slope"),
        latent_dim=1,
    )
    dataset = Points(np.zeros((12, 1)))
    trainer = Trainer(small(architecture=architecture, dataset=dataset, optimizer=optimizer, steps=count))
    trainer.train(count)
    after = values(trainer.state)
    return np.array([after["generator/weights/point/x"].item(), after["critic/weights/slope/kernel"].item()])


def test_extragradient_solves_the_bilinear_game():
    # Each update multiplies x + iy by 1 - ir - r^2, of the absolute value sqrt(1 - r^2 + r^4) < 1.
    assert np.hypot(*played(extragradient())) < 1e-3
    after = (1 - RATE**2 - 1j * RATE) ** 40 * (1 + 1j)
    np.testing.assert_allclose(played(extragradient(), 40), [after.real, after.imag], atol=1e-5)


def test_gradient_descent_circles_around_its_solution():
    assert np.hypot(*played(sgd(RATE))) > 0.5


def test_optimistic_adam_solves_it_where_adam_circles():
    optimistic, adam = (
        ganlab.component("optimizers", name)(learning_rate=0.1, beta_1=0.0, beta_2=0.999)
        for name in ("optimistic_adam", "adam")
    )
    assert np.hypot(*played(optimistic)) < 1e-3
    assert np.hypot(*played(adam)) > 0.5


def parts(**changed):
    given = {
        "architecture": Layers(),
        "loss": loss("non_saturating"),
        "constraints": [constraint("weight_clipping", limit=LIMIT)],
        "critic_optimizer": extragradient(),
        "generator_optimizer": extragradient(OTHER_RATE),
        "critic_steps": 2,
    }
    return {**given, **changed}


def by_hand(experiment, first, steps):
    """The weights after a loop of the same game, written without ganlab and TensorFlow but for the numbers drawn."""
    generator, critic = Net(first, "generator"), Net(first, "critic")
    rows, inputs = experiment.batch_size, Inputs(experiment)

    def of_generator(z, weights, critics):
        generator.weights, critic.weights = weights, critics
        _, by_critic = critic.back(-sigmoid(-critic(generator(z))) / rows)
        return generator.back(by_critic)[0]

    def of_critic(real, z, weights, critics):
        generator.weights, critic.weights = weights, critics
        of_real = critic.back(-sigmoid(-critic(real)) / rows)[0]
        of_fake = critic.back(sigmoid(critic(generator(z))) / rows)[0]
        return [a + b for a, b in zip(of_real, of_fake, strict=True)]

    def moved(weights, gradients, rate, limit=np.inf):
        return [np.clip(w - rate * g, -limit, limit) for w, g in zip(weights, gradients, strict=True)]

    x, y = generator.weights, critic.weights
    for step in range(steps):
        examples = inputs.of(tf.constant(step, tf.int64), 0)["real"].numpy().astype(np.float64)
        z, many = latents(step, noise.LATENT), experiment.critic_steps
        x_ahead = moved(x, of_generator(z, x, y), OTHER_RATE)
        for k in range(many):
            fixed = examples[k], latents(many * step + k, noise.FAKE_LATENT)
            y_ahead = moved(y, of_critic(*fixed, x, y), RATE, LIMIT)
            y = moved(y, of_critic(*fixed, x_ahead, y_ahead), RATE, LIMIT)
        x = moved(x, of_generator(z, x_ahead, y_ahead), OTHER_RATE)
    return dict(zip(generator.names + critic.names, x + y, strict=True))


@pytest.fixture(scope="module")
def one(cpus):
    return trained(0, **parts())


@pytest.mark.parametrize(("replicas", "critic_steps"), [pytest.param(0, 1, marks=pytest.mark.slow), (2, 2)])
def test_twenty_updates_are_those_of_a_loop_by_hand(replicas, critic_steps):
    training = trained(replicas, **parts(critic_steps=critic_steps))
    expected = by_hand(small(0, **parts(critic_steps=critic_steps)), training.start, 20)
    assert sorted(expected) == sorted(name for name in training.values if "/weights/" in name)
    assert_moved(training, expected, least=1e-2)
    descent = {"critic_optimizer": sgd(RATE), "generator_optimizer": sgd(OTHER_RATE)}
    plain = trained(0, **parts(critic_steps=critic_steps, **descent))
    assert max(np.abs(plain.values[name] - value).max() for name, value in expected.items()) > 1e-3


@pytest.mark.slow
@computed
def test_they_train_the_same_however_they_are_computed(one, replicas, changed):
    assert_same(one, trained(replicas, **parts(**changed)))


class Scaled(ganlab.Augmentation):
    """Scales samples by a state that follows the critic's scores, and at random."""

    def initial_state(self):
        return {"scale": tf.constant(1.0)}

    def apply(self, x, state, replica):
        return x * (state["scale"] + 0.1 * replica.normal(x.shape))

    def advance(self, state, scores, replica):
        return {"scale": 0.9 * state["scale"] + 0.1 * tf.sigmoid(replica.mean(tf.reduce_mean(scores)))}


def with_states(**changed):
    return parts(
        constraints=[constraint("spectral_norm"), constraint("gradient_penalty")],
        generator_constraints=[constraint("weight_normalization")],
        augmentations=[Scaled()],
        critic_optimizer=extragradient(0.05),
        generator_optimizer=extragradient(0.05),
        **changed,
    )


@pytest.mark.slow
def test_a_resumed_run_has_the_same_bits():
    assert differing(*resumed(Training(small(2, **with_states(ema_decay=0.5))), 4, 2)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("replicas", "changed"), [(2, {}), (0, {"jit": "on"})])
def test_with_states_and_random_numbers_too(replicas, changed):
    assert_same(trained(0, **with_states()), trained(replicas, **with_states(**changed)))


def test_an_optimizer_that_looks_ahead_beside_one_that_does_not_is_refused():
    message = (
        r"experiment\.critic_optimizer looks ahead and experiment\.generator_optimizer does not: all networks step "
        r"ahead together, or none\. Use optimizers that look ahead for all of them, or for none\."
    )
    with pytest.raises(ganlab.IncompatibleError, match=message):
        Trainer(small(critic_optimizer=extragradient()))


class Shorter(keras.optimizers.SGD):
    def look_ahead(self, gradients, weights):
        return weights[1:]


class Failing(keras.optimizers.SGD):
    def look_ahead(self, gradients, weights):
        return 1 / 0


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (Shorter, ganlab.ContractError, r"Shorter returned the shapes \[.*\] from look_ahead; it must keep those"),
        (Failing, ganlab.PluginError, r"Failing failed in look_ahead: ZeroDivisionError.*test_look_ahead.py"),
    ],
)
def test_errors_in_look_ahead_name_the_optimizer(kind, error, message):
    with pytest.raises(error, match=message):
        Trainer(small(critic_optimizer=kind(0.1), generator_optimizer=kind(0.1))).trace()
