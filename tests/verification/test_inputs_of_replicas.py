"""The check `replicas` compares inputs by a projection, and names what draws random numbers of its own."""

import re
from pathlib import Path

import pytest
from ganlab_verify import Source, graph, microbatches
from ganlab_verify.replicas import check

PLUGIN = Path(__file__).parent / "checked_plugin.py"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_plugins", "cpus")]


def source_of(experiment, *settings):
    gin, small = experiment
    return Source((gin,), (*small, *settings), plugin_file=str(PLUGIN))


def on_two(source):
    return check(source, replicas=[2], iterations=1, optimizers="sgd")


@pytest.mark.parametrize(
    "setting",
    ["experiment.dataset=@datasets.one_hot()", "experiment.constraints=[@constraints.counting()]"],
    ids=["one-hot examples differ, although their means are equal", "Python code that repeats itself"],
)
def test_inputs_that_are_right_pass(experiments, setting):
    row = on_two(source_of(experiments("wgan"), setting))
    assert row.status == "passed", row.detail


@pytest.mark.parametrize(
    "checked",
    [on_two, lambda source: graph.check(source, iterations=1), lambda source: microbatches.check(source, iterations=1)],
    ids=["replicas", "graph", "microbatches"],
)
def test_random_numbers_of_a_plugins_own_are_named_with_their_line(experiments, checked):
    row = checked(source_of(experiments("wgan"), "experiment.constraints=[@constraints.unseeded()]"))
    assert (row.status, row.data["cause"]) == ("failed", "own random numbers"), row.detail
    assert re.search(r"\(RandomUniform at tests/testing/wrong_constraints\.py:\d+\)", row.detail), row.detail


NUMPY = next(n for n, line in enumerate(PLUGIN.read_text().splitlines(), 1) if "the numpy line" in line)


@pytest.mark.parametrize(
    ("setting", "where"),
    [
        (
            "experiment.constraints=[@constraints.of_numpy()]",
            f"Python code in the training step (PyFunc at tests/verification/checked_plugin.py:{NUMPY})",
        ),
        ("experiment.dataset=@datasets.random_points()", "the examples of RandomPoints"),
    ],
)
def test_random_numbers_of_numpy_are_named(experiments, setting, where):
    row = on_two(source_of(experiments("wgan"), setting))
    assert (row.status, row.data["cause"]) == ("failed", "own random numbers"), row.detail
    assert f"{where} gives other numbers each time" in row.detail


def test_a_tensor_in_a_global_of_the_module_is_named(experiments):
    row = on_two(source_of(experiments("wgan"), "experiment.constraints=[@constraints.keeping()]"))
    assert (row.status, row.data["cause"]) == ("failed", "kept tensor"), row.detail
    assert "KEPT holds a tensor of a step that was traced" in row.detail


@pytest.mark.parametrize(
    ("of", "words"),
    [
        ("critic", "The critic of this conditional architecture gives the same output for another label"),
        ("generator and critic", "The generator and the critic of this conditional architecture give the same output"),
    ],
)
def test_ignored_labels_are_named(experiments, of, words):
    row = on_two(source_of(experiments("wgan", architecture="deaf"), f"architectures.deaf.of='{of}'"))
    assert (row.status, row.data["cause"]) == ("failed", "ignored labels"), row.detail
    assert words in row.detail
