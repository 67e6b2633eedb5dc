"""Turns: how often each side is updated in a step, by a schedule, a number, or a rule of the loss."""

import re

import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify.lab import Training, differing, resumed
from ganlab_verify.testing.parts import Wasserstein
from networks_by_hand import Net, latents
from small import Layers, Points, assert_same, constraint, sgd, small, trained

import ganlab
from ganlab import config
from ganlab.composition import compose
from ganlab.config import render
from ganlab.errors import ConfigError, ContractError, IncompatibleError
from ganlab.training.graph import noise
from ganlab.training.graph.inputs import Inputs
from ganlab.training.pending_rows import Rows

pytestmark = pytest.mark.usefixtures("cpus")

RATE, STEPS, LIMIT, DECAY = 0.1, 20, 0.5, 0.8
BURSTS = {"value": 1.0, "burst": 3.0, "first": 2, "every": 7}


def bursts(**arguments):
    return ganlab.component("schedules", "bursts")(**{**BURSTS, **arguments})


class Patient(Wasserstein):
    """The generator waits until the critic's gap is above its average."""

    def initial_state(self):
        return {"gap": 0.0, "average": 0.0}

    def advance(self, state, real_scores, fake_scores, replica):
        gap = replica.mean(tf.reduce_mean(real_scores) - tf.reduce_mean(fake_scores))
        return {"gap": gap, "average": 0.5 * state["average"] + 0.5 * gap}

    def ready(self, state):
        return state["gap"] > state["average"]


def parts(**changed):
    given = {
        "architecture": Layers(),
        "constraints": [constraint("weight_clipping", limit=LIMIT)],
        "optimizer": sgd(RATE),
        "ema_decay": DECAY,
    }
    return {**given, **changed}


def by_hand(first, steps, counts, generator_steps=1, patient=False):
    """The weights, the generator's average and where it moved, by a loop without ganlab but for the numbers drawn."""
    nets = generator, critic = Net(first, "generator"), Net(first, "critic")
    critic.weights = [np.clip(w, -LIMIT, LIMIT) for w in critic.weights]
    average = [w.copy() for w in generator.weights]
    rows, ring, update, moved = 12, small(0).dataset, 0, []
    gap = mean = 0.0
    margins = []

    for step in range(steps):
        for _ in range(counts[step]):
            numbers = tf.range(rows * update, rows * (update + 1), dtype=tf.int64)
            real, fake = ring.examples(numbers, 0).numpy(), generator(latents(update, noise.FAKE_LATENT))
            gap = np.mean(critic(real))
            of_real = critic.back(np.full((rows, 1), -1 / rows))[0]
            gap -= np.mean(critic(fake))
            of_fake = critic.back(np.full((rows, 1), 1 / rows))[0]
            critic.descend(RATE, of_real, of_fake)
            critic.weights = [np.clip(w, -LIMIT, LIMIT) for w in critic.weights]
            mean = 0.5 * mean + 0.5 * gap
            update += 1
        margins.append(abs(gap - mean))
        moved.append(not patient or gap > mean)
        for j in range(generator_steps if moved[-1] else 0):
            done = step * generator_steps + j
            critic(generator(latents(done, noise.LATENT)))
            _, by_critic = critic.back(np.full((rows, 1), -1 / rows))
            generator.descend(RATE, generator.back(by_critic)[0])
            decay = min(DECAY, (1 + done) / (10 + done))
            average = [a + (1 - decay) * (w - a) for a, w in zip(average, generator.weights, strict=True)]
    assert min(margins) > 1e-4  # the rule does not hang on rounding
    named = {name: w for net in nets for name, w in zip(net.names, net.weights, strict=True)}
    kept = zip(generator.names, average, strict=True)
    return {**named, **{name.replace("/weights/", "/average/"): a for name, a in kept}}, moved


def assert_by_hand(training, *arguments, **keywords):
    expected, moved = by_hand(training.start, STEPS, *arguments, **keywords)
    for name, value in expected.items():
        np.testing.assert_allclose(training.values[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
        assert name.endswith("bias") or np.abs(value - training.start[name]).max() > 1e-2, name
    return moved


COUNTS = [3 if step < 2 or step % 7 == 0 else 1 for step in range(STEPS)]


def test_scheduled_critic_steps_and_two_generator_steps_are_those_of_a_loop():
    training = trained(0, **parts(critic_steps=bursts(), generator_steps=2))
    assert_by_hand(training, COUNTS, 2)
    np.testing.assert_array_equal(training.metric("schedules/critic_steps")[:, 0], COUNTS)


@pytest.mark.parametrize("replicas", [0, 2])
def test_a_generator_that_waits_is_that_of_a_loop(replicas):
    training = trained(replicas, **parts(loss=Patient()))
    moved = assert_by_hand(training, [1] * STEPS, patient=True)
    assert 5 < sum(moved) < 15
    np.testing.assert_array_equal(training.metric("generator/ready")[:, 0], moved)
    np.testing.assert_array_equal(training.metric("generator/loss")[:, 0] != 0, moved)


def test_the_rate_of_a_generator_that_waits_counts_its_moves():
    rate = ganlab.component("schedules", "linear")(start=RATE, end=0.0)
    training = trained(0, **parts(loss=Patient(), generator_optimizer=sgd(rate), critic_optimizer=sgd(rate)))
    moved = training.metric("generator/ready")[:, 0] > 0
    assert 5 < sum(moved) < 15
    (own, critics) = (
        training.metric(f"schedules/{of}_optimizer/learning_rate")[:, 0] for of in ("generator", "critic")
    )
    np.testing.assert_allclose(own[moved], RATE * (1 - np.arange(sum(moved)) / STEPS), rtol=1e-5)
    np.testing.assert_allclose(critics[moved], RATE * (1 - np.flatnonzero(moved) / STEPS), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [0, 2])
def test_all_together_are_those_of_a_loop(replicas):
    training = trained(replicas, **parts(loss=Patient(), critic_steps=bursts(), generator_steps=3))
    moved = assert_by_hand(training, COUNTS, 3, patient=True)
    assert 5 < sum(moved) < 15


def test_a_loss_around_one_that_waits_waits():
    around = ganlab.component("losses", "top_k")
    assert small(0, loss=around(game=Patient())).turn.waits
    assert not small(0, loss=around()).turn.waits


def test_rows_leave_out_steps_in_which_the_generator_waited():
    training = trained(0, **parts(loss=Patient()))
    moved = training.metric("generator/ready")[:, 0] > 0
    records = {r.tag: r.reduced for r in next(Rows(training.trainer.metrics, STEPS, 1).add(0, training.rows))}
    losses = training.metric("generator/loss")[:, 0]
    assert records["generator/loss"] == pytest.approx(losses[moved].mean(dtype=np.float64))
    assert records["generator/ready"] == pytest.approx(moved.mean())
    still = int(np.flatnonzero(~moved)[0])
    alone = next(Rows(training.trainer.metrics, 1, 1).add(still, training.rows[still : still + 1]))
    assert "generator/loss" not in {r.tag for r in alone}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replicas", "changed"), [(0, {"microbatches": 3}), (2, {"microbatches": 2}), (0, {"jit": "on"})]
)
def test_they_train_the_same_however_they_are_computed(replicas, changed):
    given = parts(loss=Patient(), critic_steps=bursts(), generator_steps=2)
    assert_same(trained(0, **given), trained(replicas, **given, **changed))


@pytest.mark.slow
def test_several_generator_steps_are_compiled_whole():
    assert_same(trained(0, **parts(generator_steps=3)), trained(0, **parts(generator_steps=3, jit="step")))


@pytest.mark.parametrize("python", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_resumed_runs_have_the_same_bits(python):
    points = np.random.default_rng(0).normal(size=(50, 2))
    adam = ganlab.component("optimizers", "adam")(learning_rate=0.01)
    given = parts(loss=Patient(), critic_steps=bursts(), generator_steps=2, generator_optimizer=adam)
    training = Training(small(0, **given, dataset=Points(points, python=python)))
    straight, again = resumed(training, 4, 5)
    assert differing(straight, again) == []
    assert training.state.step == 9


def test_finite_sets_are_seen_once_in_each_epoch():
    points = np.arange(24.0)[:, None]
    inputs = Inputs(small(0, dataset=Points(points), batch_size=6, critic_steps=bursts(), steps=9))
    seen = np.concatenate([inputs.of(tf.constant(step, tf.int64), 0)["real"].numpy().ravel() for step in range(8)])
    for start in range(0, len(seen) - 23, 24):
        assert sorted(seen[start : start + 24]) == list(range(24))


def test_the_generator_has_further_pairs_and_labels_in_each_update():
    game = ganlab.component("losses", "relativistic")()
    digits = ganlab.component("datasets", "digits")()
    inputs = {n: Inputs(small(0, dataset=digits, loss=game, generator_steps=n)) for n in (1, 3)}
    ones = [inputs[1].of(tf.constant(step, tf.int64), 0) for step in range(6)]
    threes = [inputs[3].of(tf.constant(step, tf.int64), 0) for step in range(2)]
    for name in ("generator/real", "generator/labels"):
        np.testing.assert_array_equal(
            np.concatenate([x[name] for x in threes]), np.stack([x[name] for x in ones]), err_msg=name
        )


def test_lazy_metrics_count_the_updates_of_their_side():
    training = trained(0, count=8, **parts(constraints=[], generator_constraints=[Lazy()], generator_steps=2))
    turn = small(0, critic_steps=bursts(), generator_steps=2).turn
    metric = next(m for m in training.trainer.metrics if "lazy" in m.tag)
    # Generator updates 0, 3, 6, 9, 12 and 15 are of steps 0, 1, 3, 4, 6 and 7.
    assert list(metric.measured(np.arange(8), turn)) == [True, True, False, True, True, False, True, True]
    np.testing.assert_allclose(training.metric(metric.tag)[:, 0], [7, 7, 0, 7, 7, 0, 7, 7])
    firsts = np.concatenate([[0], np.cumsum(COUNTS)])
    for step, update in ((0, 0), (0, 2), (1, 3), (2, 6), (7, int(firsts[7]) + 2)):
        assert int(turn.step_of("critic", tf.constant(update, tf.int64))) == step


class Lazy(ganlab.Constraint):
    every = 3

    def generator_penalty(self, generator, critic, batch, state, replica):
        replica.log("lazy", 7.0)
        return 0.0 * critic(batch.fake)


def test_learning_rates_follow_steps():
    rates = ganlab.component("schedules", "linear")(start=0.2, end=0.0, over=10)
    training = trained(0, count=4, critic_steps=bursts(), generator_steps=2, optimizer=sgd(rates))
    for player in (training.state.critic, training.state.generator):
        assert float(player.optimizer.learning_rate) == pytest.approx(0.2 * (1 - 4 / 10)), player.role.name
        assert f"schedules/{player.role.name}_optimizer/learning_rate" in {m.tag for m in training.trainer.metrics}
    assert small(0, critic_steps=bursts()).turn.total("critic", STEPS) == sum(COUNTS)


class Answers(Patient):
    def __init__(self, answer):
        self._answer = answer

    def ready(self, state):
        return self._answer


def ahead():
    return {"optimizer": ganlab.component("optimizers", "extragradient")(learning_rate=0.1)}


SAME = "experiment.jit = 'step' needs the same updates in each step, and "
ONE = "in each step, one of them the generator's, and "


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (lambda: {"critic_steps": bursts(), "jit": "step"}, IncompatibleError, f"{SAME}experiment.critic_steps"),
        (lambda: {"loss": Patient(), "jit": "step"}, IncompatibleError, f"{SAME}the loss decides when the generator"),
        (lambda: {"critic_steps": bursts(value=0.4)}, ConfigError, "schedules.bursts, which gives step 2 the number 0"),
        (lambda: {"loss": Answers(1.0)}, ContractError, "Answers.ready returned the shape () and the dtype float32"),
        (lambda: {"loss": Answers([True])}, ContractError, "returned the shape (1,) and the dtype bool"),
        (lambda: {"generator_steps": 2, **ahead()}, IncompatibleError, f"{ONE}experiment.generator_steps is 2. Use"),
        (lambda: {"loss": Patient(), **ahead()}, IncompatibleError, f"{ONE}the loss decides when the generator moves"),
        (
            lambda: {"loss": Patient(), "generator_constraints": [constraint("path_length")]},
            IncompatibleError,
            "constraints.path_length in generator_constraints computes its penalty in one of 4 updates of the "
            "generator, and under this loss, which has `ready`, the generator may wait in all of these. Set "
            "constraints.path_length.every = 1.",
        ),
        (lambda: {"generator_steps": 0}, ConfigError, "experiment.generator_steps = 0 must be a whole number"),
        (lambda: {"critic_steps": 0}, ConfigError, "experiment.critic_steps = 0 must be a whole number"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(settings, error, message):
    with pytest.raises(error, match=re.escape(message)):
        trained(0, count=1, **settings())


def test_files_take_a_schedule_and_have_no_line_for_what_is_not_used(tmp_path):
    path = tmp_path / "exp.gin"
    path.write_text("include 'swiss_roll.gin'\narchitectures.mlp.width = 4\nstrategies.mirrored.virtual_replicas = 1\n")
    plain = config.load([path])
    assert "generator_steps" not in render(plain)
    assert compose(plain).recipe.arguments.keys().isdisjoint({"generator_steps"})
    path.write_text(
        path.read_text() + "experiment.critic_steps = @schedules.bursts()\nschedules.bursts.first = 3\n"
        "experiment.generator_steps = 2\n"
    )
    recipe = config.load([path])
    text = render(recipe)
    assert "experiment.critic_steps = @schedules.bursts()" in text
    assert "experiment.generator_steps = 2" in text
    made = compose(recipe)
    assert [made.turn.updates("critic", np.int64(step))[1] for step in (2, 3, 500)] == [100, 5, 100]
    assert made.recipe.arguments["critic_steps"].selector == "schedules.bursts"
    path.write_text(path.read_text() + "experiment.steps = @schedules.bursts()\n")
    with pytest.raises(ConfigError, match=r"experiment\.steps = @schedules\.bursts\(\) must be int"):
        config.load([path])
