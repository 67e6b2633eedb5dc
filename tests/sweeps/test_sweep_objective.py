"""A sweep's objective is a metric that its experiments log, as far as their components explain them."""

import pytest

import ganlab
from ganlab import config
from ganlab.config.logged import check_logged
from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Recipe


@pytest.fixture(scope="module", autouse=True)
def in_use():
    with plugins.using():
        yield


@pytest.fixture(scope="module")
def check(in_use):
    params = [
        "experiment.constraints=[@constraints.gradient_penalty(), @a/constraints.gradient_penalty()]",
        "experiment.generator_constraints=[@constraints.spectral_norm()]",
        "experiment.evaluators=[@evaluators.mode_coverage()]",
        "experiment.diagnostics=[@diagnostics.slopes()]",
    ]
    recipe = config.load(["eight_gaussians"], params)
    return lambda tag: check_logged(tag, [recipe])


@pytest.mark.parametrize(
    "tag",
    [
        "critic/loss",
        "evaluation/mode_coverage/modes",
        "constraints/gradient_penalty/slope",
        "constraints/gradient_penalty_2/slope",
        "constraints/gradient_penalty/lipschitz_bound",
        "generator_constraints/spectral_norm/lipschitz_bound",
        "diagnostics/slopes/real/mean",
        "schedules/critic_optimizer/learning_rate",
        "losses/wasserstein/entropy",
        # A component need not explain everything.
        "evaluation/mode_coverage/entropy_of_the_labels",
    ],
)
def test_what_is_logged_passes(check, tag):
    check(tag)


def test_a_figure_that_is_only_judged_may_be_given_by_its_end(monkeypatch, check):
    monkeypatch.setattr(ganlab.component("evaluators", "mode_coverage").make, "better", {"evenness": "max"})
    assert check("evenness") == "evaluation/mode_coverage/evenness"


def test_parts_that_are_no_lists_are_left_to_the_experiment(check):
    recipe = Recipe("", "experiment", {"evaluators": Recipe("evaluators", "mode_coverage"), "diagnostics": None})
    check_logged("critic/loss", [recipe])
    with pytest.raises(ganlab.ConfigError, match="The experiment logs no metric"):
        check_logged("evaluation/mode_coverage/modes", [recipe])


def test_a_metric_may_be_given_by_the_end_of_its_name(check):
    assert check("modes") == check("mode_coverage/modes") == "evaluation/mode_coverage/modes"
    assert check("mode_coverage/entropy") == "evaluation/mode_coverage/entropy"  # which is not explained
    with pytest.raises(ganlab.ConfigError, match="no metric 'mode_coverage/mods'"):
        check("mode_coverage/mods")
    with pytest.raises(ganlab.ConfigError, match="'loss' may be critic/loss or generator/loss: give one of them"):
        check("loss")


@pytest.mark.parametrize(
    ("tag", "suggestion"),
    [
        ("critic/los", "Did you mean 'critic/loss'?"),
        ("health", ""),
        ("replica/0/critic/loss", "Did you mean 'critic/loss'?"),
        ("evaluation/mode_coverage/modez", "Did you mean 'evaluation/mode_coverage/modes'?"),
        ("evaluation/mode_coverage/", ""),
        ("constraints/gradient_penalty_3/slope", "Did you mean 'constraints/gradient_penalty"),
        ("evaluation/exact_w1/distance", ""),
        ("losses/mine/entropy", ""),
        ("schedules/", ""),
    ],
)
def test_what_is_not_logged_is_refused_with_a_suggestion(check, tag, suggestion):
    with pytest.raises(ganlab.ConfigError, match="The experiment logs no metric") as raised:
        check(tag)
    assert suggestion in str(raised.value)
