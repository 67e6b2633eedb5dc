"""A resumed run warns as an uninterrupted one does: each time once."""

import shutil

import pytest
from small import constraint, small
from whole_runs import Graph, texts

import ganlab

pytestmark = pytest.mark.usefixtures("cpus")


def clipped():
    """An experiment that warns of weights at their limits in its tenth row, and evaluates with no row since."""
    parts = {"constraints": [constraint("weight_clipping", limit=1e-4)], "steps": 14, "log_every": 1}
    return small(2, **parts, evaluate_every=6, checkpoint_every=4)


@pytest.fixture(scope="module")
def warning(cpus):
    return Graph(clipped())


@pytest.fixture(scope="module")
def warned(warning, tmp_path_factory):
    return warning.train(tmp_path_factory.mktemp("warned") / "run")


def assert_warned_as(run, other):
    warnings = other.info["warnings"]
    assert [warning.split(": ")[0] for warning in warnings] == ["weight_clipping", "critic/wasserstein"]
    assert texts(other, "warnings") == [(10, warning.encode()) for warning in warnings]
    assert other.info["health"] == run.info["health"] != []
    for tag in ("warnings", "health", "experiment"):
        assert texts(run, tag) == texts(other, tag)
    assert run.info["warnings"] == warnings


@pytest.mark.slow
@pytest.mark.parametrize("step", [8, 10, 12], ids=["before", "at the warning", "at an evaluation"])
def test_resumed_run_warns_like_an_uninterrupted_one(warning, warned, tmp_path, step):
    warning.train(tmp_path / "run", stop_at=step)
    assert_warned_as(warning.train(tmp_path / "run", resume=True), warned)


@pytest.mark.parametrize("kept", [["step-00000004", "step-00000008"], []], ids=["from before", "from the start"])
def test_a_killed_run_warns_again(warning, warned, tmp_path, kept):
    # run.json already has the warning, and its text is cut.
    folder = tmp_path / "run"
    shutil.copytree(warned.path, folder)
    for path in (folder / "checkpoints").iterdir():
        if path.name not in kept:
            shutil.rmtree(path)
    ganlab.Run(folder).update(status="running", checkpointed=bool(kept))
    assert_warned_as(warning.train(folder, resume=True), warned)
