"""Runs whose clock is set back, for example by a time server, during training and before a resume."""

import itertools
import time

import numpy as np
import pytest
from small import small
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from whole_runs import lines

from ganlab.run import train

pytestmark = pytest.mark.usefixtures("cpus")


def test_clock_set_back_keeps_rows_and_events_in_order(tmp_path, monkeypatch):
    hours = itertools.count(2_000_000_000, -3600)
    monkeypatch.setattr(time, "time", lambda: float(next(hours)))
    options = {"log_every": 1, "checkpoint_every": 2}

    run = train(small(0, steps=4, **options), tmp_path / "run")
    first = run.info["wall_seconds"]
    train(small(0, steps=8, **options), run.path, resume=True, allow_changes=True)

    assert 0 <= first <= run.info["wall_seconds"] < 600
    assert [line["step"] for line in lines(run)] == list(range(1, 9))
    # In the order in which TensorBoard reads them, by the names of the files.
    tag = "critic/loss"
    read = EventAccumulator(str(run.path)).Reload().Scalars(tag)
    assert [event.step for event in read] == list(range(1, 9))
    written = [line["metrics"][tag]["reduced"] for line in lines(run)]
    np.testing.assert_allclose([event.value for event in read], written, rtol=1e-6)
    assert len(list(run.path.glob("events.out.tfevents.*"))) == 2
