"""Losses without a critic: their values against numpy and an exact assignment, and what is made without a critic."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from alone import Alone
from making import loss
from networks_by_hand import Net, assert_moved, latents
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from small import Layers, Points, assert_same, constraint, sgd, small, trained, values

import ganlab
from ganlab import config
from ganlab.composition import compose
from ganlab.errors import IncompatibleError
from ganlab.training.graph import noise
from ganlab.training.graph.inputs import Inputs
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

RATE = 0.05


@pytest.fixture
def random():
    return np.random.default_rng(3)


def values_of_rows(made, fake, real, drawn):
    batch = ganlab.Batch(
        real=tf.constant(real, tf.float32),
        fake=fake,
        labels=None,
        size=len(fake),
        step=tf.constant(0, tf.int64),
        latent=tf.zeros([len(fake), 1]),
    )
    return made.generator(batch, Alone(normal=drawn))


def value(made, fake, real, drawn=None):
    given = values_of_rows(made, tf.constant(fake, tf.float32), real, drawn).numpy()
    assert given.shape == (len(fake),)
    return given[0]


def squares(x, y):
    return ((x[:, None] - y[None]) ** 2).sum(2)


def plan_cost(x, y, epsilon, iterations):
    """`<P, C>` by Sinkhorn's iterations in float64."""
    cost = squares(x, y)
    f, g, (n, m) = np.zeros(len(x)), np.zeros(len(y)), cost.shape
    for _ in range(iterations):
        f = -epsilon * (logsumexp((g[None] - cost) / epsilon, axis=1) - np.log(m))
        g = -epsilon * (logsumexp((f[:, None] - cost) / epsilon, axis=0) - np.log(n))
    return (np.exp((f[:, None] + g[None] - cost) / epsilon) * cost).sum() / (n * m)


def divergence(fake, real, *settings):
    pairs = (fake, real), (fake, fake), (real, real)
    across, of_fake, of_real = (plan_cost(x, y, *settings) for x, y in pairs)
    return 2 * across - of_fake - of_real


@pytest.mark.parametrize(("epsilon", "iterations"), [(0.05, 30), (0.5, 7), (20.0, 50)])
def test_sinkhorn_is_that_of_a_loop_in_float64(epsilon, iterations, random):
    fake, real = random.normal(size=(9, 3)), random.normal(size=(9, 3)) + 0.5
    found = value(loss("sinkhorn", epsilon=epsilon, iterations=iterations), fake, real)
    assert found == pytest.approx(divergence(fake, real, epsilon, iterations), rel=2e-5, abs=2e-5)


def test_sinkhorn_becomes_twice_the_best_assignment(random):
    fake, real = random.normal(size=(7, 2)), random.normal(size=(7, 2))
    rows, columns = linear_sum_assignment(squares(fake, real))
    exact = 2 * squares(fake, real)[rows, columns].mean()
    far, near = (
        abs(value(loss("sinkhorn", epsilon=epsilon, iterations=500), fake, real) / exact - 1) for epsilon in (2.0, 0.01)
    )
    assert near < 0.003 < 0.02 < far


def test_sinkhorn_becomes_twice_the_squared_distance_of_the_means(random):
    fake, real = random.normal(size=(7, 2)), random.normal(size=(7, 2)) + 1.0
    means = ((fake.mean(0) - real.mean(0)) ** 2).sum()
    assert value(loss("sinkhorn", epsilon=1e4), fake, real) == pytest.approx(2 * means, rel=2e-3)


@pytest.mark.parametrize("name", ["sinkhorn", "sliced"])
def test_gradients_are_those_of_differences(name, random):
    settings = {"epsilon": 0.3, "iterations": 12} if name == "sinkhorn" else {"projections": 20}
    made, rows, drawn = loss(name, **settings), 5, random.normal(size=(20, 3))
    fake, real, toward = (random.normal(size=(rows, 3)) for _ in range(3))
    fake = tf.constant(fake, tf.float32)

    def at(x):
        x = x.numpy().astype(np.float64)
        return divergence(x, real, 0.3, 12) if name == "sinkhorn" else sliced(x, real, drawn)

    with tf.GradientTape() as tape:
        tape.watch(fake)
        mean = tf.reduce_mean(values_of_rows(made, fake, real, drawn))
    slope = float(tf.reduce_sum(tape.gradient(mean, fake) * toward))
    x = tf.cast(fake, tf.float64)
    difference = (at(x + 1e-5 * toward) - at(x - 1e-5 * toward)) / 2e-5
    assert slope == pytest.approx(difference, rel=2e-4)


def sliced(fake, real, drawn):
    """The mean over directions, each by sorting."""
    total = 0.0
    for direction in drawn / np.linalg.norm(drawn, axis=1, keepdims=True):
        total += np.mean((np.sort(fake @ direction) - np.sort(real @ direction)) ** 2)
    return total / len(drawn)


@pytest.mark.parametrize("projections", [4, 6, 23])
def test_sliced_is_that_of_a_loop_in_float64(projections, random):
    fake, real = random.normal(size=(6, 5)), random.normal(size=(6, 5)) + 0.5
    drawn = random.normal(size=(-(-projections // 6) * 6, 5))
    found = value(loss("sliced", projections=projections), fake, real, drawn)
    assert found == pytest.approx(sliced(fake, real, drawn[:projections]), rel=1e-5)


def test_sliced_of_a_shift_is_its_square_by_the_dimension(random):
    # E (direction . shift)^2 = |shift|^2 / d, and every projection moves as a whole.
    points, shift = random.normal(size=(16, 3)), np.array([3.0, 0.0, 4.0])
    found = value(loss("sliced", projections=16 * 2000), points + shift, points, random.normal(size=(16 * 2000, 3)))
    assert found == pytest.approx(25 / 3, rel=0.02)


class Means(ganlab.Loss):
    """Half the squared distance of the two batches' means: a loss that a loop by hand can follow."""

    pairs = True

    def generator(self, batch, replica):
        gap = replica.mean(tf.reduce_mean(batch.fake, axis=0)) - replica.mean(tf.reduce_mean(batch.real, axis=0))
        return tf.fill([batch.fake.shape[0]], 0.5 * tf.reduce_sum(gap**2))


def alone(**changed):
    given = {"loss": Means(), "architecture": Layers(), "critic_optimizer": None, "generator_optimizer": sgd(RATE)}
    return {**given, **changed}


@pytest.mark.parametrize("replicas", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_generator_without_a_critic_is_that_of_a_loop(replicas):
    training = trained(replicas, **alone())
    generator, inputs = Net(training.start, "generator"), Inputs(small(0, **alone()))
    for step in range(20):
        z = latents(step, noise.LATENT)
        real = inputs.of(tf.constant(step, tf.int64), 0)["generator/real"].numpy()
        gap = generator(z).mean(0) - real.mean(0)
        assert training.metric("generator/loss")[step, 0] == pytest.approx(0.5 * (gap**2).sum(), rel=1e-4)
        generator.descend(RATE, generator.back(np.tile(gap / 12, (12, 1)))[0])
    assert_moved(training, dict(zip(generator.names, generator.weights, strict=True)))


@pytest.mark.parametrize("name", ["sinkhorn", "sliced"])
@pytest.mark.parametrize(
    ("replicas", "changed"),
    [(2, {}), pytest.param(4, {}, marks=pytest.mark.slow), pytest.param(0, {"jit": "step"}, marks=pytest.mark.slow)],
)
def test_batches_are_compared_as_on_one_device(name, replicas, changed):
    given = alone(loss=loss(name), batch_size=12)
    assert_same(trained(0, count=8, **given), trained(replicas, count=8, **given, **changed), atol=3e-6)


@pytest.mark.parametrize("replicas", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_linear_critic_of_max_sliced_finds_the_best_of_all_directions(replicas):
    ring = ganlab.component("datasets", "gaussian_ring")(modes=1, std=0.3)
    given = {
        "loss": loss("max_sliced", game=loss("wasserstein")),
        "architecture": Layers(critic=keras.layers.Dense(1)),
        "constraints": [constraint("spectral_norm")],
        "generator_optimizer": sgd(1e-9),
        "dataset": ring,
        "batch_size": 96,
    }
    training, steps = trained(replicas, count=100, critic_optimizer=sgd(0.3), **given), np.arange(95, 100)
    generator, inputs = Net(training.start, "generator"), Inputs(small(0, **given))
    angles = np.linspace(0, np.pi, 2000)
    directions = np.stack([np.cos(angles), np.sin(angles)])
    for step, found in zip(steps, training.metric("generator/loss")[steps, 0], strict=True):
        z = latents(int(step), noise.LATENT, 96)
        real = inputs.of(tf.constant(step, tf.int64), 0)["generator/real"].numpy()
        fake, real = (np.sort(x @ directions, axis=0) for x in (generator(z), real))
        of_all = np.mean((fake - real) ** 2, axis=0)
        assert 0.95 * of_all.max() < found < 1.0001 * of_all.max()
        assert of_all.min() < 0.3 * of_all.max()


def test_nothing_is_made_for_a_critic():
    trainer = Trainer(small(0, **alone(ema_decay=0.9)))
    trainer.train(2)
    assert list(trainer.state.players) == ["generator"]
    assert {name.split("/")[0] for name in values(trainer.state)} == {"generator"}
    assert [metric.tag for metric in trainer.metrics] == ["generator/loss"]
    operations = {op.name for op in trainer.graph().get_operations()}
    assert not [name for name in operations if "critic" in name]
    inputs = Inputs(small(0, **alone(dataset=Points(np.zeros((24, 2))))))
    assert list(inputs.of(tf.constant(0, tf.int64), 0)) == ["generator/real"]


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"constraints": [constraint("gradient_penalty")]}, IncompatibleError, "and experiment.constraints needs one"),
        (
            {"generator_constraints": [constraint("latent_step")]},
            IncompatibleError,
            "This needs a critic, and the experiment's loss trains none: it compares batches.",
        ),
        (
            {"diagnostics": [ganlab.component("diagnostics", "surface")()]},
            IncompatibleError,
            "Means has no loss for a critic, so that none is trained, and experiment.diagnostics needs one. Leave that",
        ),
        (
            {"microbatches": 2},
            IncompatibleError,
            "takes statistics of the whole batch, which its parts do not know. Set experiment.microbatches = 1",
        ),
    ],
)
def test_what_needs_a_critic_is_refused_by_name(changed, error, message):
    with pytest.raises(error, match=re.escape(message)):
        Trainer(small(0, **alone(**changed))).trace()


AROUND = ("consensus", "d2d_ce", "feature_matching", "info", "max_sliced", "normalized_gradient", "self_supervised")


@pytest.mark.parametrize("name", [*AROUND, "top_k", "unrolled"])
def test_a_loss_around_a_game_with_a_critic_refuses_one_without_by_name(name):
    message = rf"^losses\.{name} extends a game of generator and critic, and losses\.sliced has no loss for a critic"
    with pytest.raises(IncompatibleError, match=message):
        loss(name, game=loss("sliced"))


def test_a_whole_run_has_no_critic(tmp_path):
    settings = {"steps": 4, "evaluate_every": 2, "evaluators": [ganlab.component("evaluators", "sliced_wasserstein")()]}
    given = alone(loss=loss("sliced"), architecture=ganlab.component("architectures", "mlp")(width=4), **settings)
    run = ganlab.train(small(0, **given), tmp_path / "run")
    tags = {record.tag for record in run.metrics()}
    assert "generator/loss" in tags
    assert not [tag for tag in tags if tag.startswith("critic/")]
    text = (tmp_path / "run" / "config.gin").read_text()
    assert "critic_optimizer" not in text
    assert compose(config.load([tmp_path / "run" / "config.gin"])).critic_optimizer is None
    assert run.generator()(tf.zeros([3, 2])).shape == (3, 2)
