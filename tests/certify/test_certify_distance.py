"""`ganlab certify --distance`: an interval for the distance between a run's data and its generator."""

import functools
import json
import re

import numpy as np
import pytest
from command_lines import command
from critics import RUN

import ganlab

pytestmark = pytest.mark.slow

PAIR = """
include 'paper/min_funnels.gin'
dims = 2
experiment.steps = 3
experiment.batch_size = 32
experiment.constraints = [@constraints.polar_projection()]
architectures.mlp.activation = 'max_min'
architectures.mlp.width = 16
experiment.evaluate_every = 0
"""


@pytest.fixture(scope="module")
def pair(trained):
    """A critic after three updates, between two distributions whose distance is known."""
    return trained(PAIR)


@functools.cache
def certified(run, *options):
    return command("certify", run, "--distance", "--samples", "1024", "--seconds", "1", *options)


def test_the_interval_holds_the_distance_that_the_dataset_knows(pair):
    found = json.loads(certified(pair, "--json"))
    truth = ganlab.component("datasets", "min_funnels")(dims=2).wasserstein
    assert 0.7 * truth < found["lower"] < truth < found["upper"] < 1.25 * truth
    assert found["critic_constant"] == pytest.approx(1.0, abs=1e-3)
    assert (found["step"], found["confidence"], found["upper_by"]) == (3, 0.95, "pairs")


def test_what_is_shown_names_the_ends_and_the_assumptions(pair):
    lines = certified(pair).splitlines()
    assert lines[0].endswith("step 3: the Wasserstein-1 distance between data and generator")
    assert lines[2].endswith("at 0.95 confidence")
    assert lines[4].startswith("From below: the upper envelope of ")
    assert lines[5].startswith("From above: the mean cost of examples and samples as drawn; ")
    assert lines[6] == "Assumed:"
    assert [line[:2] for line in lines[7:]] == ["- "] * 4


def test_more_confidence_is_wider(pair):
    usual, sure = (json.loads(certified(pair, "--json", *o)) for o in ((), ("--confidence", "0.999")))
    assert sure["lower"] < usual["lower"]
    assert sure["upper"] > usual["upper"]


def test_a_finite_dataset_is_the_distribution_itself(trained):
    run = trained(RUN.replace("gaussian_ring", "digits"))
    found = json.loads(certified(run, "--json", "--samples", "512"))
    assert found["upper_by"] == "matching"
    assert any("the dataset's 1,797 examples, each as likely" in sentence for sentence in found["assumptions"])
    # A sample goes at least to its nearest digit, and a plan that does not look goes to any.
    generator = ganlab.Run(run).generator()
    samples = np.asarray(generator(np.random.default_rng(0).normal(size=(200, generator.input_shape[1]))))
    digits = np.asarray(ganlab.component("datasets", "digits")().examples(np.arange(1797), 0)).reshape(1797, -1)
    apart = np.linalg.norm(samples.reshape(200, 1, -1) - digits[None], axis=2)
    assert apart.min(axis=1).mean() < found["upper"] < apart.mean() * 1.05


def test_mistakes(pair):
    for options, message in (
        (("--rung", "products"), "leave out --rung"),
        (("--box", "-1", "1"), r"lie outside the box that the interval assumes.*--box LOW HIGH"),
        (("--box", "1", "-1"), r"box = \(1\.0, -1\.0\) must be two finite numbers, the lower one first"),
        (("--samples", "3"), "3 is not in the range x>=16"),
    ):
        assert re.search(message, " ".join(command("certify", pair, "--distance", *options, code=2).split())), options
    with pytest.raises(ganlab.ConfigError, match="samples = 3 must be at least 16"):
        ganlab.Run(pair).certify_distance(samples=3)


def test_a_critic_without_a_certificate_does_not_matter(trained):
    text = PAIR.replace("polar_projection", "gradient_normalization")
    found = json.loads(certified(trained(text), "--json"))
    assert found["critic_constant"] is None
    assert "cones" in found["lower_by"]
