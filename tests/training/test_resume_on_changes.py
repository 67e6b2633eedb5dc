"""Resuming with changed settings, data or code is refused, or recorded if it is allowed."""

import json
import textwrap
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from small import Points, constraint, small
from tensorboard.plugins.hparams import metadata as hparams_metadata
from whole_runs import copied, events, texts, train

import ganlab
from ganlab import config
from ganlab.plugins import manager as plugins
from ganlab.runs import create_run, modules
from ganlab.runs.resuming import check_resumable
from ganlab.training.recorded_origins import Origins

pytestmark = pytest.mark.usefixtures("cpus")

PLUGIN = """
    import ganlab

    # A comment.
    class Shrink(ganlab.Constraint):
        def project(self, weights):
            return {name: 0.99 * value for name, value in weights.items()}

    @ganlab.hookimpl
    def ganlab_constraints():
        return {"shrink": Shrink}
    """


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "ganlab_plugins.py"

    def write(text=PLUGIN):
        path.write_text(textwrap.dedent(text))
        modules._parsed.cache_clear()

    write()
    before = plugins.current()
    plugins.use(plugins.discover(local=path))
    yield write
    plugins.use(before)


def parts(points, steps=4):
    return small(0, dataset=Points(points), constraints=[constraint("shrink")], steps=steps)


@pytest.fixture(scope="module")
def stopped(cpus, plugin, points, tmp_path_factory):
    """A run that was interrupted at its second step; not to be changed."""
    return train(parts(points), tmp_path_factory.mktemp("stopped") / "run", stop_at=2)


@pytest.fixture
def run(stopped, tmp_path):
    return ganlab.Run(copied(stopped, tmp_path / "run"))


def refused(experiment, run):
    before = (run.path / "run.json").read_bytes()
    with pytest.raises(ganlab.RunError) as error:
        train(experiment, run.path, resume=True)
    assert (run.path / "run.json").read_bytes() == before
    assert "allow_changes=True" in str(error.value)
    return str(error.value)


def hyperparameters(run):
    """The hyperparameters of the only record in the event files."""
    (found,) = [value for _, value in events(run) if value.tag == hparams_metadata.SESSION_START_INFO_TAG]
    content = found.metadata.plugin_data.content
    return dict(hparams_metadata.parse_session_start_info_plugin_data(content).hparams)


def test_run_records_its_data_and_code(run):
    origin = run.info["provenance"]
    assert (origin["data"]["size"], origin["data"]["of"]) == (200, "Points")
    assert "ganlab_plugins" in origin["code"]["constraints.shrink"]
    assert any(part.endswith("small.Points") for part in origin["code"])
    assert "datasets.gaussian_ring" not in origin["code"]
    environment = origin["environment"]
    assert {"tensorflow", "keras", "numpy", "ganlab", "devices", "threads in an operation"} <= environment.keys()
    assert environment["devices"] == "4 CPU"


def test_resume_with_one_changed_row_is_refused(run, points):
    other = points.copy()
    other[100, 1] += 1e-3
    said = refused(parts(other), run)
    assert f"{run.path} began with other data:\n  data of Points, rows: content " in said


def test_changed_data_and_settings_are_reported_together(run, points):
    said = refused(parts(points[:150], steps=6), run)
    assert "began as another experiment and with other data:" in said
    assert "\n  experiment.steps: 4, and now 6\nResume it" in said  # last, as it alone would be allowed
    assert "  data of Points, size: 200, and now 150\n" in said


def test_data_that_only_moved_are_no_change(points, tmp_path):
    here, there, other = (tmp_path / name / "points.npy" for name in ("here", "there", "other"))
    for path in (here, there, other):
        path.parent.mkdir()
        np.save(path, points + (path == other))

    def moved(path):
        return small(0, dataset=ganlab.component("datasets", "arrays")(path=str(path)), steps=4)

    stopped = train(moved(here), tmp_path / "run", stop_at=2)
    said = refused(moved(other), stopped)
    assert "began with other data:\n  data of datasets.arrays, " in said
    assert "path" not in said
    here.unlink()
    resumed = train(moved(there), stopped.path, resume=True)
    assert resumed.info["resumed"][-1]["changes"] == []
    assert resumed.info["step"] == 4
    assert str(there) in (resumed.path / "config.gin").read_text()


def test_resume_with_changed_code_is_refused_before_training(run, points, plugin):
    plugin(PLUGIN.replace("0.99", "0.98"))
    try:
        said = refused(parts(points), run)
    finally:
        plugin()
    assert f"{run.path} began with other code:\n  code of constraints.shrink, ganlab_plugins: content " in said


def test_changed_comment_is_not_a_change(run, points, plugin, capsys):
    plugin(PLUGIN.replace("# A comment.", "# Another.\n\n"))
    try:
        assert train(parts(points), run.path, resume=True).info["status"] == "completed"
    finally:
        plugin()
    assert "Warning" not in capsys.readouterr().err
    assert "changed midway" not in hyperparameters(run)
    (again,) = run.info["resumed"]
    assert (again["step"], again["changes"]) == (2, [])
    assert again["packages"]["tensorflow"] == tf.__version__
    assert not {"data", "code", "environment", "environment_changes"} & again.keys()


@pytest.mark.slow
def test_next_resume_compares_with_the_allowed_changes(run, points, plugin):
    other = points.copy()
    other[100] = 0
    train(parts(other), run.path, resume=True, allow_changes=True, stop_at=3)
    (again,) = run.info["resumed"]
    (line,) = again["changes"]
    assert line.startswith("data of Points, rows: content ")
    assert again["data"]["size"] == 200
    refused(parts(points), run)
    train(parts(other), run.path, resume=True)
    assert run.info["resumed"][1]["changes"] == []
    # TensorBoard has it as a text at the step, and in the only record of hyperparameters.
    ((step, said),) = texts(run, "changes")
    assert (step, line in said.decode()) == (2, True)
    assert hyperparameters(run)["changed midway"].string_value == f"at step 2 ({line})"
    assert [step for step, _ in texts(run, "experiment")] == [0, 2]
    assert len(texts(run, "custom_scalars__config__")) == 1


def test_workers_compare_their_data_and_code(plugin, points):
    def two(theirs):
        return SimpleNamespace(compiled=(), alike=lambda values: all(mine == theirs(mine) for mine in values))

    experiment = parts(points)
    origins = Origins(experiment.dataset, experiment.recipe)
    origins.of_trainer(two(lambda mine: mine))
    with pytest.raises(ganlab.RunError, match="The workers do not all have the same data and code"):
        origins.of_trainer(two(lambda mine: abs(mine) + 1))


def test_changed_environment_is_reported_and_not_refused(run, points, capsys, monkeypatch):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    origin = run.info["provenance"]
    origin["environment"] |= {"tensorflow": "1.0.0", "threads in an operation": 77, "\x1b[2J": "\x1b[2J"}
    run.update(provenance=origin)
    train(parts(points), run.path, resume=True)
    said = capsys.readouterr().err
    assert "tensorflow: '1.0.0', and now '2." in said
    assert "threads in an operation: 77, and now " in said
    assert "TF_ENABLE_ONEDNN_OPTS: not there, and now '0'" in said
    assert "\x1b[2J" not in said
    (again,) = run.info["resumed"]
    assert "threads in an operation: 77" in "".join(again["environment_changes"])
    assert again["environment"]["TF_ENABLE_ONEDNN_OPTS"] == "0"


FORGED = [
    {"provenance": {"data": 3, "code": [], "environment": None}},
    {"provenance": {"data": {}, "code": {"constraints.shrink": "\x1b[2J"}, "environment": {"keras": {"a": [[]]}}}},
    {"resumed": [3, None, {"data": "x"}]},
]


@pytest.mark.parametrize("forged", FORGED)
def test_forged_fingerprints_are_refused(run, points, forged):
    run.update(**forged)
    said = rf"run\.json: {next(iter(forged))}.* must be an object of fields"
    with pytest.raises(ganlab.RunError, match=said) as raised:
        train(parts(points), run.path, resume=True)
    assert str(raised.value).isprintable()


def test_a_run_without_fingerprints_is_resumed_with_a_note(run, points, capsys):
    origin = {name: value for name, value in run.info["provenance"].items() if name not in ("data", "code")}
    del origin["environment"]
    run.update(provenance=origin, resumed=[])
    train(parts(points), run.path, resume=True, stop_at=3)
    said = capsys.readouterr().err
    assert "The run does not record its data and code" in said
    assert json.dumps(run.info["resumed"][-1]["data"])
    other = points.copy()
    other[3] = 0
    refused(parts(other), run)


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


@pytest.mark.parametrize("given", [True, False], ids=["given", "left at their default"])
def test_resume_of_a_run_that_has_all_its_steps_is_refused(tmp_path, given):
    recipe = small(0).recipe
    if not given:
        recipe = replace(recipe, arguments={name: x for name, x in recipe.arguments.items() if name != "steps"})
    steps = config.flatten(recipe)["experiment.steps"]
    run = create_run(tmp_path / "run", config="", operative="", info={"status": "completed", "step": steps})
    (run.path / "checkpoints" / "step-00000040").mkdir(parents=True)
    with pytest.raises(ganlab.RunError, match="is completed: there is nothing to resume"):
        check_resumable(run, recipe, allow_changes=True)


def test_allowed_changes_are_said_and_recorded(tmp_path, capsys):
    run = train(small(0, steps=4, log_every=1), tmp_path / "run", stop_at=2)
    longer = small(0, steps=6, log_every=1)
    train(longer, run.path, resume=True, allow_changes=True, console=True)
    assert "Resumed with changes: experiment.steps: 4, and now 6." in "".join(capsys.readouterr())
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
    train(small(2, steps=4, log_every=3), run.path, resume=True, allow_changes=True)
    assert (run.info["status"], run.info["replicas"], run.info["strategy"]) == ("completed", 2, "MirroredStrategy")
