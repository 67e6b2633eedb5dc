"""docs/evaluation.md: it lists everything, its fragments and commands work, its numbers are right."""

import inspect
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from ganlab_builtin.evaluators import ganlab_evaluators
from ganlab_builtin.features import ganlab_features
from ganlab_evaluate.command import evaluate as command

import ganlab
from ganlab import config
from ganlab.engine import given_rows
from ganlab.lazy import tensorflow as tf
from ganlab.transport import exact_w1

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
FRAGMENTS = re.findall(r"^```gin\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
CLASSIFYING = ("classifier_score", "label_accuracy", "published_scores")
# Smaller than the sample of this test.
PROTOCOL = {"real_examples": 20, "subset_size": 10, "nearest": 10, "splits": 2}
SCORES = (Path(__file__).parents[2] / "docs" / "scores.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^ganlab evaluate .*$", (PAGE + SCORES).replace("\\\n", ""), flags=re.MULTILINE)


def test_every_evaluator_and_every_feature_network_has_a_row():
    names = [*ganlab_evaluators(), *ganlab_features()]
    assert [name for name in names if not re.search(rf"^\| `{name}` \|", PAGE, flags=re.MULTILINE)] == []


def test_the_page_of_scores_has_every_figure_and_its_parameters_exist():
    figures = ganlab_evaluators()["published_scores"].metric_help
    assert [name for name in figures if f"`{name}`" not in SCORES] == []
    known = inspect.signature(ganlab_evaluators()["published_scores"]).parameters
    assert set(re.findall(r"published_scores\.(\w+)=", SCORES)) <= set(known)
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([^|]*) \|$", SCORES, flags=re.MULTILINE)
    assert {name for _, said in rows for name in re.findall(r"`(\w+)`", said)} <= set(known)


def test_the_fragments_fit_an_experiment(tmp_path, fresh_plugins):
    assert len(FRAGMENTS) == 3
    for text in FRAGMENTS:
        (tmp_path / "more.gin").write_text("include 'quickstart.gin'\n" + text)
        arguments = config.load([tmp_path / "more.gin"]).arguments
        assert arguments.get("evaluate_beside") or len(arguments["evaluators"]) == 2


def test_the_settings_of_files_that_are_not_here_exist():
    settings = re.findall(r"^(?:test/)?(\w+)\.(\w+)\.(\w+) = ", "".join(PAGE.split("```text")[1:]), flags=re.MULTILINE)
    known = [name in inspect.signature(ganlab.component(kind, of)).parameters for kind, of, name in settings[:12]]
    assert all(known)
    assert len(known) == 12


def test_the_commands_have_existing_options():
    assert len(COMMANDS) == 6
    for text in COMMANDS:
        context = command.make_context("evaluate", shlex.split(text)[2:])
        assert context.params["run"] or context.params["folder"]


@pytest.mark.parametrize(("d", "said"), [(2, "0.15"), (784, "37")])
def test_the_bias_of_exact_w1_is_as_documented(d, said):
    assert f"{said} in " in PAGE
    random = np.random.default_rng(0)
    found = exact_w1(random.normal(size=(1000, d)), random.normal(size=(1000, d)))
    assert found == pytest.approx(float(said), rel=0.2 if d == 2 else 0.02)


def test_the_figures_are_those_that_the_page_lists(tmp_path):
    class Sign(ganlab.Features):
        def embed(self, x):
            return x

        def probabilities(self, x):
            return np.stack([x[:, 0] > 0, x[:, 0] <= 0], axis=1).astype(float)

    class Ring:
        classes = 8

        def given(self, n, seed):
            numbers = tf.range(n, dtype=tf.int64)
            rows = given_rows(dataset)
            return {name: getattr(dataset, rows[name].method)(numbers, seed) for name in rows if name != "labels"}

        def __call__(self, n, seed, labels=None, **given):
            return np.asarray(dataset.examples(tf.range(n, dtype=tf.int64), seed))

    of = {"condition_accuracy": "showers", "reconstruction": "edges", "ngrams": "characters"}
    listed = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", PAGE, flags=re.MULTILINE))
    others = ("stacked_modes", "cycle_error")  # of images, and of a way back
    for name in ganlab_evaluators().keys() - {*others}:
        arguments = {"samples": 20, **({"features": Sign()} if name in CLASSIFYING else {})}
        dataset = ganlab.component("datasets", of.get(name, "gaussian_ring"))()
        arguments |= PROTOCOL if name == "published_scores" else {}
        evaluator = ganlab.component("evaluators", name)(**arguments)
        figures = [figure for figure in evaluator.evaluate(Ring(), dataset, None) if not figure.startswith("class/")]
        said = re.findall(r"`(\w+)`", listed[name]) or ["distance", "real_against_real"]  # "same"
        assert figures == said, name
        # By class, of pairs and with `resamples` there are more.
        explained = {each for each in evaluator.metric_help if not re.match("class/|cosine$|.*_(low|high)$", each)}
        assert explained == {re.sub(r"^js\d$", "js<n>", figure) for figure in figures}, name
    for name in others:
        assert re.findall(r"`(\w+)`", listed[name]) == [*ganlab_evaluators()[name].metric_help]
