"""Steps of a run once more: replayed bit for bit, forked, and searched."""

import contextlib
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from short_rings import PENALTY, RING, files, invoke, trained

import ganlab
from ganlab.plugins import manager as plugins

# What a run may hold besides weights: penalties lazy and not, states, averages, schedules, labels, augmentations.
KINDS = {
    "penalty": PENALTY,
    "state": f"{RING}experiment.constraints = [@constraints.spectral_norm()]\nexperiment.ema_decay = 0.9",
    "lazy": f"{RING}experiment.constraints = [@constraints.r1()]\nconstraints.r1.every = 4\n"
    "experiment.loss = @losses.non_saturating()\n"
    "optimizers.adam.learning_rate = @schedules.cosine()\nschedules.cosine.start = 1e-3\nschedules.cosine.end = 0.0",
    "labels": "experiment.dataset = @datasets.digits()\nexperiment.constraints = [@constraints.gradient_penalty()]\n"
    "architectures.mlp.labels = 'projection'\nexperiment.augmentations = [@augmentations.diff_augment()]",
    "replicas": f"{RING}experiment.strategy = @strategies.mirrored()\nstrategies.mirrored.virtual_replicas = 2\n"
    "experiment.constraints = [@constraints.spectral_norm(), @constraints.gradient_penalty()]",
}

JUMP = """
import ganlab

class Jump(ganlab.Schedule):
    '''A learning rate that jumps after 13 updates.'''

    start = 1e-4

    def value(self, step, steps):
        import tensorflow as tf
        return tf.where(step < 13, 1e-4, 3.0)

@ganlab.hookimpl
def ganlab_schedules():
    return {"jump": Jump}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory, cpus):
    """A run under a gradient penalty."""
    return trained(tmp_path_factory.mktemp("time_travel"), KINDS["penalty"])


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != "penalty"])
def test_rows_of_every_kind_are_equal_bit_for_bit(kind, tmp_path, cpus):
    run = trained(tmp_path, KINDS[kind])
    steps = sorted({record.step for record in run.iter_metrics()})
    assert steps == [4, 8, 12, 16, 20, 23]
    for step in random.Random(kind).sample(steps, 3):
        found = run.replay(step)
        assert found.logged
        assert found.differing == []


def test_a_row_is_equal_bit_for_bit_and_nothing_is_written(run):
    before = files(run)
    printed = invoke("replay", run.path, "--step", 12).stdout
    logged = [record for record in run.iter_metrics() if record.step == 12]
    assert any(record.tag.startswith("evaluation/") for record in logged)
    assert f"All {len(logged)} metrics and their replicas' values equal the logged row bit for bit." in printed
    assert "from the checkpoint of step 10" in printed
    assert files(run) == before


def test_the_last_row_of_iterations_that_are_left_is_equal(run):
    found = run.replay(23)
    assert (found.start, found.differing) == (20, [])


def test_a_row_that_was_changed_is_found_out(run, tmp_path):
    rows = (run.path / "metrics.jsonl").read_text()
    changed = tmp_path / "a"
    changed.mkdir()
    for path in filter(Path.is_file, run.path.iterdir()):
        (changed / path.name).write_bytes(path.read_bytes())
    eight = next(line for line in rows.splitlines() if '"step": 8,' in line)
    value = json.loads(eight)["metrics"]["critic/loss"]["reduced"]
    (changed / "metrics.jsonl").write_text(rows.replace(repr(value), repr(value * (1 + 1e-15) + 1e-17)))
    found = ganlab.Run(changed).replay(8)
    assert "critic/loss" in found.differing
    assert found.start == 0


@pytest.mark.slow
def test_a_step_without_a_row_shows_its_iteration_and_further_diagnostics(run):
    printed = json.loads(invoke("replay", run.path, "--step", 7, "--diagnostics", "slopes", "--json").stdout)
    assert printed["logged"] == {}
    assert printed["row"]["critic/loss"]["reduced"] != printed["row"]["generator/loss"]["reduced"]
    assert any(tag.startswith("diagnostics/slopes/") for tag in printed["diagnostics"])
    # Its row is the mean over iterations 5 to 8, so theirs average to it.
    single = [run.replay(step).row for step in (5, 6, 7)]
    assert all(record.step == 5 + i for i, row in enumerate(single) for record in row)


@pytest.mark.parametrize("step", [0, 24])
def test_a_step_that_a_run_has_not_is_refused(run, step):
    with pytest.raises(ganlab.RunError):
        run.replay(step)


@pytest.mark.slow
def test_a_fork_without_changes_is_its_parent(run, tmp_path):
    twin = run.fork(tmp_path / "twin", at=11)
    assert (twin.path / "metrics.jsonl").read_bytes() == (run.path / "metrics.jsonl").read_bytes()
    assert twin.info["forked_from"] == {"run": str(run.path), "step": 11, "settings": {}}
    assert twin.info["status"] == "completed"


@pytest.mark.slow
def test_a_fork_has_its_own_learning_rate_and_its_parents_rows_before(run, tmp_path):
    rate = "optimizers.adam.learning_rate=1e-30"
    twin = run.fork(tmp_path / "still", at=12, params=[rate])
    assert list(twin.info["forked_from"]["settings"].values()) == [1e-30]
    mine, parents = ({(r.step, r.tag): r.reduced for r in each.iter_metrics()} for each in (twin, run))
    assert {key: value for key, value in mine.items() if key[0] <= 12} == {
        key: value for key, value in parents.items() if key[0] <= 12
    }
    # Nothing moves at this rate: the distance of samples from the data stays that of step 12.
    tag = "evaluation/exact_w1/distance"
    assert mine[12, tag] == mine[23, tag] != parents[23, tag]


def row(run, step):
    return {record.tag: record.reduced for record in run.iter_metrics() if record.step == step}


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False])
def test_a_fork_with_other_updates_in_a_step_has_the_learning_rate_of_its_step(tmp_path, cpus, own):
    scheduled = "@schedules.linear()\nschedules.linear.start = 1e-2\nschedules.linear.end = 0.0"
    rate = "1e-2\noptimizers.adam.schedule = 'linear'" if own else f"{scheduled}\noptimizers.adam.schedule = 'constant'"
    run = trained(tmp_path, f"{PENALTY}\noptimizers.adam.learning_rate = {rate}")
    params = ["experiment.critic_steps=1", "experiment.log_every=1"]
    twin = run.fork(tmp_path / "twin", at=11, params=params)
    constant = [f"optimizers.adam.learning_rate={1e-2 * (1 - 11 / 23)}", "optimizers.adam.schedule='constant'"]
    by_hand = run.fork(tmp_path / "by_hand", at=11, params=[*params, *constant])
    assert row(twin, 13)["critic/loss"] == pytest.approx(row(by_hand, 13)["critic/loss"], rel=1e-5)
    assert row(twin, 14)["critic/loss"] != pytest.approx(row(by_hand, 14)["critic/loss"], rel=1e-5)


@pytest.mark.slow
def test_averages_and_parameters_of_a_fork_begin_at_its_weights(run, tmp_path):
    still = ["optimizers.adam.learning_rate=1e-30", "experiment.log_every=1"]
    twin = run.fork(tmp_path / "still", at=12, params=still)
    normed = "experiment.constraints=[@constraints.gradient_penalty(), @constraints.weight_normalization()]"
    other = run.fork(tmp_path / "other", at=12, params=[*still, "experiment.ema_decay=0.9", normed])
    for tag in ("critic/loss", "generator/loss", "evaluation/exact_w1/distance"):
        assert row(other, 23)[tag] == pytest.approx(row(twin, 23)[tag], rel=1e-4)


@pytest.mark.slow
def test_a_fork_under_another_constraint_begins_its_state_anew(run, tmp_path):
    with contextlib.chdir(tmp_path):
        new = "experiment.constraints=[@constraints.spectral_norm()]"
        result = invoke("fork", run.path, "--at", 11, "--param", new, "--name", "normed")
    assert "variables begin anew, because the run has none like them: constraints/spectral_norm" in result.stderr
    twin = ganlab.Run(run.path.parent / "normed")
    assert twin.info["status"] == "completed"
    assert any(r.tag.startswith("constraints/spectral_norm/") for r in twin.iter_metrics() if r.step > 12)
    again = twin.replay(23)
    assert again.differing == []


@pytest.mark.parametrize(("at", "message"), [(0, "at = 0"), (23, "nothing to train"), (40, "step 40 is not one")])
def test_forks_that_cannot_be_are_refused(run, tmp_path, at, message):
    params = ["experiment.steps=50"] if at == 40 else []
    with pytest.raises(ganlab.GanlabError, match=message):
        run.fork(tmp_path / "none", at=at, params=params)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("start", ["elsewhere", ""])
def test_a_fork_takes_its_weights_from_the_run(run, tmp_path, start):
    with pytest.raises(ganlab.ConfigError, match="a fork takes its weights from the run" if start else "nothing to"):
        run.fork(tmp_path / "none", at=23, params=[f"experiment.start_from={start!r}"])
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_fork_has_fewer_replicas_or_more(tmp_path, cpus):
    run = trained(tmp_path, KINDS["replicas"])
    for name, setting, replicas in (
        ("one", "strategies.mirrored.virtual_replicas=1", 1),
        ("four", "strategies.mirrored.virtual_replicas=4", 4),
        ("alone", "experiment.strategy=@strategies.one_device()", 1),
    ):
        # TensorFlow splits a CPU once in a process, and here it has.
        command = [sys.executable, "-m", "ganlab", "fork", run.path, "--at", "20", "--param", setting]
        done = subprocess.run([*command, "--name", name], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert ganlab.Run(run.path.parent / name).info["replicas"] == replicas


@pytest.mark.slow
def test_a_planted_fault_is_found_exactly(tmp_path, cpus):
    fault = KINDS["penalty"] + "\noptimizers.adam.learning_rate = @schedules.jump()\n"
    run = trained(tmp_path, fault, JUMP)
    with contextlib.chdir(tmp_path), plugins.using():
        arguments = ("--plugin-file", "ganlab_plugins.py")
        found = invoke("bisect", run.path, "schedules/critic_optimizer/learning_rate > 1", *arguments).stdout
        none = invoke("bisect", run.path, "schedules/critic_optimizer/learning_rate > 4", *arguments, code=1).stdout
    (step,) = re.findall(r"first holds at step (\d+)", found)
    assert int(step) == 14  # the update after 13
    assert re.search(r"schedules/critic_optimizer/learning_rate +0.0001 +3\b", found)
    assert "holds in no logged row" in none


def test_an_unknown_metric_is_refused_with_the_nearest(run):
    with pytest.raises(ganlab.RunError, match=r"no metric 'critic/los'\. Did you mean 'critic/loss'"):
        run.bisect("critic/los > 1")


def test_a_figure_of_evaluations_is_found_in_its_row(run):
    rows = [r for r in run.iter_metrics() if r.tag.startswith("evaluation/")]
    found = run.bisect(f"{rows[0].tag} == {rows[0].reduced!r}")
    assert (found.step, found.exact, found.after) == (12, False, 0)
