"""What a sweep of a thousand trials costs beside them."""

import time

import pytest
from ganlab_sweep import Configurations, Sweep
from ganlab_sweep.engine import Engine
from ganlab_sweep.screen import LiveTable
from ganlab_sweep.search_driver import SearchDriver
from pretended import WEIGHT, End, PretendLauncher, Train

import ganlab

SECONDS, ROWS, JOBS = 60.0, 20, 100
RANGE = {WEIGHT: ganlab.Range(0.01, 10.0, log=True)}


class Minutes(PretendLauncher):
    """Each job logs 20 rows in a minute of the sweep's clock."""

    now = 0.0

    def start(self, *arguments, **options):
        return Minute(self, super().start(*arguments, **options))


class Minute(ganlab.Job):
    def __init__(self, launcher, job):
        self._launcher, self._job, self._began, self._row = launcher, job, launcher.now, 0

    def poll(self):
        row = int((self._launcher.now - self._began) / SECONDS * ROWS)
        if row == self._row and not self._job.stopped:
            return None
        self._row = row
        loss = self._launcher.started.index(self._job._name) % 7 + 1 / (row + 1)
        self._job._events = [Train(row, critic_loss=loss) if row <= ROWS else End()]
        return self._job.poll()

    def stop(self):
        self._job.stop()


@pytest.mark.parametrize("trials", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_search_early_stopping_and_report_cost_less_than_a_hundredth_of_the_trials(tmp_path, capsys, trials):
    pytest.importorskip("optuna", reason="optuna is of the extra [sweep]")
    asked = {"gin": ["quickstart"], "seeds": [0], "jobs": JOBS, "objective": "critic/loss", "budget": trials}
    info = {"folder": str(tmp_path), "threads": 1, "trials": {}, "proposals": [], "asked": {**asked, "maximize": False}}
    sweep, launcher = Sweep.create(tmp_path / "s", info, []), Minutes({})
    search = ganlab.component("searches", "optuna")(pruner="median")
    driver = SearchDriver(sweep, search, RANGE, Configurations(["quickstart"], [], list(RANGE), []))

    def wait(seconds):
        launcher.now += seconds

    begun = time.process_time()
    with LiveTable() as screen:
        engine = Engine(sweep, [], driver, launcher, screen=screen, clock=lambda: launcher.now, wait=wait)
        engine.run()
    cost = (time.process_time() - begun) / sum(trial.step / ROWS * SECONDS for trial in engine.trials)
    with capsys.disabled():
        print(f" {cost:.2%} of {trials} trials' time;", end="")
    assert len(engine.trials) == trials
    assert {trial.status for trial in engine.trials} <= {"completed", "pruned"}
    assert cost < 0.01
