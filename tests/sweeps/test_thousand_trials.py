"""What a sweep of a thousand trials costs beside them."""

import time

import pretended
import pytest
from ganlab_sweep.screen import LiveTable
from pretended import WEIGHT, End, PretendLauncher, Train, World

import ganlab

SECONDS, ROWS = 60, 20
POLLS = [None] * (10 * SECONDS // ROWS - 1)


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1000])
def test_search_early_stopping_and_report_cost_less_than_a_hundredth_of_the_trials(sweep, monkeypatch, capsys, trials):
    pytest.importorskip("optuna", reason="optuna is of the extra [sweep]")
    monkeypatch.setattr(pretended, "SPACE", {WEIGHT: ganlab.Range(0.01, 10.0, log=True)})
    made = sweep((), gin=["quickstart"], seeds=[0], jobs=100, objective="critic/loss", budget=trials)
    rows = [event for row in range(1, ROWS + 1) for event in (*POLLS, Train(row, critic_loss=1 / row))]
    search = ganlab.component("searches", "optuna")(pruner="median")
    begun = time.process_time()
    world = World(made, PretendLauncher({}, default=[*rows, End()]), search=search)
    with LiveTable() as world.engine._screen:
        ended = world.run()
    cost = (time.process_time() - begun) / (trials * SECONDS)
    with capsys.disabled():
        print(f" {cost:.2%} of the time of {trials} trials", end="")
    assert (len(ended), set(ended.values())) == (trials, {"completed"})
    assert cost < 0.01
