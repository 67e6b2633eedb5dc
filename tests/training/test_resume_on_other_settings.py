"""Resuming with changed settings is refused, or recorded if it is allowed."""

from dataclasses import replace

import pytest
import tensorflow as tf
from small import constraint, small
from whole_runs import everything, train

import ganlab
from ganlab import config
from ganlab.runs import create_run
from ganlab.runs.resuming import check_resumable

pytestmark = pytest.mark.usefixtures("cpus")


def test_resume_of_a_completed_run_is_refused(completed):
    with pytest.raises(ganlab.RunError, match="is completed"):
        train(everything(), completed.path, resume=True)


def test_resume_of_a_run_in_training_is_refused(brief, tmp_path):
    from ganlab.runs.lock import locked

    run = brief.train(tmp_path / "run", stop_at=2)
    assert run.info["status"] == "interrupted"
    with locked(run), pytest.raises(ganlab.RunError, match=r"is being trained by process \d+ on "):
        brief.train(run.path, resume=True)


def test_resume_with_changed_settings_is_refused_and_differences_are_listed(tmp_path):
    run = train(small(0, steps=4, log_every=1), tmp_path / "run", stop_at=2)
    other = {"constraints": [constraint("gradient_penalty", weight=2.0)], "steps": 6, "log_every": 1}
    with pytest.raises(ganlab.RunError) as refused:
        train(small(2, **other), run.path, resume=True)
    said = str(refused.value)
    for line in (
        "experiment.steps: 4, and now 6",
        "constraints: not set, and now 'gradient_penalty'",
        "constraints.gradient_penalty.weight: not set, and now 2.0",
        "strategy: 'one_device', and now 'mirrored'",
        "allow-changes",
    ):
        assert line in said
    assert "batch_size" not in said
    assert run.info["status"] == "interrupted"


def test_resume_with_fewer_steps_than_the_newest_checkpoint_is_refused(tmp_path):
    run = train(small(0, steps=4), tmp_path / "run", stop_at=3)
    before = run.info
    message = r"experiment.steps = 2 is below the step of the newest checkpoint of .*run, 3: there is nothing to train"
    with pytest.raises(ganlab.ConfigError, match=message):
        train(small(0, steps=2), run.path, resume=True, allow_changes=True)
    assert run.info == before
    assert train(small(0, steps=3), run.path, resume=True, allow_changes=True).info["status"] == "completed"


def test_steps_left_at_their_default_count_when_a_run_is_resumed(tmp_path):
    recipe = small(0).recipe
    recipe = replace(recipe, arguments={name: value for name, value in recipe.arguments.items() if name != "steps"})
    steps = config.flatten(recipe)["experiment.steps"]
    run = create_run(tmp_path / "run", config="", operative="", info={"status": "completed", "step": steps})
    (run.path / "checkpoints" / "step-00000040").mkdir(parents=True)
    with pytest.raises(ganlab.RunError, match="is completed: there is nothing to resume"):
        check_resumable(run, recipe, allow_changes=True)


def test_allowed_changes_are_recorded(tmp_path):
    run = train(small(0, steps=4, log_every=1), tmp_path / "run", stop_at=2)
    longer = small(0, steps=6, log_every=1)
    train(longer, run.path, resume=True, allow_changes=True)
    info = run.info
    assert (info["status"], info["step"], info["steps"]) == ("completed", 6, 6)
    assert info["resumed"][0]["changes"] == ["experiment.steps: 4, and now 6"]
    assert info["settings"]["experiment.steps"] == 6
    assert run.recipe().arguments["steps"] == 6
    # No step depends on the total number of steps: the numbers equal those of a run with six from the start.
    whole = train(longer, tmp_path / "whole")
    assert (run.path / "metrics.jsonl").read_text() == (whole.path / "metrics.jsonl").read_text()


@pytest.mark.slow
def test_resume_with_other_replicas_is_possible_if_allowed(tmp_path):
    run = train(small(0, steps=4, log_every=3), tmp_path / "run", stop_at=2)
    with pytest.raises(ganlab.RunError, match="strategy: 'one_device', and now 'mirrored'"):
        train(small(2, steps=4, log_every=3), run.path, resume=True)
    train(small(2, steps=4, log_every=3), run.path, resume=True, allow_changes=True)
    assert (run.info["status"], run.info["replicas"], run.info["strategy"]) == ("completed", 2, "MirroredStrategy")


def test_resume_is_recorded_in_run_json(brief, tmp_path):
    run = brief.train(tmp_path / "run", stop_at=2)
    brief.train(run.path, resume=True)
    (again,) = run.info["resumed"]
    assert again["step"] == 2
    assert again["packages"]["tensorflow"] == tf.__version__
