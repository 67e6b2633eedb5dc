"""A fork that is killed, at whatever moment: whole or not there, and never trained from step 0."""

import os
import shutil
import sys

import pytest
from short_rings import CONSTANT, RING, invoke, trained

import ganlab
from ganlab.runs import find_runs
from ganlab.runs.resuming import check_resumable
from ganlab.training.checkpoints import Checkpoints

pytestmark = pytest.mark.slow

# What Python reports before it makes, opens, renames or removes a file.
OPERATIONS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate"}


@pytest.fixture(scope="module")
def run(tmp_path_factory, cpus):
    return trained(tmp_path_factory.mktemp("killed"), CONSTANT)


@pytest.fixture(scope="module")
def moments(run, tmp_path_factory):
    """What a kill before each file operation of a fork would have left, and the fork itself."""
    place, kept = tmp_path_factory.mktemp("place"), tmp_path_factory.mktemp("kept")
    watching, found, number = [True], [], 0

    def watch(event, arguments):
        nonlocal number
        path = arguments[0] if arguments else None
        if watching[0] and event in OPERATIONS and isinstance(path, (str, os.PathLike)) and "twin" in str(path):
            watching[0] = False
            shutil.copytree(place, kept / str(number))
            found.append(kept / str(number))
            number += 1
            watching[0] = True

    sys.addaudithook(watch)
    twin = run.fork(place / "twin", at=11)
    watching[0] = False
    return found, twin


def test_a_fork_is_whole_at_every_moment_or_not_there(run, moments):
    found, _ = moments
    there = [[path.name for path in find_runs(folder)] for folder in found]
    assert there[0] == []
    assert there[-1] == ["twin"]
    assert len(found) > 20
    for folder, names in zip(found, there, strict=True):
        for name in names:
            left = ganlab.Run(folder / name)
            newest = Checkpoints(left.path / "checkpoints").latest_sound(print)
            assert newest is not None
            assert newest.step >= 11
            assert min(record.step for record in left.iter_metrics()) == 4
            if left.info["status"] != "completed":
                check_resumable(left, left.recipe(), allow_changes=False)


@pytest.mark.parametrize("moment", [0, 3])
def test_a_fork_killed_once_it_is_there_is_its_parent_when_resumed(run, moments, moment):
    found, twin = moments
    first = [folder for folder in found if list(find_runs(folder))][moment]
    info = ganlab.Run(first / "twin").info
    assert moment or (info["status"], info["step"], info["forked_from"]["step"]) == ("interrupted", 11, 11)
    invoke("run", "--resume", first / "twin")
    expected = (run.path / "metrics.jsonl").read_bytes()
    assert (first / "twin" / "metrics.jsonl").read_bytes() == expected == (twin.path / "metrics.jsonl").read_bytes()


@pytest.mark.parametrize("lost", ["never written", "removed", "damaged"])
def test_a_fork_without_a_sound_checkpoint_is_refused(moments, tmp_path, lost):
    _, twin = moments
    half = tmp_path / "half"
    shutil.copytree(twin.path, half)
    if lost == "damaged":
        for path in half.glob("checkpoints/*/variables.data*"):
            path.write_bytes(b"")
    else:
        shutil.rmtree(half / "checkpoints")
    left = ganlab.Run(half)
    left.update(status="interrupted", checkpointed=lost != "never written")
    before = (half / "metrics.jsonl").read_bytes()
    refused = invoke("run", "--resume", half, code=2)
    parent = twin.info["forked_from"]["run"]
    assert f"{half} is a fork of {parent} at step 11 and has no sound checkpoint" in refused.stderr
    assert f"ganlab fork {parent} --at 11" in refused.stderr
    assert (half / "metrics.jsonl").read_bytes() == before
    assert left.info["status"] == "interrupted"


def test_a_run_begins_again_with_the_weights_that_it_began_with(run, tmp_path, cpus):
    other = tmp_path / "other"
    shutil.copytree(run.path, other)
    begun = trained(tmp_path, f"{RING}optimizers.adam.schedule = 'constant'\nexperiment.start_from = '{other}'")
    assert begun.info["started_from"]["step"] == 23
    expected = (begun.path / "metrics.jsonl").read_bytes()
    # The other run goes on, and this one is killed before its first checkpoint.
    invoke("run", "--resume", other, "--param", "experiment.steps=25")
    assert begun.replay(8).differing == []
    shutil.rmtree(begun.path / "checkpoints")
    begun.update(status="interrupted", checkpointed=False)
    invoke("run", "--resume", begun.path)
    assert (begun.path / "metrics.jsonl").read_bytes() == expected
    # Where those weights are gone, nothing else is taken for them.
    shutil.rmtree(other / "checkpoints" / "step-00000023")
    shutil.rmtree(begun.path / "checkpoints")
    begun.update(status="interrupted", checkpointed=False)
    refused = invoke("run", "--resume", begun.path, code=2)
    assert "experiment.start_from" in refused.stderr
    assert "has no checkpoint of step 23" in refused.stderr
