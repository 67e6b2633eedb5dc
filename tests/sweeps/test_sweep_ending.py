"""Trials end with their sweep, or at the time limit, even if they ignore signals; awaited processes are named."""

import io
from dataclasses import replace

import pytest
from ganlab_sweep import Sweep
from ganlab_sweep.screen import LiveTable, as_data, summary
from pretended import End, PretendLauncher, Train, World, holding

import ganlab
from ganlab.run import Run

TRAINING = [Train(step) for step in range(1, 5000)]


@pytest.fixture
def one(sweep):
    def one(**asked):
        return sweep(configurations=["a"], seeds=[0], jobs=1, **asked)

    return one


@pytest.mark.parametrize("grace", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_a_trial_that_ignores_signals_is_killed_after_its_launchers_grace(one, grace):
    launcher = PretendLauncher({}, default=TRAINING, deaf=True)
    launcher.grace_seconds = float(grace)
    world = World(one(), launcher, stop_at=1.0)
    assert world.run() == {"a/s0": "interrupted"}
    assert grace <= world.now <= grace + 60
    (trial,) = world.engine.trials
    assert trial.error == f"it ignored SIGTERM for {grace} s and was killed"


def test_a_sweep_ends_without_a_trial_that_cannot_be_killed_and_reports_it(one):
    world = World(one(), PretendLauncher({}, default=TRAINING, deaf="immortal"), stop_at=1.0)
    assert world.run() == {"a/s0": "interrupted"}
    (trial,) = world.engine.trials
    assert world.now <= 150
    assert "it has not ended 120 s after it was asked to" in trial.error
    assert f"lock.json in {trial.run}" in trial.error


def test_a_launcher_without_kill_does_not_block_a_sweep(one):
    class Job(ganlab.Job):
        def poll(self):
            return None

        def stop(self):
            pass

    class Launcher(ganlab.Launcher):
        def start(self, command, *, environment, folder, log):
            return Job()

    world = World(one(), Launcher(), stop_at=1.0)
    assert world.run() == {"a/s0": "interrupted"}


@pytest.mark.parametrize("deaf", [False, True])
def test_timeout_limits_a_trial(sweep, deaf):
    made = sweep(configurations=["a", "b"], seeds=[0], jobs=1, timeout=30.0)
    scripts = {"a/s0": [TRAINING]}
    world = World(made, PretendLauncher(scripts, deaf=deaf))
    assert world.run() == {"a/s0": "timed out", "b/s0": "completed"}
    trial = world.engine.trials[0]
    assert trial.error.startswith("it has run for 30 s; the limit is 30 s")
    assert ("and was killed" in trial.error) is deaf
    assert as_data(trial)["status"] == "timed out"
    assert "1 completed, 1 timed out of 2 trials" in summary(world.engine.trials)

    # It has ended, unless it is to be tried again.
    launcher = PretendLauncher({})
    assert World(Sweep(made.path), launcher).run()["a/s0"] == "timed out"
    assert launcher.started == []
    again = Sweep(made.path)
    again.request = replace(again.request, timeout=100.0)
    assert World(again, launcher, retry_failed=True).run()["a/s0"] == "completed"
    assert launcher.resumed == ["a/s0"]


def test_timeout_counts_the_time_of_earlier_processes(one):
    made = one(timeout=30.0)
    World(made, PretendLauncher({"a/s0": [[Train(5), End(143, "interrupted")]]})).run()
    Run(made.run("a", 0)).update(wall_seconds=25.0)
    world = World(Sweep(made.path), PretendLauncher({}, default=TRAINING))
    assert world.run() == {"a/s0": "timed out"}
    assert world.now < 10

    Run(made.run("a", 0)).update(wall_seconds=31.0)
    launcher = PretendLauncher({})
    world = World(Sweep(made.path), launcher, retry_failed=True)
    assert world.run() == {"a/s0": "timed out"}
    assert launcher.started == [], "it has no time left"
    assert world.engine.trials[0].error == "it has run for 31 s; the limit is 30 s"


def test_a_search_continues_after_a_trial_timed_out(sweep):
    made = sweep(timeout=3.0, objective="critic/loss")
    world = World(made, PretendLauncher({"a/s0": [TRAINING], "a/s1": [TRAINING]}))
    assert set(world.run().values()) == {"timed out", "completed"}
    ended = {proposal.configuration: proposal for proposal in made.proposals}
    assert (ended["a"].ended, ended["a"].value) == (True, None)
    assert ended["b"].value == 1.0


def test_the_process_that_is_waited_for_is_named(one):
    made = one()
    World(made, PretendLauncher({"a/s0": [[Train(5), End(143, "interrupted")]]})).run()
    stream = io.StringIO()
    with holding(made.run("a", 0)) as let_go:
        seen = []

        def during(world):
            seen.append(world.engine.trials[0].error)
            LiveTable(stream).show(world.engine.trials)
            if world.now > 3:
                let_go()

        launcher = PretendLauncher({})
        world = World(Sweep(made.path), launcher, during=during)
        assert world.run() == {"a/s0": "completed"}
    assert world.screen.changes[0] == {"a/s0": "waiting"}
    assert launcher.resumed == ["a/s0"]
    assert seen[0] == "held by another process"
    assert "a/s0: waiting: held by another process" in stream.getvalue()
    assert world.engine.trials[0].error == ""


def test_a_process_that_only_holds_a_run_is_not_waited_for_for_ever(sweep):
    made = sweep(configurations=["a", "b"], seeds=[0], jobs=1)
    World(made, PretendLauncher({"a/s0": [[Train(5), End(143, "interrupted")]]})).run()
    made.info["trials"].clear()
    with holding(made.run("a", 0)):
        world = World(Sweep(made.path), PretendLauncher({}))
        assert world.run() == {"a/s0": "interrupted", "b/s0": "completed"}
    error = world.engine.trials[0].error
    assert f"another process holds {made.run('a', 0)} and has written nothing there for 300 s: end it first" in error


@pytest.mark.slow
def test_a_process_that_trains_is_waited_for_as_long_as_it_takes(one):
    made = one()
    World(made, PretendLauncher({"a/s0": [[Train(5), End(143, "interrupted")]]})).run()
    with holding(made.run("a", 0)) as let_go:

        def during(world):
            Run(made.run("a", 0)).update(step=int(world.now))
            if world.now > 700:
                let_go()

        world = World(Sweep(made.path), PretendLauncher({}), during=during)
        assert world.run() == {"a/s0": "completed"}
    assert world.now > 700
