"""Slips of a plugin's author that would train without effect, or fail far from where they were made."""

import numpy as np
import pytest
import tensorflow as tf
from small import Points, small

import ganlab
from ganlab.training.graph.sampling import Scorer
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


def mine(role, **methods):
    return type("Mine", (role,), methods)


class Hinge(ganlab.Loss):
    def critic(self, real_scores, fake_scores):
        return tf.nn.relu(1.0 - real_scores) + tf.nn.relu(1.0 + fake_scores)

    def generator(self, fake_scores):
        return -fake_scores


def refused(error, **parts):
    with pytest.raises(error) as raised:
        Trainer(small(2, **parts)).trace()
    return str(raised.value)


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        (
            {"penalty": lambda self, critic, batch, state, replica: tf.cast(critic(batch.real), tf.int32)},
            "Constraint mine returned a penalty of dtype int32; it must be float32. Whole numbers have no gradient.",
        ),
        (
            {"weight_penalty": lambda self, weights: tf.constant(1)},
            "Constraint mine returned a weight penalty of dtype int32; it must be float32.",
        ),
        (
            {"penalti": lambda self, critic, batch: 0.0},
            "'penalti', which nothing calls, and none of a constraint's. Did you mean 'penalty'? They are advance, ",
        ),
        (
            {"transform": lambda self, critic: lambda x: critic(x)[:, None]},
            "The function that constraint mine returned in transform gives the shape (6, 1) for (6, 2); it must",
        ),
        ({"transform": lambda self, critic: None}, "Constraint mine returned None in transform; it must return a"),
        (
            {"advance": lambda self, weights, state, batch, replica: replica.log("lipschitz_bound", 1.0) or {}},
            "mine logged 'lipschitz_bound', the name of what lipschitz_bound returns. Choose another one.",
        ),
    ],
    ids=["int penalty", "int weight penalty", "misspelt", "scores in a column", "no function", "name taken"],
)
def test_a_slip_in_a_constraint_is_refused(methods, said):
    assert said in refused(ganlab.ContractError, constraints=[mine(ganlab.Constraint, **methods)()])


def test_an_attribute_may_not_hide_a_method():
    class Weighted(ganlab.Constraint):
        def __init__(self):
            self.penalty = 10.0

    said = refused(ganlab.ContractError, constraints=[Weighted()])
    assert said == (
        "Weighted sets self.penalty = 10.0, which hides its method penalty. Give the attribute another name, for "
        "example self._penalty."
    )


def test_a_method_that_is_missing_is_named():
    half = mine(ganlab.Loss, critic=Hinge.critic)()
    assert refused(ganlab.PluginError, loss=half).startswith("Mine has no method generator, which it must have")


def test_a_loss_in_float64_is_that_in_float32_and_one_of_whole_numbers_is_refused():
    wide = mine(Hinge, critic=lambda self, real, fake: tf.cast(Hinge.critic(self, real, fake), tf.float64))()
    one, other = (Trainer(small(2, loss=loss)).train(3) for loss in (Hinge(), wide))
    np.testing.assert_array_equal(one, other)
    whole = mine(Hinge, critic=lambda self, real, fake: tf.cast(real, tf.int32))()
    assert "Mine.critic returned the dtype int32; it must be float32." in refused(ganlab.ContractError, loss=whole)


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ({"histograms": {"h": [1, "x"]}}, "Diagnostic mine found the histogram 'h' of [1, 'x']; it must be numbers."),
        ({"pictures": {"p": "png"}}, "Diagnostic mine found the picture 'p' of 'png'; it must be a PNG's bytes."),
    ],
)
def test_findings_that_cannot_be_shown_are_named(findings, said, tmp_path):
    look = mine(ganlab.Diagnostic, look=lambda self, critic: ganlab.Findings(**findings))()
    with pytest.raises(ganlab.ContractError) as raised:
        ganlab.train(small(0, steps=2, diagnostics=[look]), tmp_path / "run")
    assert str(raised.value) == said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", ["three", [3.0], {}])
def test_a_bound_must_be_a_number(value):
    bound = mine(ganlab.Constraint, lipschitz_bound=lambda self, weights: value)()
    state = Trainer(small(0, constraints=[bound], dataset=Points(np.zeros((4, 2))))).state
    with pytest.raises(ganlab.ContractError, match=r"returned the Lipschitz bound .*; it must be one number"):
        Scorer(state).bounds()
