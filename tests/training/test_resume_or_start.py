"""A job that is repeated starts a run, resumes it, then leaves it alone, and so does one that begins beside it."""

import contextlib

import pytest
from small import small
from whole_runs import assert_equal_bits, train

import ganlab
from ganlab.errors import RunInUseError
from ganlab.runs import locked
from ganlab.training import start

pytestmark = pytest.mark.usefixtures("cpus")


@pytest.mark.parametrize("replicas", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_repeated_job_starts_resumes_and_leaves_a_run(tmp_path, monkeypatch, replicas):
    def experiment(**parts):
        return small(replicas, **{"steps": 4, "log_every": 1, "ema_decay": 0.5, **parts})

    def job(experiment):
        return ganlab.train(experiment, tmp_path / "job", resume_or_start=True)

    whole = train(experiment(), tmp_path / "whole")
    monkeypatch.setattr(start.train, "__kwdefaults__", {**start.train.__kwdefaults__, "stop_at": 2})
    assert job(experiment()).info["status"] == "interrupted"
    monkeypatch.undo()
    with pytest.raises(ganlab.RunError, match=r"experiment\.ema_decay: 0\.5, and now 0\.9"):
        job(experiment(ema_decay=0.9))
    run = job(experiment())
    assert (run.info["status"], run.info["resumed"][0]["step"]) == ("completed", 2)
    assert_equal_bits(run, whole)
    before = (run.path / "run.json").stat().st_mtime_ns
    assert job(experiment()).info["status"] == "completed"
    with pytest.raises(ganlab.RunError, match=r"experiment\.ema_decay: 0\.5, and now 0\.9"):
        job(experiment(ema_decay=0.9))
    assert (run.path / "run.json").stat().st_mtime_ns == before


def test_the_second_of_two_starts_leaves_the_run_to_the_first(tmp_path, monkeypatch):
    made, real = [], start.train

    def late(*arguments, **options):
        """Another process makes the folder after this one has found none."""
        if not made:
            made.append(real(*arguments, **options, stop_at=2))
            held.enter_context(locked(made[0]))
        return real(*arguments, **options)

    monkeypatch.setattr(start, "train", late)
    with contextlib.ExitStack() as held, pytest.raises(RunInUseError, match=r"is being trained by process \d+ on "):
        ganlab.train(small(0, steps=4), tmp_path / "run", resume_or_start=True)
    assert made[0].info["step"] == 2
