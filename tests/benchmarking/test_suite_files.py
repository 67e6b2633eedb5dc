"""Suites: what a TOML file may say, and what is refused before anything starts."""

import pytest
from ganlab_benchmark.suite import find_suite, read_suite, shipped_suites
from small_suites import SUITE, write_suite

from ganlab.errors import ConfigError


def test_a_suite_is_read_whole(tmp_path):
    suite = read_suite(write_suite(tmp_path))
    assert (suite.name, suite.title, list(suite.tasks)) == ("tiny", "Tiny", ["cost", "w1", "fraction", "bound"])
    task = suite.tasks["w1"]
    assert task.experiment == tmp_path / "tiny.gin"
    assert (task.steps, task.seeds, task.figures["loss"].absolute) == (40, [0, 1], True)
    assert task.tune.settings == {"datasets.gaussian_ring.modes": "5"}
    assert task.tune.grid == {"optimizers.adam.learning_rate": ["0.001", "0.0001"]}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("steps = 40", "stepz = 40", "tasks.w1.steps is missing"),
        ("steps = 40", "steps = 40\nsteqs = 3", "steqs = 3 must be left out: it is not a key of a suite. Did you mean"),
        ("steps = 40", "steps = 4.5", "tasks.w1.steps = 4.5 must be a whole number"),
        ("steps = 40", "steps = true", "tasks.w1.steps = True must be a whole number"),
        ("steps = 40", "steps = 0", "at least 1"),
        ("steps = 40", "steps = 99999999999999999999", "below 2**31"),
        ("seeds = [0, 1]", "seeds = [0, 0]", "tasks.w1.seeds = [0, 0] must be a list of different whole numbers"),
        ("seeds = [0, 1]", "seeds = []", "tasks.w1.seeds"),
        ("seeds = [0, 1]", "seeds = [-1]", "tasks.w1.seeds"),
        ('better = "lower", label = "loss"', 'better = "low", label = "loss"', "must be one of higher, lower"),
        ('metric = "critic/loss", ', "", "tasks.w1.figures.loss.metric is missing"),
        ('metric = "critic/loss"', "metric = 3", "must be a text in quotes"),
        ('experiment = "tiny.gin"\nsteps', 'experiment = "gone.gin"\nsteps', "'gone.gin' must be an experiment file"),
        ('figure = "loss"', 'figure = "lost"', "must be the name of a figure of this task. Did you mean 'loss'?"),
        ('kind = "sensitivity"', 'kind = "sensible"', "must be one of"),
        ('of = "w1"\nfigures.fraction', 'of = "w2"\nfigures.fraction', "must be the name of a task that has 'tune'"),
        ('"datasets.gaussian_ring.modes" = 5 }', "}", "are those of the report 'Ring'"),
        ("[1e-3, 1e-4]", "[]", "must be a list of values"),
        ("[1e-3, 1e-4]", "[1e-3, 1e-3]", "each once"),
        ("[1e-3, 1e-4]", "[nan]", "must be a number, a text"),
        ("[0.1, 1.0]", "[0.1, -1.0]", "must be a list of factors above 0"),
        ("[0.1, 1.0]", '["a"]', "must be a list of factors above 0"),
        ('"datasets.gaussian_ring.modes" = 5', '"experiment.steps" = 5', "the benchmark itself sets it"),
        ('"datasets.gaussian_ring.modes" = 5', '"a=b" = 5', "must be a name of a setting"),
        ('"datasets.gaussian_ring.modes" = 5', '"a.b" = { c = 1 }', "must be a number, a text"),
        ("steps = 40", 'steps = 40\nfiles = { "a.b" = 3 }', "tasks.w1.files.a.b = 3 must be a text in quotes"),
        ("[tasks.w1]\n", '[tasks."../up"]\n', "must be lower-case letters"),
        ("title = ", "tasks = 3\nx = ", "is not TOML"),
        ('name = "Ring"', 'name = "Ring"\n[[tasks.w1.report]]\nname = "Ring"', "two have the name 'Ring'"),
        ('kind = "cost"', 'kind = "training"', "missing"),
        (
            "figures.fraction = { better",
            "figures.a = { better = 'higher' }\nfigures.fraction = { better",
            "exactly one",
        ),
    ],
)
def test_a_mistake_in_a_suite_is_one_message(tmp_path, before, after, said):
    assert before in SUITE
    path = write_suite(tmp_path, SUITE.replace(before, after, 1))
    with pytest.raises(ConfigError) as error:
        read_suite(path)
    message = str(error.value)
    assert "tiny.toml" in message
    assert said in message
    assert "\n" not in message
    assert len(message) < 1500


@pytest.mark.parametrize(
    "text", ["title = [", "\x00", "a" * 2_000_000, "[tasks]\n", "tasks = [1]", "[tasks]\ncost = 1"]
)
def test_a_file_that_is_not_a_suite_is_refused(tmp_path, text):
    with pytest.raises(ConfigError):
        read_suite(write_suite(tmp_path, text))


def test_an_unknown_suite_names_those_there_are(tmp_path):
    with pytest.raises(ConfigError, match=r"Did you mean 'quick'\?"):
        find_suite("quik")


@pytest.mark.parametrize("name", sorted({*shipped_suites()} - {"mnist"}))
def test_shipped_suites_choose_settings_on_other_data_than_they_report(name):
    suite = read_suite(find_suite(name))
    assert {"cost", "w1", "modes", "digits", "depth", "sensitivity", "certificate"} <= set(suite.tasks)
    w1 = suite.tasks["w1"]
    pair = [f"datasets.min_funnels.{parameter}" for parameter in ("dims", "funnels", "funnels_seed")]
    tuned = tuple(w1.tune.settings[parameter] for parameter in pair)
    reported = [tuple(report.settings[parameter] for parameter in pair) for report in w1.reports]
    assert tuned not in reported
    assert tuned[2] not in {seed for _, _, seed in reported}  # the seed of the funnels differs too
    assert not set(w1.tune.seeds) & set(w1.seeds)
    depth = suite.tasks["depth"].settings
    assert depth[pair[2]] != tuned[2]
