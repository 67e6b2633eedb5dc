"""The check `replicas` compares inputs by a projection, and names what draws random numbers of its own."""

from pathlib import Path

import pytest
from ganlab_verify import Source, graph, microbatches
from ganlab_verify.replicas import check

PLUGIN = Path(__file__).parent / "checked_plugin.py"

pytestmark = pytest.mark.usefixtures("own_plugins", "cpus")


def test_one_hot_examples_differ_although_their_means_are_equal(experiments):
    gin, small = experiments("wgan")
    source = Source((gin,), (*small, "experiment.dataset=@datasets.one_hot()"), plugin_file=str(PLUGIN))
    row = check(source, replicas=[2], iterations=1, optimizers="sgd")
    assert row.status == "passed", row.detail


UNSEEDED = next(n for n, line in enumerate(PLUGIN.read_text().splitlines(), 1) if "the unseeded line" in line)


@pytest.mark.parametrize(
    "checked",
    [
        lambda source: check(source, replicas=[2], iterations=1, optimizers="sgd"),
        lambda source: graph.check(source, iterations=1),
        lambda source: microbatches.check(source, iterations=1),
    ],
    ids=["replicas", "graph", "microbatches"],
)
def test_random_numbers_of_a_plugins_own_are_named_with_their_line(experiments, checked):
    gin, small = experiments("wgan")
    params = (*small, "experiment.constraints=[@constraints.unseeded()]")
    row = checked(Source((gin,), params, plugin_file=str(PLUGIN)))
    assert (row.status, row.data["cause"]) == ("failed", "own random numbers"), row.detail
    assert f"(RandomUniform at tests/verification/checked_plugin.py:{UNSEEDED})" in row.detail


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
    gin, small = experiments("wgan")
    source = Source((gin,), (*small, setting), plugin_file=str(PLUGIN))
    row = check(source, replicas=[2], iterations=1, optimizers="sgd")
    assert (row.status, row.data["cause"]) == ("failed", "own random numbers"), row.detail
    assert f"{where} gives other numbers each time" in row.detail


def test_a_tensor_in_a_global_of_the_module_is_named(experiments):
    gin, small = experiments("wgan")
    source = Source((gin,), (*small, "experiment.constraints=[@constraints.keeping()]"), plugin_file=str(PLUGIN))
    row = check(source, replicas=[2], iterations=1, optimizers="sgd")
    assert (row.status, row.data["cause"]) == ("failed", "kept tensor"), row.detail
    assert "KEPT holds a tensor of a step that was traced" in row.detail


@pytest.mark.slow
def test_python_code_that_repeats_itself_passes(experiments):
    gin, small = experiments("wgan")
    source = Source((gin,), (*small, "experiment.constraints=[@constraints.counting()]"), plugin_file=str(PLUGIN))
    row = check(source, replicas=[2], iterations=1, optimizers="sgd")
    assert row.status == "passed", row.detail


@pytest.mark.parametrize(
    ("of", "words"),
    [
        ("critic", "The critic of this conditional architecture gives the same output for another label"),
        ("generator and critic", "The generator and the critic of this conditional architecture give the same output"),
    ],
)
def test_ignored_labels_are_named(experiments, of, words):
    gin, small = experiments("wgan", architecture="deaf")
    source = Source((gin,), (*small, f"architectures.deaf.of='{of}'"), plugin_file=str(PLUGIN))
    row = check(source, replicas=[2], iterations=1, optimizers="sgd")
    assert (row.status, row.data["cause"]) == ("failed", "ignored labels"), row.detail
    assert words in row.detail
