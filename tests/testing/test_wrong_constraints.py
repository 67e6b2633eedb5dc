"""Every way to break the contract fails the conformance kit, with a message that names the remedy."""

import inspect
import re

import pytest
import right_constraints
import wrong_constraints as wrong
from ganlab_verify.testing import ConstraintConformance, parts
from outcomes import conformance, outcomes
from right_constraints import NeedsNoise, Nothing

import ganlab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cpus")]

PURE, SHAPES, ROWS = "test_methods_are_pure_functions", "test_shapes_and_dtypes", "test_rows_are_independent"
TWO, FOUR = "test_two_replicas_train_as_one_device", "test_four_replicas_train_as_one_device"
ZERO, SAME = "test_finite_where_the_gradient_is_zero", "test_replicas_hold_the_same_state"
XLA, EFFECT, SLOPE = "test_graph_and_xla_agree", "test_it_lowers_slopes", "test_a_critic_of_slope_one"
FINITE, BFLOAT = "test_values_and_gradients_are_finite", "test_finite_in_mixed_bfloat16"
GENERATOR, IMAGES = "test_the_generator_is_trained_through_it", "test_a_convolutional_critic"
BOUND, GIN, PICKLE = "test_lipschitz_bound_holds", "test_gin_round_trip", "test_parameters_can_be_pickled"
TRUTH = "test_gradients_are_those_of_the_losses"
DIAGNOSE, RESUME = "test_diagnose_answers_in_words", "test_resuming_equals_never_stopping"

# Constraint: the test that it fails first, words of the message, and the other tests that it fails.
WRONG = {
    wrong.ScalarPenalty: (SHAPES, r"penalty of shape \(\).*one value per example.*Do not reduce", ()),
    wrong.DividedByTheLocalBatch: (ROWS, "2 times as large.*divided by.*the core divides by the global", (TWO, FOUR)),
    wrong.ScaledByReplicas: (ROWS, "2 times as large.*neither averaged nor scaled", (TWO, FOUR)),
    wrong.AveragedPerReplica: (ROWS, "penalty: the penalty of example.*mixed.*instead of averaging", (TWO, FOUR)),
    wrong.SumsItsState: (TWO, "2 times what it is on one device.*Or advance takes replica.sum of a state", (FOUR,)),
    wrong.VariableInPenalty: (PURE, r"penalty creates a variable at wrong_constraints.py:\d+.*initial_state", ()),
    wrong.NanAtZero: (ZERO, "gradient is zero.*gradient by the critic's weights.*functional.slopes", (IMAGES,)),
    wrong.StopsPartOfItsGradient: (TRUTH, "gradient is not its loss's.*Every layer is right.*functional.fixed", ()),
    wrong.PythonRandom: (PURE, "penalty returns different values.*random numbers of its own.*replica.uniform", ()),
    wrong.NumpyRandom: (PURE, "initial_state returns different values.*stateless_normal", ()),
    wrong.TensorFlowRandom: (PURE, "penalty returns different values.*random numbers of its own.*replica.uniform", ()),
    wrong.FixedSeed: (ROWS, "change places.*seed of the plugin's own.*replica.uniform", (TWO, FOUR, XLA)),
    wrong.LocalStatistic: (SAME, r"\['deviation'\] differs: advance takes.*replica.mean", (TWO, FOUR)),
    wrong.MixesExamples: (ROWS, "penalty: the penalty of example.*when example 0 changes.*mixed", (TWO, FOUR)),
    wrong.MixingTransform: (ROWS, "transform: the score of example.*mixed", (TWO, FOUR, EFFECT)),
    wrong.KeepsOnSelf: (PURE, "penalty changes self.mean.*initial_state and advance", ()),
    wrong.KeepsInItsModule: (PURE, "wrong_constraints.KEPT holds a tensor of a step that was traced.*advance", ()),
    wrong.VariableInPrepare: (PURE, r"in prepare: .*initial_state.*\(wrong_constraints.py:\d+\)", ()),
    wrong.PythonInTheStep: (PURE, r"penalty runs Python in every update \(\w+ at wrong_constraints.py:\d+\)", ()),
    wrong.RewardsSteepness: (SLOPE, "penalty is -0.1 .* -10 where it is 10.*sign", (EFFECT,)),
    wrong.WrongSide: (SLOPE, "0.81 where .* 0.1, .* highest for a flat critic.*wrong side, relu", (EFFECT,)),
    wrong.NoEffect: (EFFECT, "does not lower slopes.*gradient stopped", (TRUTH,)),
    wrong.StopsTheGenerator: (GENERATOR, "does not move.*stop_gradient", (FINITE, BFLOAT, IMAGES, EFFECT, TRUTH)),
    wrong.NoBound: (BOUND, "At first lipschitz_bound is 1, and the critic's slope is 4.*return None", (IMAGES, EFFECT)),
    wrong.Bfloat16Penalty: (SHAPES, "penalty returns bfloat16; it must be float32", ()),
    wrong.EditsItsWeights: (PURE, "advance changes the dict that it is given", ()),
    wrong.Unwritable: (GIN, "unwritable.of = <function.* reads back.*Parameters must be numbers", (PICKLE, EFFECT)),
    wrong.TakesAnything: (GIN, r"takes \*\*options.*typo", (EFFECT,)),
    wrong.NoConvolutions: (IMAGES, r"failed in weight_penalty.*wrong_constraints.py:\d+", ()),
    wrong.Talkative: (DIAGNOSE, "diagnose returned 3; it must be a sentence", (EFFECT,)),
}


def constraints_of(module):
    found = [made for made in vars(module).values() if isinstance(made, type) and made.__module__ == module.__name__]
    return [made for made in found if issubclass(made, ganlab.Constraint)]


def failed(found):
    return {test for test, outcome in found.items() if outcome != "passed" and not outcome.startswith("skipped")}


def words(text):
    return " ".join(text.split())


def test_every_wrong_constraint_is_listed():
    assert set(WRONG) == set(constraints_of(wrong)) - {wrong.NormalizesByANorm, wrong.KeepsAVariable}


@pytest.mark.parametrize("made", WRONG, ids=lambda made: made.__name__)
def test_a_mistake_fails_its_test_with_a_message(made):
    test, message, _ = WRONG[made]
    outcome = words(outcomes(conformance(made), only=[test])[test])
    assert re.search(message, outcome), outcome


# Mistakes that fail the same tests are found in the same way: the first of them stands for the others.
ONE_OF_EACH = list({(test, others): made for made, (test, _, others) in reversed(WRONG.items())}.values())


@pytest.mark.conformance
@pytest.mark.parametrize("made", ONE_OF_EACH, ids=lambda made: made.__name__)
def test_a_mistake_fails_no_unrelated_test(made):
    test, _, others = WRONG[made]
    found = outcomes(conformance(made))
    assert failed(found) == {test, *others}
    if test in (PURE, SHAPES):  # every test that trains would repeat their message
        assert found[TWO] == f"skipped: Not checked before {test} passes."
    else:
        assert found[PURE] == found[SHAPES] == "passed"


def test_a_division_by_a_norm_is_found_where_the_norm_is_zero():
    outcome = outcomes(conformance(wrong.NormalizesByANorm), only=[ZERO])[ZERO]
    assert "the score after transform is not finite" in outcome


def test_a_variable_outside_the_checkpoint_is_found_by_resuming():
    # Run alone, the test of resuming finds by the numbers what the test of purity finds by inspection.
    outcome = outcomes(conformance(wrong.KeepsAVariable), only=[RESUME])[RESUME]
    assert re.search("After restoring a checkpoint.*outside the checkpoint.*initial_state", words(outcome))


def test_a_local_statistic_is_explained_when_replicas_differ_from_one_device():
    outcome = outcomes(conformance(wrong.LocalStatistic), only=[TWO])[TWO]
    assert re.search(r"The state \['deviation'\] differs between replicas.*replica.mean", words(outcome))


def test_a_penalty_that_depends_on_the_replicas_examples_is_explained_by_its_factor():
    outcome = outcomes(conformance(wrong.DividedByTheLocalBatch), only=[FOUR])[FOUR]
    assert "The penalty is 4 times what it is on one device: it is divided by" in words(outcome)


@pytest.mark.conformance
@pytest.mark.parametrize("made", constraints_of(right_constraints), ids=lambda made: made.__name__)
def test_a_right_but_unusual_constraint_passes(made):
    overrides = {"lowers_slopes": False} if made is Nothing else {}
    found = outcomes(conformance(made, **overrides))
    assert not failed(found), found
    skipped = {test for test, outcome in found.items() if outcome.startswith("skipped")}
    assert skipped <= {SLOPE, BOUND, EFFECT}
    assert (BOUND in skipped) == (made is not right_constraints.Frobenius)
    assert (EFFECT in skipped) == (made is Nothing)


def test_a_constraint_that_needs_noise_gets_a_critic_with_some():
    kind = conformance(NeedsNoise)
    found = outcomes(kind, only=[FINITE, ROWS])
    assert set(found.values()) == {"passed"}


def test_an_author_may_override_the_critic():
    shapes = []

    def critic(self, sample_shape):
        shapes.append(sample_shape)
        return parts.noisy_critic(sample_shape)

    assert outcomes(conformance(NeedsNoise, critic=critic), only=[ROWS]) == {ROWS: "passed"}
    assert shapes
    assert set(shapes) == {(2,)}


def test_the_message_of_a_constraint_that_refuses_every_critic_names_the_override():
    def critic(self, sample_shape):
        return parts.critic(sample_shape)

    outcome = outcomes(conformance(NeedsNoise, critic=critic), only=[ROWS])[ROWS]
    assert "needs a ganlab.layers.Dropout in the critic. Override critic(self, sample_shape)" in words(outcome)


def test_the_penalty_at_slope_one_may_be_set():
    class Halved(ganlab.Constraint):
        def penalty(self, critic, batch, state, replica):
            return 0.5 * ganlab.functional.slopes(critic, batch.real) ** 2

    assert outcomes(conformance(Halved, penalty_at_slope_one=0.5), only=[SLOPE]) == {SLOPE: "passed"}
    outcome = outcomes(conformance(Halved, penalty_at_slope_one=0.6), only=[SLOPE])[SLOPE]
    assert re.search(r"penalty is 0\.5 .*penalty_at_slope_one is 0\.6", outcome)


def test_the_purpose_of_a_constraint_may_be_left_open():
    raising = outcomes(conformance(wrong.RewardsSteepness, lowers_slopes=None), only=[EFFECT])[EFFECT]
    assert re.search("^skipped: .*does not lower slopes, which is right if it has another purpose", raising)
    idle = outcomes(conformance(wrong.NoEffect, lowers_slopes=None), only=[EFFECT])[EFFECT]
    assert "does not lower slopes. Is its weight too small" in idle


def test_the_result_of_make_is_checked():
    one = wrong.NoEffect()
    test = "test_make_gives_a_new_one_each_time"
    assert "returned one object twice" in outcomes(conformance(lambda: one), only=[test])[test]
    assert (
        "make returned 3, of type int; it must return a ganlab.Constraint"
        in (outcomes(conformance(lambda: 3), only=[test])[test])
    )


def test_every_test_has_a_docstring():
    for name, test in inspect.getmembers(ConstraintConformance, inspect.isfunction):
        if name.startswith("test_"):
            assert inspect.getdoc(test).endswith(".")
