"""The plan: which settings each constraint is tried with, and for how long."""

import pytest
from ganlab_benchmark import plan as plans
from ganlab_benchmark.contestants import Contestant, contestants
from ganlab_benchmark.suite import find_suite, read_suite
from small_suites import SUITE, write_suite

from ganlab.errors import ConfigError, PluginError
from ganlab.plugins.manager import current

GP, SN = contestants(current(), ["gradient_penalty", "spectral_norm"])


def suite_of(folder, *changes):
    text = SUITE
    for before, after in changes:
        assert before in text
        text = text.replace(before, after, 1)
    return read_suite(write_suite(folder, text))


def test_factors_apply_to_the_default_of_a_parameter(tmp_path):
    task = suite_of(tmp_path).tasks["w1"]
    assert plans.choices(task, GP) == [
        {"optimizers.adam.learning_rate": rate, "constraints.gradient_penalty.weight": weight}
        for rate in ("0.001", "0.0001")
        for weight in ("1", "10")  # 0.1 and 1 times 10
    ]


def test_an_axis_that_a_constraint_lacks_is_left_out(tmp_path):
    task = suite_of(tmp_path).tasks["w1"]
    assert plans.choices(task, SN) == [{"optimizers.adam.learning_rate": rate} for rate in ("0.001", "0.0001")]
    # No default, a default of zero, a default that is not a number, and a whole number: nothing to scale.
    for defaults in ({}, {"weight": 0.0}):
        assert len(plans.choices(task, Contestant("gradient_penalty", "x 1", defaults))) == 2
    whole = suite_of(tmp_path, ("{constraint}.weight", "{constraint}.power_iterations")).tasks["w1"]
    assert len(plans.choices(whole, SN)) == 2


def test_trials_have_the_constraint_the_steps_and_the_choice(tmp_path):
    task = suite_of(tmp_path).tasks["w1"]
    choice = plans.choices(task, GP)[3]
    ((name, settings),) = plans.reports(task, GP, 1.6, choice)
    assert name == "1-ring"
    assert settings == {
        **choice,
        "experiment.constraints": "[@constraints.gradient_penalty()]",
        "experiment.steps": "25",  # 40 / 1.6
    }
    tuned = plans.tuning(task, GP, 1.0)
    assert [name for name, _ in tuned] == ["setting-1", "setting-2", "setting-3", "setting-4"]
    assert {settings["datasets.gaussian_ring.modes"] for _, settings in tuned} == {"5"}


@pytest.mark.parametrize(("measured", "steps"), [(0.93, 1000), (1.04, 1000), (1.06, 909), (1.449, 714), (5000.0, 1)])
def test_updates_are_divided_by_the_cost_to_one_decimal_and_at_least_one(measured, steps):
    assert plans.steps_of(1000, plans.rounded(measured)) == steps


def test_the_placeholder_is_filled_in_names_and_values(tmp_path):
    filled = (
        '"datasets.gaussian_ring.modes" = 5',
        '"experiment.generator_constraints" = "[@constraints.{constraint}()]"',
    )
    task = suite_of(tmp_path, filled).tasks["w1"]
    settings = plans.tuning(task, SN, 1.0)[0][1]
    assert settings["experiment.generator_constraints"] == "[@constraints.spectral_norm()]"


def test_a_setting_without_effect_stops_the_benchmark(tmp_path):
    suite = suite_of(tmp_path, ("datasets.gaussian_ring.modes", "datasets.gaussian_grid.side"))
    with pytest.raises(ConfigError, match=r"tasks\.w1: .*gaussian_grid\.side"):
        plans.planned(suite, [GP])


def test_a_wrong_experiment_stops_the_benchmark_without_blaming_a_constraint(tmp_path):
    suite = read_suite(write_suite(tmp_path, gin="experiment.batch_size = 0"))
    with pytest.raises(ConfigError, match="batch_size"):
        plans.planned(suite, [GP])


def test_every_installed_constraint_takes_part_by_default():
    names = [each.name for each in contestants(current())]
    assert names == sorted(name for kind, name in current().components if kind == "constraints")
    with pytest.raises(PluginError, match=r"Did you mean 'spectral_norm'\?|Did you mean 'constraints.spectral_norm'\?"):
        contestants(current(), ["spectral_nrom"])


def test_the_fingerprint_is_of_what_decides_numbers(tmp_path):
    before = plans.fingerprint(suite_of(tmp_path))
    assert plans.fingerprint(suite_of(tmp_path, ('title = "Tiny"', 'title = "Other"'))) == before
    assert plans.fingerprint(suite_of(tmp_path, ("steps = 40", "steps = 41"))) != before
    suite = suite_of(tmp_path)
    (tmp_path / "tiny.gin").write_text((tmp_path / "tiny.gin").read_text() + "# a remark\n")
    assert plans.fingerprint(suite) == before
    (tmp_path / "tiny.gin").write_text((tmp_path / "tiny.gin").read_text().replace("width = 8", "width = 9"))
    assert plans.fingerprint(suite) != before


@pytest.mark.parametrize(("name", "skipped"), [("quick", 0), ("full", 2), ("mnist", 3)])
def test_shipped_suites_can_be_planned(name, skipped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite = read_suite(find_suite(name))
    plan = plans.planned(suite, [GP, SN])
    assert (plan.refused, len(plan.skipped)) == ({}, skipped)
    tuned = suite.tasks["w1" if "w1" in suite.tasks else "mnist"]
    assert len(plans.choices(tuned, GP)) > len(plans.choices(tuned, SN))
