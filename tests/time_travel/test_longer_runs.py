"""A run that is only made longer is the same run, unless a schedule over all its steps says otherwise."""

import shutil

import pytest
from short_rings import CONSTANT, RING, SMALL, invoke, trained

import ganlab
from ganlab import config
from ganlab.composition import compose
from ganlab.plugins import manager as plugins
from ganlab.training.graph.learning_rate import changed_by_steps

LOOKING = f"{CONSTANT}\nexperiment.diagnostics = [@diagnostics.gradient_norms()]\ndiagnostics.gradient_norms.every = 9"
RATE = "optimizers.adam.learning_rate"
WEIGHT = "constraints.gradient_penalty.weight"
NAMES = {
    RATE: ["critic_optimizer/learning_rate", "generator_optimizer/learning_rate"],
    WEIGHT: ["gradient_penalty/weight"],
    "": [],
}
LONGER = ("--param", "experiment.steps=31")

# Name: the setting, and what depends on the number of steps; empty for nothing in the 23 steps that are trained.
SCHEDULES = {
    "all of a run": (f"{RATE} = @schedules.linear()\nschedules.linear.start = 1e-3\nschedules.linear.end = 0.0", RATE),
    "a part of it": (
        f"{RATE} = @schedules.linear()\nschedules.linear.start = 1e-3\nschedules.linear.end = 0.0\n"
        "schedules.linear.over = 40",
        "",
    ),
    "from a step on that is trained": (
        f"{WEIGHT} = @schedules.constant_then_linear()\nschedules.constant_then_linear.start = 1.0\n"
        "schedules.constant_then_linear.turn = 20",
        WEIGHT,
    ),
    "from a later step on": (
        f"{WEIGHT} = @schedules.constant_then_linear()\nschedules.constant_then_linear.start = 1.0\n"
        "schedules.constant_then_linear.turn = 23",
        "",
    ),
    "an optimizer's own": (f"{RING}optimizers.adam.schedule = 'cosine'", RATE),
    "its own, over fixed updates": (f"{RING}optimizers.adam.schedule = 'cosine'\noptimizers.adam.decay_steps = 9", ""),
    "a plugin's": (f"{RATE} = @schedules.halves()", RATE),
}

HALVES = """
import ganlab

class Halves(ganlab.Schedule):
    start = 1e-3

    def value(self, number, total):
        import tensorflow as tf
        return tf.where(2.0 * number < float(total), 1e-3, 1e-4)

@ganlab.hookimpl
def ganlab_schedules():
    return {"halves": Halves}
"""


def rows(run):
    return {(record.step, record.tag): (record.reduced, *record.replicas) for record in run.iter_metrics()}


@pytest.fixture(scope="module")
def longer(tmp_path_factory, cpus):
    """A run of 23 steps, extended to 31, and one that had 31 from its start."""
    folder = tmp_path_factory.mktemp("longer")
    run = trained(folder, LOOKING)
    invoke("run", "--resume", run.path, *LONGER)
    other = tmp_path_factory.mktemp("whole")
    return run, trained(other, LOOKING, steps=31)


@pytest.mark.slow
def test_an_extended_run_is_the_run_that_was_longer_from_its_start(longer):
    run, whole = longer
    assert (run.info["status"], run.info["step"], run.info["steps"]) == ("completed", 31, 31)
    assert run.recipe().arguments["steps"] == 31
    mine, others = rows(run), rows(whole)
    # Where the run had ended it has a row of three iterations, which the row of step 24 then lacks.
    assert {step for step, _ in mine.keys() - others.keys()} == {23}
    assert {key: value for key, value in mine.items() if key[0] not in (23, 24)} == {
        key: value for key, value in others.items() if key[0] != 24
    }
    from ganlab.training.loading import find_checkpoint

    for (name, value), (_, other) in zip(find_checkpoint(run).values(), find_checkpoint(whole).values(), strict=True):
        assert value.tobytes() == other.tobytes(), name


@pytest.mark.slow
def test_an_extension_is_recorded_and_is_no_change_midway(longer):
    run, _ = longer
    (again,) = run.info["resumed"]
    assert (again["step"], again["changes"], again["extends"]) == (23, ["experiment.steps: 23, and now 31"], 23)
    assert "!" not in invoke("runs", "list", run.path.parent).stdout
    assert not ganlab.compare(run.path).configurations[0].runs[0].changes


@pytest.mark.slow
@pytest.mark.parametrize("step", [8, 24, 18, 23, 31])
def test_steps_before_and_after_an_extension_are_replayed(longer, step):
    run, _ = longer
    found = run.replay(step)
    assert found.logged
    assert found.differing == []


@pytest.mark.slow
@pytest.mark.parametrize("at", [26, 11, 23])
def test_forks_before_and_after_an_extension_are_their_parent(longer, tmp_path, at):
    run, whole = longer
    twin = run.fork(tmp_path / "twin", at=at)
    # A fork from before the first end trains past it.
    assert rows(twin) == rows(whole if at < 23 else run)
    if at > 23:
        # The fork, too, knows where its row has fewer iterations.
        shutil.rmtree(twin.path / "checkpoints")
        assert twin.replay(24).differing == []


@pytest.mark.slow
def test_a_fork_that_is_only_longer_is_replayed_from_its_first_steps(longer, tmp_path):
    run, _ = longer
    twin = run.fork(tmp_path / "twin", at=12, params=["experiment.steps=33"])
    shutil.rmtree(twin.path / "checkpoints")
    assert twin.replay(8).differing == []


@pytest.mark.slow
def test_steps_before_a_fork_with_other_settings_are_refused_and_their_run_is_named(longer, tmp_path):
    run, _ = longer
    twin = run.fork(tmp_path / "twin", at=12, params=["constraints.gradient_penalty.weight=1.0"])
    command = f"ganlab replay {run.path} --step 8"
    message = f"forked from {run.path} with changes at step 12.* up to 12 cannot .*Try: {command}"
    with pytest.raises(ganlab.RunError, match=message):
        twin.replay(8)
    # A fork of the fork shares that past.
    second = twin.fork(tmp_path / "second", at=20)
    with pytest.raises(ganlab.RunError, match="steps up to 12 cannot be trained again"):
        second.replay(8)
    assert second.replay(23).differing == []


def settings_of(schedule):
    settings, depends = SCHEDULES[schedule]
    return settings if "adam.schedule" in settings else f"{CONSTANT}\n{settings}", NAMES[depends]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_depends_on_the_number_of_steps_is_named(tmp_path, cpus, schedule):
    settings, names = settings_of(schedule)
    (tmp_path / "e.gin").write_text(f"{SMALL}experiment.steps = 31\n{settings}")
    (tmp_path / "ganlab_plugins.py").write_text(HALVES)
    with plugins.using():
        ganlab.use_plugin_file(tmp_path / "ganlab_plugins.py")
        assert changed_by_steps(compose(config.load([tmp_path / "e.gin"])), 23, 23) == names


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["all of a run", "a part of it"])
def test_a_run_is_extended_unless_a_schedule_depends_on_its_steps(tmp_path, cpus, schedule):
    settings, names = settings_of(schedule)
    run = trained(tmp_path, settings)
    before = run.info
    result = invoke("run", "--resume", run.path, *LONGER, code=2 if names else 0)
    if not names:
        assert run.info["steps"] == 31
        assert run.replay(16).differing == []
        return
    assert f"experiment.steps: 23, and now 31, on which {', '.join(names)} depend" in result.stderr
    assert "--allow-changes" in result.stderr
    assert run.info == before


@pytest.mark.slow
def test_an_interrupted_run_is_extended_and_other_changes_are_still_refused(tmp_path, cpus):
    run = trained(tmp_path, CONSTANT)
    shutil.rmtree(run.path / "checkpoints" / "step-00000023")
    run.update(status="interrupted", step=20)
    refused = invoke("run", "--resume", run.path, *LONGER, "--param", "experiment.critic_steps=3", code=2)
    assert "experiment.critic_steps: 2, and now 3" in refused.stderr
    refused = invoke("run", "--resume", run.path, "--param", "experiment.steps=21", code=2)
    assert "experiment.steps: 23, and now 21" in refused.stderr
    invoke("run", "--resume", run.path, *LONGER)
    assert sorted({record.step for record in run.iter_metrics()}) == [4, 8, 12, 16, 20, 24, 28, 31]
    assert run.replay(24).differing == []
