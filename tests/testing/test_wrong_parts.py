"""Components of the other roles that break their contracts fail the conformance classes, with a helpful message."""

import re

import pytest
import wrong_parts as wrong
from ganlab_verify.testing import (
    ArchitectureConformance,
    AugmentationConformance,
    DatasetConformance,
    EvaluatorConformance,
    LossConformance,
    OptimizerConformance,
    ScheduleConformance,
    StrategyConformance,
    parts,
)
from outcomes import conformance, outcomes

import ganlab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cpus")]

SHAPES, TWO = "test_shapes_and_dtypes", "test_two_replicas_train_as_one_device"
FIGURES = "test_figures_have_names_and_are_finite"
LIMITS = "test_figures_are_within_their_limits"
OWN = "test_it_draws_and_keeps_nothing_of_its_own"


def forgotten():
    return wrong.Forgotten(brake=0.5)


def of_a_gpu():
    return ganlab.component("strategies", "mirrored")(devices=["GPU:63"])


WRONG = [
    (wrong.Forgetful, DatasetConformance, "test_examples_are_a_pure_function_of_their_numbers", "no iterator.*counter"),
    (wrong.ByPlace, DatasetConformance, "test_examples_are_a_pure_function_of_their_numbers", "in another order"),
    (wrong.ShiftedLabels, DatasetConformance, "test_labels_are_classes", "1 to 3, int64; .* whole numbers from 0 to 2"),
    (wrong.LabelsByPlace, DatasetConformance, "test_examples_are_a_pure_function_of_their_numbers", "another order"),
    (wrong.Bytes, DatasetConformance, "test_values_are_finite", r"value 190; images lie in \[-1, 1\]"),
    (wrong.Timed, DatasetConformance, "test_the_fingerprint_repeats", "fingerprints.*must contain neither times nor"),
    (wrong.Doubles, DatasetConformance, SHAPES, "float64.*must be.*float32"),
    (wrong.ReducedLoss, LossConformance, SHAPES, r"critic returns the shape \(\).*Do not reduce"),
    (wrong.TurnedLoss, LossConformance, "test_the_critic_wants_real_scores_higher", "reverse the sign"),
    (wrong.TurnedByNetworks, LossConformance, "test_the_critic_wants_real_scores_higher", "reverse the sign"),
    (wrong.OwnWidth, LossConformance, SHAPES, r"skipped: The kit's critic gives code of 8 numbers.*\[7,8\] vs"),
    (wrong.RelativeLoss, LossConformance, "test_rows_are_independent", "critic: the loss of an example changes"),
    (wrong.OverflowingLoss, LossConformance, "test_values_and_gradients_are_finite", "critic is not finite.*softplus"),
    (wrong.KeepsInItsModule, LossConformance, OWN, "wrong_parts.KEPT holds a tensor of a step"),
    (wrong.KeepsOnItself, LossConformance, OWN, "self.last holds a tensor of a step"),
    (wrong.CountsCalls, LossConformance, "test_the_same_scores_give_the_same_losses", "keep state by initial_state"),
    (wrong.OwnDraws, LossConformance, OWN, r"random numbers of its own \(RandomUniform at .*wrong_parts.py:\d+\)"),
    (wrong.CenteredByBatch, AugmentationConformance, "test_rows_are_independent", "when example 0 does.*by itself"),
    (wrong.OneShift, AugmentationConformance, "test_rows_are_independent", "change places. Draw from replica"),
    (wrong.Rounded, AugmentationConformance, "test_gradients_reach_the_examples", "the generator cannot learn"),
    (wrong.LocalCount, AugmentationConformance, TWO, "by example, and reduce in advance"),
    (wrong.BeginsElsewhere, ScheduleConformance, "test_the_start_is_the_first_value", "gives 2 in step 0"),
    (wrong.FrozenSchedule, ScheduleConformance, "test_one_trace_gives_all_values", "without counting calls"),
    (wrong.Endless, ScheduleConformance, "test_every_step_has_a_value", "inf in step 8 of 8"),
    (wrong.unseeded, ArchitectureConformance, "test_the_seed_decides_the_weights", "critic.*not the same.*set_random"),
    (wrong.mixing_critic, ArchitectureConformance, "test_rows_are_independent", "a layer mixes examples"),
    (wrong.CenteredLatents, ArchitectureConformance, "test_latents_belong_to_rows", "depend on its own row's numbers"),
    (wrong.own_noise, ArchitectureConformance, "test_networks_have_their_shapes", "Dropout.*ganlab.layers.Dropout"),
    (wrong.EncodingEvaluator, EvaluatorConformance, FIGURES, "skipped: .*calls the network 'encoder': return it from"),
    (wrong.RandomEvaluator, EvaluatorConformance, "test_the_same_samples_give_the_same_figures", "with a fixed seed"),
    (wrong.ListEvaluator, EvaluatorConformance, "test_figures_have_names_and_are_finite", r"\[1.0\]; it must return a"),
    (wrong.NanEvaluator, EvaluatorConformance, "test_figures_have_names_and_are_finite", "'ratio': nan; .* finite"),
    (wrong.LimitedEvaluator, EvaluatorConformance, LIMITS, "50.0, outside of its limits"),
    (wrong.MisspeltEvaluator, EvaluatorConformance, LIMITS, "better names shares, none of which"),
    (wrong.ClipsPerReplica, OptimizerConformance, TWO, "acts on each replica's own gradient before the sum"),
    (wrong.Climbs, OptimizerConformance, "test_it_descends", "From 14 .* not down"),
    (forgotten, OptimizerConformance, "test_it_is_made_anew_from_its_configuration", "get_config must hold every arg"),
    (of_a_gpu, StrategyConformance, "test_make_gives_a_new_one_each_time", "this machine has no GPU:63"),
]


@pytest.mark.parametrize(("made", "base", "test", "message"), WRONG, ids=lambda given: getattr(given, "__name__", ""))
def test_a_mistake_fails_its_test_with_a_message(made, base, test, message):
    outcome = " ".join(outcomes(conformance(made, base), only=[test])[test].split())
    assert re.search(message, outcome), outcome


def test_an_author_gives_the_networks_that_an_evaluator_calls():
    networks = {"encoder": (None, lambda x: x)}
    kind = conformance(wrong.EncodingEvaluator, EvaluatorConformance, networks=lambda self: networks)
    assert outcomes(kind, only=[FIGURES])[FIGURES] == "passed"


@pytest.mark.parametrize("role", ["generator", "critic", "neither"])
def test_labels_that_a_network_ignores_fail(role):
    test = "test_labels_change_the_outputs"
    made = conformance(lambda: wrong.IgnoresLabels(of=role), ArchitectureConformance)
    found = outcomes(made, only=[test])[test]
    assert found == "passed" if role == "neither" else f"The {role}'s output is the same for another label" in found


def test_images_outside_the_range_fail():
    test = "test_samples_are_what_datasets_have"
    kind = conformance(wrong.BrightImages, ArchitectureConformance, sample_shape=(8, 8, 1))
    assert re.search(r"images reach [1-9].*end in tanh", outcomes(kind, only=[test])[test])


def test_parts_that_are_given_latents_or_the_number_of_updates_pass():
    class OfLatents(ganlab.Evaluator):
        def evaluate(self, sample, dataset, run):
            del dataset, run
            return {"mean": float(sample.from_latents(sample.latents(16, 5)).mean())}

    def falling():
        return ganlab.component("optimizers", "sgd")(learning_rate=0.01, schedule="cosine")

    named = "test_figures_have_names_and_are_finite"
    assert outcomes(conformance(OfLatents, EvaluatorConformance), only=[named]) == {named: "passed"}
    down = "test_it_descends"
    assert outcomes(conformance(falling, OptimizerConformance), only=[down]) == {down: "passed"}


@pytest.mark.conformance
def test_the_kits_own_parts_pass():
    def networks():
        return parts.Networks(parts.critic)

    assert set(outcomes(conformance(parts.Wasserstein, LossConformance)).values()) == {"passed"}
    assert set(outcomes(conformance(parts.Images, DatasetConformance)).values()) == {"passed"}
    found = outcomes(conformance(networks, ArchitectureConformance))
    coupled = "test_coupled_samples_are_distributed_as_the_generators"
    assert found.pop(coupled) == "skipped: It has no coupled samples."
    assert found.pop("test_labels_change_the_outputs") == "skipped: It takes no labels."
    assert found.pop("test_conditions_and_sources_change_the_outputs") == (
        "skipped: It takes no conditions and no source."
    )
    # The architecture takes a function, which no experiment file can name.
    failed = {test for test, outcome in found.items() if outcome != "passed"}
    assert failed == {"test_gin_round_trip"}, found
