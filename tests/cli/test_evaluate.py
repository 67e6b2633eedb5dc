"""`ganlab evaluate` on runs of two replicas, compared with the figures that training logged."""

import fcntl
import json
import os
import shutil

import pytest
from command_lines import command
from resting_runs import contents

import ganlab as lab

pytestmark = pytest.mark.usefixtures("fresh_plugins")

EXPERIMENT = """
include 'base/toy.gin'
experiment.dataset = @datasets.gaussian_ring()
experiment.evaluators = [@evaluators.mode_coverage(), @small/evaluators.sliced_wasserstein()]
experiment.steps = 4
experiment.critic_steps = 1
experiment.batch_size = 16
experiment.checkpoint_every = 2
experiment.evaluate_every = 0
experiment.ema_decay = 0.9
architectures.mlp.width = 8
strategies.mirrored.virtual_replicas = 2
evaluators.mode_coverage.samples = 300
small/evaluators.sliced_wasserstein.samples = 50
"""


@pytest.fixture(scope="module")
def trained(trained):
    """A run with checkpoints at steps 2 and 4, which tests must not change."""
    return trained(EXPERIMENT)


@pytest.fixture
def copy(trained, tmp_path):
    """A copy of that run, which tests may change."""
    return shutil.copytree(trained, tmp_path / "one")


def figures(text):
    return json.loads(text)["evaluation"]


def test_figures_equal_those_of_training_and_the_run_is_unchanged(trained):
    before = contents(trained)
    output = json.loads(command("evaluate", trained, "--json"))
    assert (output["run"], output["step"]) == (str(trained), 4)
    assert output["evaluation"] == lab.Run(trained).info["evaluation"]
    assert set(output["evaluation"]) >= {"mode_coverage/modes", "sliced_wasserstein/distance"}
    assert contents(trained) == before


def test_table_has_one_line_per_figure(trained):
    first, _, head, *lines = command("evaluate", trained, "--evaluator", "sliced_wasserstein").splitlines()
    assert first == f"{trained}, step 4:"
    assert head.split() == ["evaluator", "figure", "value"]
    figures = ("distance", "real_against_real")
    assert [line.split()[:2] for line in lines] == [["sliced_wasserstein", figure] for figure in figures]
    assert float(lines[0].split()[2]) > 0


def test_an_earlier_checkpoint_has_other_figures(trained):
    newest = figures(command("evaluate", trained, "--json"))
    output = json.loads(command("evaluate", trained, "--checkpoint", 2, "--json"))
    assert output["step"] == 2
    assert output["evaluation"]["sliced_wasserstein/distance"] != newest["sliced_wasserstein/distance"]
    assert lab.Run(trained).evaluate(checkpoint=2) == output["evaluation"]


def test_evaluators_by_full_name_short_name_or_reference_with_params(trained):
    names = ("--evaluator", "kid", "--evaluator", "@evaluators.kid()", "--evaluator", "evaluators.exact_w1")
    found = figures(command("evaluate", trained, *names, "--param", "evaluators.kid.samples=20", "--json"))
    assert sorted({name.partition("/")[0] for name in found}) == ["exact_w1", "kid", "kid_2"]
    assert found["kid/distance"] == found["kid_2/distance"]
    expected = lab.Run(trained).evaluate([lab.component("evaluators", "kid")(samples=20)])
    assert found["kid/distance"] == expected["kid/distance"]
    # A scope of the run's own file counts.
    scoped = figures(command("evaluate", trained, "--evaluator", "@small/evaluators.sliced_wasserstein()", "--json"))
    assert scoped["sliced_wasserstein/distance"] == lab.Run(trained).info["evaluation"]["sliced_wasserstein/distance"]


def test_saving_adds_the_figures_of_the_newest_checkpoint(copy):
    before = lab.Run(copy).info
    found = figures(command("evaluate", copy, "--evaluator", "exact_w1", "--save", "--json"))
    after = lab.Run(copy).info
    assert after["evaluation"] == {**before["evaluation"], **found}
    assert {name for name in before if before[name] != after[name]} - {"process"} == {"better", "evaluation", "limits"}
    message = command("evaluate", copy, "--checkpoint", 2, "--save", code=2)
    assert "--save is only for the newest checkpoint" in message
    assert lab.Run(copy).info == after


def test_run_in_training_can_be_measured_but_not_saved_to(copy):
    held = os.open(copy, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        assert figures(command("evaluate", copy, "--json")) == lab.Run(copy).info["evaluation"]
        assert "is in use by another process" in command("evaluate", copy, "--save", code=75)
    finally:
        os.close(held)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--checkpoint", "3"], "has no checkpoint of step 3; those that are kept are of 2, 4"),
        (
            ["--evaluator", "exact_w"],
            "Error: --evaluator 'exact_w': Unknown component evaluators.exact_w. Did you mean 'evaluators.exact_w1'?",
        ),
        (["--evaluator", "digits"], "Unknown component evaluators.digits"),
        (["--evaluator", "@datasets.digits()"], "is one of the datasets, but must be one of the evaluators"),
        (["--evaluator", "classifier_score"], "evaluators.classifier_score needs features"),
        (["--param", "evaluators.kid.samples=3"], "has no effect"),
    ],
)
def test_mistakes_are_one_message(trained, arguments, message):
    error = command("evaluate", trained, *arguments, code=2)
    assert message in error
    assert error.count("\n") == 1


def test_missing_evaluators_checkpoint_or_run_is_reported(copy, tmp_path):
    assert "nowhere not found: no such directory" in command("evaluate", tmp_path / "nowhere", code=2)
    config = copy / "config.gin"
    lines = [line for line in config.read_text().splitlines() if "evaluators" not in line]
    config.write_text("\n".join(lines))
    assert "has no evaluators. Name one, for example --evaluator frechet_distance" in command("evaluate", copy, code=2)
    for path in (copy / "checkpoints").rglob("manifest.json"):
        path.unlink()
    assert "has no checkpoint yet" in command("evaluate", copy, "--evaluator", "kid", code=2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["kidd"], r"^evaluator 'kidd': .*Did you mean 'evaluators\.kid'\?"),
        (["losses.hinge"], r"^evaluator 'losses\.hinge': .*must be one of the evaluators"),
        ([3], r"^3 is not an evaluator\. Pass names, as in run\.evaluate\(\['kid'\]\)"),
        (3, r"^3 is not an evaluator\. Pass names"),
        ([lab.Evaluator], r"is not an evaluator\. It makes one: call it"),
    ],
)
def test_python_api_names_the_valid_arguments(trained, given, message):
    with pytest.raises(lab.ConfigError, match=message):
        lab.Run(trained).evaluate(given)
