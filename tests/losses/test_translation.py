"""CycleGAN, pix2pix and neural optimal transport: their losses by numpy, and what they train."""

import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify import lab
from making import component

import ganlab
from ganlab import config
from ganlab.engine import Trainer, compose, read, sampler
from ganlab.training.graph.inputs import Inputs

pytestmark = pytest.mark.usefixtures("cpus")


class Seen(ganlab.Constraint):
    """Logs the examples that it is given."""

    def initial_state(self, weights):
        return {"mean": tf.constant(0.0)}

    def advance(self, weights, state, batch, replica):
        return {"mean": replica.mean(tf.reduce_mean(batch.real))}

    def penalty(self, critic, batch, state, replica):
        for name, value in (("real", batch.real), ("fake", batch.fake)):
            replica.log(name, tf.reduce_mean(value, axis=1))
        replica.log("state", state["mean"])
        return 0.0 * critic(batch.real)


def slope(function, x):
    """The mean norm of the gradient at some points, by central differences."""
    steps = 1e-3 * np.eye(x.shape[1], dtype=np.float32)
    rows = [(function(x + step) - function(x - step)) / 2e-3 for step in steps]
    return np.linalg.norm(np.concatenate(rows, axis=1), axis=1).mean()


def first_losses(**parts):
    """The logged losses of one step, and the step's rows and a function that runs its networks as they were."""
    # Rates that move nothing: the losses of both sides are those of the first weights.
    experiment = lab.experiment(rates=(1e-12, 1e-12), **parts)
    trainer = Trainer(experiment)
    players = trainer.state.players
    rows = {k: x.numpy() for k, x in Inputs(experiment).of(tf.constant(0, tf.int64), 0).items()}

    def run(role, x, **given):
        network = players[role].network
        y = network(tf.constant(x), read(network.weights), {}, given=given)[0]
        return tf.nest.map_structure(lambda each: each.numpy(), y)

    values = trainer.train(1)[0, 0]
    return dict(zip([metric.tag for metric in trainer.metrics], values, strict=True)), rows, run


def test_the_first_losses_of_a_cycle_are_those_of_equation_3():
    logged, rows, run = first_losses(
        dataset=component("datasets", "gaussian_ring"),
        source=component("datasets", "swiss_roll"),
        architecture=component("architectures", "cyclegan", width=8, depth=1),
        loss=component("losses", "cycle", weight=3.0),
        constraints=[component("constraints", "r1")],
        network_constraints={"source_critic": [component("constraints", "r1"), Seen()]},
    )
    z = np.zeros((12, 0), np.float32)
    x, y = rows["source"][0], rows["real"][0]
    there = run("generator", z, source=tf.constant(x))
    squares = [(run("critic", y) - 1) ** 2, run("critic", there) ** 2]
    squares += [(run("source_critic", x) - 1) ** 2, run("source_critic", run("back", y)) ** 2]
    game = logged["critic/loss"] - logged["critic/penalty"]
    np.testing.assert_allclose(game, np.sum([s.mean() for s in squares]), rtol=1e-5)

    # The penalty of each critic is at what that critic is to score high.
    logged_slopes = [logged[f"{of}/r1/slope"] for of in ("constraints", "network_constraints/source_critic")]
    slopes = [slope(lambda at, of=of: run(of, at)[:, None], at) for of, at in (("critic", y), ("source_critic", x))]
    np.testing.assert_allclose(logged_slopes, slopes, rtol=2e-3)
    seen = [logged[f"network_constraints/source_critic/seen/{name}"] for name in ("real", "fake", "state")]
    np.testing.assert_allclose(seen, [x.mean(), run("back", y).mean(), x.mean()], rtol=1e-4)

    x, y = rows["generator/source"], rows["generator/real"]
    there, back = run("generator", z, source=tf.constant(x)), run("back", y)
    cycle = np.abs(run("back", there) - x).mean() + np.abs(run("generator", z, source=tf.constant(back)) - y).mean()
    games = ((run("critic", there) - 1) ** 2).mean() + ((run("source_critic", back) - 1) ** 2).mean()
    np.testing.assert_allclose(logged["generator/loss"], games + 3.0 * cycle, rtol=1e-5)
    np.testing.assert_allclose(logged["losses/cycle/cycle"], cycle / 2, rtol=1e-5)


def test_the_first_losses_of_pix2pix_are_those_of_equation_4():
    logged, rows, run = first_losses(
        dataset=component("datasets", "edges", side=8),
        architecture=component("architectures", "unet", channels=4, depth=2, patch_depth=1),
        loss=component("losses", "pix2pix", weight=7.0),
    )
    z = np.zeros((12, 0), np.float32)

    def probabilities(image, source):
        patches = run("critic", image, source=tf.constant(source))["patches"]
        assert patches.shape == (12, 4, 4, 1)
        return 1 / (1 + np.exp(-patches.astype(np.float64)))

    x, y = rows["source"][0], rows["real"][0]
    fake = run("generator", z, source=tf.constant(x))
    objective = np.log(probabilities(y, x)).mean() + np.log(1 - probabilities(fake, x)).mean()  # equation 1
    np.testing.assert_allclose(logged["critic/loss"], -objective / 2, rtol=1e-5)
    x, y = rows["generator/source"], rows["generator/real"]
    fake = run("generator", z, source=tf.constant(x))
    distance = np.abs(y - fake).mean()  # equation 3
    expected = -np.log(probabilities(fake, x)).mean() + 7.0 * distance
    np.testing.assert_allclose(logged["generator/loss"], expected, rtol=1e-5)
    np.testing.assert_allclose(logged["losses/pix2pix/distance"], distance, rtol=1e-5)


def trained(name):
    """A shipped experiment after its training: the experiment and its sampler."""
    made = make_experiment(name)
    trainer = Trainer(made)
    values = trainer.train(made.steps)[-100:, 0].mean(axis=0)
    logged = dict(zip([metric.tag for metric in trainer.metrics], values, strict=True))
    return made, sampler(made, trainer.state), logged


def make_experiment(name):
    (path,) = [path for path in config.shipped_gin_files() if path.name == f"{name}.gin"]
    return compose(config.load([path]))


@pytest.mark.slow
def test_a_cycle_comes_back_and_meets_all_modes():
    """Stated beforehand: the cycle's error is below 0.1, on sets of radius 1.4, and all four modes are met."""
    made, draw, logged = trained("cyclegan")
    figures = made.evaluators[0].evaluate(draw, made.dataset, None)
    assert logged["losses/cycle/cycle"] < 0.1
    assert figures["modes"] == 4


@pytest.mark.slow
def test_showers_have_the_asked_energy():
    """Stated beforehand: a correlation above 0.9, where data have 0.943, and bins within half a deviation."""
    made, draw, _ = trained("conditions")
    figures = made.evaluators[0].evaluate(draw, made.dataset, None)
    assert figures["correlation"] > 0.9
    assert figures["mean_error"] < 0.5
    asked = np.full((4000, 1), 1.25, np.float32)
    energies = draw(4000, 1, conditions=asked).sum(axis=1)
    assert abs(energies.mean() - 1.25) < 0.5 * made.dataset.deviation(1.25)


@pytest.mark.slow
def test_the_map_between_two_gaussians_is_the_optimal_one():
    """Stated beforehand: samples lie within 0.05 of m + (s' / s) (x - 0) on average, and cost the exact 0.5625 (5%)."""
    _, draw, logged = trained("neural_ot")
    source = draw.given(2000, 1)["source"]
    assert np.abs(draw(2000, 1) - ([1.0, 0.0] + 0.5 * source)).mean() < 0.05
    assert logged["losses/neural_ot/cost"] == pytest.approx(0.5 * (1 + 2 * 0.25**2), rel=0.05)


@pytest.mark.parametrize("power", [2.0, 1.0])
def test_the_first_losses_of_neural_transport_are_those_of_algorithm_1(power):
    logged, rows, run = first_losses(
        dataset=component("datasets", "gaussian_ring"),
        source=component("datasets", "swiss_roll"),
        architecture=component("architectures", "mlp", width=8, depth=1, source=True),
        loss=component("losses", "neural_ot", power=power),
    )
    z = np.zeros((12, 0), np.float32)
    potential = (
        run("critic", rows["real"][0]),
        run("critic", run("generator", z, source=tf.constant(rows["source"][0]))),
    )
    np.testing.assert_allclose(logged["critic/loss"], potential[1].mean() - potential[0].mean(), rtol=1e-5)
    x = rows["generator/source"]
    moved = run("generator", z, source=tf.constant(x))
    cost = (np.linalg.norm(moved - x, axis=1) ** power / power).mean()
    np.testing.assert_allclose(logged["losses/neural_ot/cost"], cost, rtol=1e-5)
    np.testing.assert_allclose(logged["generator/loss"], cost - run("critic", moved).mean(), rtol=1e-5)


@pytest.mark.slow
def test_photographs_come_closer_to_their_edges_than_the_mean_photograph():
    """Stated beforehand: the error of reconstruction is below that of the best single colour image."""
    made, draw, _ = trained("pix2pix")
    figures = made.evaluators[0].evaluate(draw, made.dataset, None)
    real = made.dataset.examples(tf.range(1000, dtype=tf.int64), 0).numpy()
    assert figures["absolute_error"] < np.abs(real - np.median(real, axis=0)).mean()
