"""Explanations of metrics by `ganlab config explain`; every metric that first-party components log has one."""

import inspect
import json
import re
from types import SimpleNamespace

import pytest
from command_lines import command

import ganlab
from ganlab.config.metric_help import explain_metric, metric_names
from ganlab.config.registry import Names
from ganlab.plugins import manager as plugins


@pytest.fixture(scope="module")
def names():
    return Names(plugins.discover())


def explained(name, names):
    return " ".join(explain_metric(name, names).texts)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("critic/loss", "losses.wasserstein: Mean critic(fake) - mean critic(real), plus the penalty"),
        ("critic/loss", "It is negative as long as the critic scores real examples higher"),
        ("generator/loss", "The critic's scores have no zero of their own"),
        ("critic/wasserstein", "not comparable between constraints"),
        ("critic/penalty", "part of critic/loss"),
        ("constraints/gradient_penalty/slope", "Sound near the target (1 by default)"),
        ("constraints/gradient_penalty_2/slope", "Sound near the target (1 by default)"),
        ("gradient_penalty/slope", "Sound near the target (1 by default)"),
        ("constraints/spectral_norm/lipschitz_bound", "A certified upper bound"),
        ("generator_constraints/spectral_norm/lipschitz_bound", "A certified upper bound"),
        ("augmentations/ada/probability", "probability"),
        ("evaluation/mode_coverage/modes", "The number of modes of the mixture"),
        ("mode_coverage/modes", "The number of modes of the mixture"),
        ("diagnostics/gradient_norms/weights/dense_2", "by this layer's weights"),
        ("diagnostics/slopes/interpolated/mean", "real, fake or interpolated"),
        ("replica/0/critic/loss", "The value of replica 0 alone"),
        ("replica/<i>/diagnostics/slopes/real/mean", "The value of replica <i> alone"),
        ("schedules/gradient_penalty/weight", "The value of constraints.gradient_penalty.weight, which follows"),
        ("schedules/gradient_penalty_2/weight", "The penalty's factor; the paper's 10 for images"),
        ("schedules/generator_constraints/gradient_penalty/weight", "The value of constraints.gradient_penalty.w"),
        ("schedules/critic_optimizer/learning_rate", "learning_rate of the experiment's critic_optimizer, which"),
        ("health", "evaluators report now"),
    ],
)
def test_a_metric_is_explained(names, name, words):
    assert words in explained(name, names)


def test_every_listed_metric_can_be_explained(names):
    offered = list(metric_names(names))
    assert len(offered) == len(set(offered)) > 60
    for name in offered:
        assert explained(name, names), name


def test_exactly_the_metrics_that_constraints_log_are_explained(names):
    for selector in names.selectors:
        if selector.startswith("constraints."):
            made = names.make(selector)
            own = [base for base in made.__mro__ if base.__module__.startswith("ganlab_builtin.")]
            logged = set(re.findall(r'replica\.log\(\s*"(\w+)"', "".join(map(inspect.getsource, own))))
            assert logged == set(made.metric_help), selector


@pytest.mark.parametrize("kind", ["losses", "diagnostics", "evaluators"])
def test_every_component_of_a_logging_kind_explains_its_metrics(names, kind):
    for selector in names.selectors:
        if selector.startswith(f"{kind}."):
            assert names.make(selector).metric_help, selector


class Silent(ganlab.Constraint):
    """Keeps the critic in check, and logs `grip`."""


class Talking(ganlab.Evaluator):
    metric_help = {"height/<where>": "How high it is there.", "all": "Of all."}  # noqa: RUF012


class Moving(ganlab.Loss):
    metric_help = {"center": "Where it is.", "critic/loss": "Small."}  # noqa: RUF012


def test_third_party_metrics_are_explained_as_far_as_possible():
    hooks = {"ganlab_losses": {"moving": Moving}, "ganlab_constraints": {"silent": Silent}}
    hooks["ganlab_evaluators"] = {"talking": Talking}
    module = SimpleNamespace(**{name: ganlab.hookimpl(lambda made=made: made) for name, made in hooks.items()})
    found = plugins.Plugins()
    found.add(plugins.Plugin("mine", "tests", "1"), lambda: module)
    names = Names(found)
    assert explained("evaluation/talking/height/north/1", names) == "How high it is there."
    assert "logs `grip`" in explained("constraints/silent/grip", names)
    assert explained("losses/moving/center", names) == "Where it is."
    assert "With losses.moving: Small." in explained("critic/loss", names)
    assert [tag for tag in metric_names(names) if tag.startswith("losses/")] == ["losses/moving/center"]
    with pytest.raises(ganlab.ConfigError, match="Did you mean 'evaluation/talking/all'"):
        explain_metric("evaluation/talking/al", names)


def test_config_explain_prints_metric_help():
    text = command("config", "explain", "critic/loss")
    assert text.startswith("critic/loss, logged by ganlab\n")
    assert max(map(len, text.splitlines())) <= 100
    head = command("config", "explain", "constraints/gradient_penalty/slope").splitlines()[0]
    assert head.startswith("constraints/gradient_penalty/slope, logged by constraints.gradient_penalty (ganlab-tf ")
    data = json.loads(command("config", "explain", "mode_coverage/modes", "--json"))
    assert data["name"] == "evaluation/mode_coverage/modes"
    assert data["logged_by"] == "evaluators.mode_coverage"
    assert data["documentation"].startswith("The number of modes")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("critic/los", "Did you mean 'critic/loss'?"),
        ("constraints/gradient_penalty/slop", "Did you mean 'constraints/gradient_penalty/slope'?"),
        ("constraints/gradient_penlty/slope", "Did you mean 'constraints/gradient_penalty/slope'?"),
        ("slope", "Metrics that end in this name: constraints/alp/slope, constraints/banach_penalty/slope,"),
        ("schedules/gradient_penalty/nothing", "Nothing logs a metric 'schedules/gradient_penalty/nothing'"),
        ("schedules/loss", "Nothing logs a metric 'schedules/loss'"),
        ("of/nothing/known", "Metrics are named as in metrics.jsonl"),
    ],
)
def test_unknown_metric_suggests_similar_ones(name, words):
    assert words in command("config", "explain", name, code=2)
