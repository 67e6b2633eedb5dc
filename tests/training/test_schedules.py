"""Parameters and learning rates that follow schedules: in the graph, on replicas, compiled, resumed."""

import numpy as np
import pytest
import tensorflow as tf
from small import assert_same, constraint, sgd, small, trained, values

import ganlab
from ganlab.composition.making import schedules
from ganlab.errors import ConfigError
from ganlab.plugins import scheduled
from ganlab.training.graph.learning_rate import changed_by_steps
from ganlab.training.graph.sampling import Scorer
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


def schedule(name="linear", **arguments):
    return ganlab.component("schedules", name)(**arguments)


def at(made, step, steps=10):
    return float(made.value(tf.constant(float(step)), steps))


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("linear", {"start": 2.0, "end": 4.0, "over": 8}, {0: 2, 2: 2.5, 8: 4, 20: 4}),
        ("linear", {"start": 1.0, "end": 0.0}, {0: 1, 5: 0.5, 10: 0}),
        ("cosine", {"start": 1.0, "end": 0.0}, {0: 1, 2.5: 0.5 + 0.5 * np.cos(np.pi / 4), 5: 0.5, 10: 0}),
        ("constant_then_linear", {"start": 3.0, "turn": 6}, {0: 3, 6: 3, 8: 1.5, 10: 0, 11: 0}),
        ("constant_then_linear", {"start": 3.0, "end": 1.0, "turn": 2, "over": 4}, {2: 3, 4: 2, 6: 1, 9: 1}),
        ("warmup", {"value": 8.0, "over": 4, "fraction": 0.25}, {0: 2, 2: 5, 4: 8, 9: 8}),
    ],
)
def test_curves_have_their_values(name, arguments, expected):
    made = schedule(name, **arguments)
    assert made.start == pytest.approx(expected.get(0, at(made, 0)))
    for step, value in expected.items():
        assert at(made, step) == pytest.approx(value, abs=1e-6), step


def test_constraints_of_one_name_on_two_networks_have_a_schedule_each():
    whole, short = schedule(start=3.0, end=1.0), schedule("warmup", value=2.0, over=2, fraction=0.5)
    lists = {"constraints": whole, "generator_constraints": short}
    experiment = small(0, **{part: [constraint("spectral_norm", target=of)] for part, of in lists.items()})
    tags = ["schedules/spectral_norm/target", "schedules/generator_constraints/spectral_norm/target"]
    assert list(schedules(experiment)) == tags
    # That of the critic takes the whole run, so that more steps would change the past.
    assert changed_by_steps(experiment, experiment.steps - 1, 3) == ["spectral_norm/target"]


def penalized(weight, **parts):
    return {"constraints": [constraint("gradient_penalty", weight=weight)], "critic_steps": 2, **parts}


def by_hand(weights, **parts):
    """Trains step by step, each with the weight of its step."""
    state = None
    for step, weight in enumerate(weights):
        trainer = Trainer(small(0, **penalized(weight, **parts)))
        if state is not None:
            for name, variable in trainer.state.variables().items():
                variable.assign(state[name])
            trainer.state.step = step
        trainer.train(1)
        state = values(trainer.state)
    return state


@pytest.mark.slow
def test_a_weight_follows_its_schedule_step_by_step():
    one = trained(0, count=4, **penalized(schedule(start=1.0, end=9.0, over=4)))
    expected = by_hand([1.0, 3.0, 5.0, 7.0])
    for name, value in expected.items():
        np.testing.assert_allclose(one.values[name], value, rtol=1e-5, atol=1e-7, err_msg=name)
    np.testing.assert_allclose(one.metric("schedules/gradient_penalty/weight")[:, 0], [1, 3, 5, 7], rtol=1e-6)


@pytest.mark.slow
def test_replicas_microbatches_and_xla_agree():
    parts = penalized(schedule(start=1.0, end=9.0, over=4))
    one = trained(0, count=4, **parts)
    for replicas, others in ((2, {}), (0, {"jit": "on"}), (2, {"microbatches": 3})):
        assert_same(one, trained(replicas, count=4, **parts, **others))


class Scaled(ganlab.Constraint):
    """Weights divided by a number computed from a parameter."""

    def __init__(self, *, divisor: float = 2.0, label: str = "x"):
        self.half = 0.5 * divisor
        self.label = label

    def reparameterize(self, weights, state):
        return {name: w / self.half for name, w in weights.items()}


class Forgetful(ganlab.Constraint):
    """Keeps nothing of its parameter."""

    def __init__(self, *, weight: float = 2.0):
        self.weight = str(weight)


class Branching(ganlab.Constraint):
    """Asks in Python what only the graph knows."""

    def __init__(self, *, weight: float = 2.0):
        self.weight = weight

    def weight_penalty(self, weights):
        return tf.constant(1.0) if self.weight > 1 else None


def test_what_is_computed_from_a_parameter_follows_it_outside_the_step_too(offered):
    offered("constraints", scaled=Scaled)
    made = constraint("scaled", divisor=schedule(start=2.0, end=6.0, over=4))
    trainer = Trainer(small(0, constraints=[made]))
    score = Scorer(trainer.state)
    points = np.ones((3, 2), np.float32)
    score(points)
    trainer.train(2)
    weights = {name: v.numpy() for name, v in trainer.state.critic.weights.items()}
    effective = {name: v.numpy() for name, v in score.effective().items()}
    for name, value in weights.items():
        np.testing.assert_allclose(effective[name], value / 2.0, rtol=1e-6)
    x = points
    for layer in ("hidden_1", "hidden_2"):
        x = np.tanh(x @ effective[f"{layer}/kernel"] + effective[f"{layer}/bias"])
    expected = (x @ effective["score/kernel"] + effective["score/bias"])[:, 0]
    np.testing.assert_allclose(score(points), expected, rtol=1e-5)


def test_a_parameter_that_nothing_keeps_is_refused(offered):
    offered("constraints", forgetful=Forgetful)
    with pytest.raises(ConfigError, match=r"constraints\.forgetful\.weight cannot .*: the component keeps"):
        constraint("forgetful", weight=schedule(start=1.0, end=2.0))


def test_a_branch_in_python_is_named(offered):
    offered("constraints", branching=Branching)
    with pytest.raises(ganlab.PluginError, match=r"branching failed in weight_penalty.*follows a schedule"):
        trained(0, count=1, constraints=[constraint("branching", weight=schedule(start=1.0, end=2.0))])


def test_what_is_no_part_of_the_step_takes_numbers():
    with pytest.raises(ConfigError, match=r"optimizers\.sgd\.momentum cannot follow a schedule"):
        sgd(momentum=schedule(start=0.1, end=0.2))


def test_files_take_schedules_for_numbers(tmp_path):
    from ganlab import config
    from ganlab.composition import compose

    path = tmp_path / "exp.gin"
    path.write_text(
        "include 'swiss_roll.gin'\n"
        "constraints.gradient_penalty.weight = @schedules.linear()\n"
        "schedules.linear.start = 1.0\nschedules.linear.end = 0.1\n"
        "architectures.mlp.width = 4\nstrategies.mirrored.virtual_replicas = 1\n"
    )
    recipe = config.load([path])
    assert "schedules.linear.start = 1.0" in config.render(recipe)
    made = compose(recipe)
    assert isinstance(made.constraints[0].weight, scheduled.Scheduled)
    path.write_text(path.read_text() + "architectures.mlp.activation = @schedules.linear()\n")
    with pytest.raises(ConfigError, match=r"architectures\.mlp\.activation"):
        config.load([path])
