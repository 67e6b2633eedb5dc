import errno
import os
import sys

import pytest
from ganlab_sweep import Sweep, take_up
from ganlab_sweep.sweeping import run_trials
from pretended import WEIGHT, End, PretendLauncher, Train, World, holding, statuses

import ganlab
from ganlab import ConfigError, ContractError, PluginError, RunError
from ganlab.run import Run


def test_every_trial_is_trained_once_and_no_more_than_jobs_at_a_time(sweep):
    launcher = PretendLauncher({})
    world = World(sweep(), launcher)
    assert world.run() == statuses("completed")
    assert launcher.started == ["a/s0", "a/s1", "b/s0", "b/s1"]
    assert launcher.most == 2
    assert launcher.closed == 1
    assert launcher.resumed == []


def test_a_trial_is_a_command_line_of_ganlab_run(sweep, tmp_path):
    launcher = PretendLauncher({})
    made = sweep(no_plugin=["other"], plugin_file="/there/ganlab_plugins.py")
    World(made, launcher).run()
    call = launcher.calls["b/s1"]
    assert call["command"] == [
        *(sys.executable, "-P", "-m", "ganlab", "run", "--gin", str(made.path / "trials" / "b.gin"), "--seed", "1"),
        *("--runs", str(made.path), "--name", "s1"),
        *("--no-plugin", "other", "--plugin-file", "/there/ganlab_plugins.py"),
    ]
    threads = dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "3")
    assert call["environment"] == {**threads, "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    assert call["folder"] == tmp_path
    assert call["log"] == made.path / "trials" / "b-s1.log"


def test_a_trial_whose_file_was_edited_is_not_trained(sweep):
    made = sweep()
    made.gin("a").write_text("# another experiment\n")
    with pytest.raises(RunError, match=r"a\.gin has changed since the sweep wrote it"):
        World(made, PretendLauncher({})).run()


def test_a_failed_trial_does_not_end_the_others_and_its_error_is_reported(sweep):
    traceback = "Traceback (most recent call last):\n  ...\nSegfaultError: it was mine"
    scripts = {
        "a/s0": [[End(2, None, said="Warning: x\nError: There is no data.")]],
        "a/s1": [[End(1, None, said=traceback)]],
        "b/s0": [[Train(3), End(1, "diverged", said="Error: critic/loss is not finite.\n")]],
    }
    world = World(sweep(), PretendLauncher(scripts))
    assert world.run() == {"a/s0": "failed", "a/s1": "failed", "b/s0": "diverged", "b/s1": "completed"}
    errors = [trial.error for trial in world.engine.trials]
    assert errors == ["There is no data.", "SegfaultError: it was mine", "critic/loss is not finite.", ""]


@pytest.mark.parametrize("lost", [137, 75], ids=["killed", "held by another process"])
def test_a_resumed_sweep_trains_what_is_left_and_nothing_twice(sweep, lost):
    made = sweep()
    scripts = {
        "a/s0": [[Train(10), End()]],
        "a/s1": [[Train(5), End(lost, "running")]],
        "b/s0": [[Train(5), End(1, "failed")]],
        "b/s1": [[End(2, None, said="Error: no.")]],
    }
    failed = statuses("failed", "b/s0", "b/s1")
    assert World(made, PretendLauncher(scripts)).run() == {"a/s0": "completed", "a/s1": "interrupted", **failed}
    finished = (made.run("a", 0) / "run.json").stat().st_mtime_ns
    again = PretendLauncher({})
    world = World(Sweep(made.path), again)
    assert world.run() == {"a/s0": "completed", "a/s1": "completed", **failed}
    assert again.started == again.resumed == ["a/s1"]
    assert [trial.error for trial in world.engine.trials][-1] == "no."
    assert (made.run("a", 0) / "run.json").stat().st_mtime_ns == finished
    retry = PretendLauncher({})
    assert World(Sweep(made.path), retry, retry_failed=True).run() == statuses("completed")
    assert retry.started == ["b/s0", "b/s1"]
    assert retry.resumed == ["b/s0"]  # the other left no run
    assert World(Sweep(made.path), nothing := PretendLauncher({})).run() == statuses("completed")
    assert nothing.started == []


def test_a_stopped_sweep_asks_all_jobs_to_save_and_starts_no_more(sweep):
    made = sweep()
    # At its fourth look, after 0.9 s.
    launcher = PretendLauncher({}, default=[Train(step) for step in range(1, 100)])
    world = World(made, launcher, stop_at=0.9)
    assert world.run() == {**statuses("interrupted", "a/s0", "a/s1"), **statuses("queued", "b/s0", "b/s1")}
    assert launcher.started == ["a/s0", "a/s1"]
    assert [trial.error for trial in world.engine.trials] == [""] * 4
    assert Run(made.run("a", 0)).info["status"] == "interrupted"


def test_a_run_that_an_earlier_process_finishes_is_not_started(sweep):
    made = sweep(configurations=["a"], seeds=[0], jobs=1)
    World(made, PretendLauncher({"a/s0": [[Train(5), End(143, "interrupted")]]})).run()
    with holding(made.run("a", 0)) as let_go:

        def during(world):
            Run(made.run("a", 0)).update(status="completed")
            let_go()

        launcher = PretendLauncher({})
        assert World(Sweep(made.path), launcher, during=during).run() == {"a/s0": "completed"}
    assert launcher.started == []


def test_a_process_that_ends_in_the_middle_as_if_all_were_well_is_named_by_its_exit_status(sweep):
    launcher = PretendLauncher({"a/s0": [[Train(3), End(0, "running", said="Tracing ...")]]})
    world = World(sweep(), launcher)
    assert world.run()["a/s0"] == "failed"
    assert world.engine.trials[0].error == "its process ended with exit status 0"


def test_a_folder_that_cannot_be_written_is_named_after_the_trials_saved(sweep, monkeypatch):
    launcher = PretendLauncher({}, default=[Train(step) for step in range(1, 50)])
    made = sweep()
    world = World(made, launcher)

    def show(trials):
        if launcher.running:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(world.engine._screen, "show", show)
    with pytest.raises(RunError, match=r"cannot be written: .*No space left on device.* --resume "):
        world.run()
    assert not launcher.running


SPACE = os.strerror(errno.ENOSPC)


@pytest.mark.parametrize(
    "end",
    [
        End(1, "failed", said=f"Error: a/s1 cannot be written: [Errno 28] {SPACE}. Fix that and resume"),
        End(1, "running", said=f"Error: a/s1 cannot be written: [Errno 28] {SPACE}. Fix that and resume"),
        End(2, None, said=f"Error: The run's directory a/s1 cannot be created: {SPACE}. Choose another --runs."),
        End(1, "failed", said=f"Error: Training failed after step 3: x.tmp; {os.strerror(errno.EDQUOT)}."),
    ],
    ids=["failed", "cannot be recorded", "before the run", "quota"],
)
def test_full_disk_stops_the_sweep_and_resuming_trains_what_failed(sweep, end):
    made = sweep(["a"], seeds=[0, 1, 2], jobs=2)
    first = [] if end.status is None else [Train(3)]
    launcher = PretendLauncher({"a/s1": [[*first, end]]}, default=[Train(step) for step in range(1, 30)])
    with pytest.raises(RunError, match=r"^a/s1 failed because the disk is full: .* resume, .*: ganlab sweep --resume "):
        World(made, launcher).run()
    assert launcher.started == ["a/s0", "a/s1"]
    assert not launcher.running
    launcher = PretendLauncher({})
    assert World(Sweep(made.path), launcher).run() == statuses("completed", "a/s0", "a/s1", "a/s2")


def test_full_disk_that_keeps_the_error_from_the_log_is_noticed(sweep, monkeypatch):
    made = sweep(["a"])
    monkeypatch.setattr("ganlab_sweep.trial.is_full", lambda folder: True)
    with pytest.raises(RunError, match=r"^a/s0 failed because the disk is full: its process ended with exit status 1"):
        World(made, PretendLauncher({"a/s0": [[Train(3), End(1, "running")]]})).run()
    monkeypatch.undo()
    assert World(Sweep(made.path), PretendLauncher({})).run() == statuses("completed", "a/s0", "a/s1")


@pytest.mark.parametrize("error", [SPACE, os.strerror(errno.EDQUOT), "There is not enough memory (OOM)."])
def test_trials_that_an_earlier_sweep_took_for_failed_are_trained(sweep, error):
    made = sweep(["a"])
    end = End(1, "failed", said="Error: the learning rate is too large")
    World(made, PretendLauncher({"a/s0": [[Train(3), end]], "a/s1": [[Train(3), end]]})).run()
    (run,) = (trial for trial in take_up(Sweep(made.path)) if trial.name == "a/s1")
    Run(run.run).update(error=f"runs/a/s1 cannot be written: {error}")
    launcher = PretendLauncher({})
    assert World(Sweep(made.path), launcher).run() == {"a/s0": "failed", "a/s1": "completed"}
    assert launcher.resumed == ["a/s1"]


@pytest.mark.parametrize("deaf", [False, True])
def test_a_launcher_that_fails_ends_the_sweep_after_the_others_saved(sweep, deaf):
    class Full(PretendLauncher):
        def start(self, command, **arguments):
            if len(self.started) == 2:
                raise ValueError("no room")
            return super().start(command, **arguments)

    made = sweep()
    launcher = Full({"a/s0": [[Train(step) for step in range(1, 5000)]]}, deaf=deaf)
    world = World(made, launcher)
    with pytest.raises(
        PluginError, match=r"Full failed in start: ValueError: no room.* is kept; to continue: ganlab sweep --resume "
    ):
        world.run()
    assert Run(made.run("a", 0)).info["status"] == "interrupted"
    assert (launcher.running, launcher.closed) == (set(), 1)
    assert world.now <= 150


class Listed(ganlab.Search):
    """Proposes a list, and remembers what was reported to it."""

    needs_objective = True

    def __init__(self, weights, give_up=lambda number, step, value: False):
        self.weights, self.give_up, self.reports = list(weights), give_up, []

    def start(self, space, *, budget, seed, direction, history=()):
        self.history = list(history)
        self.weights = self.weights[len(history) :]

    def propose(self):
        return {WEIGHT: self.weights.pop(0)} if self.weights else None

    def report(self, number, step, value):
        self.reports.append((number, step, value))
        return self.give_up(number, step, value)

    def finish(self, number, value):
        self.reports.append((number, "end", value))


def name(weight, seed):
    return f"gradient_penalty.weight={weight}/s{seed}"


def test_a_search_is_asked_when_there_is_room_and_gets_the_mean_over_seeds(sweep):
    made = sweep([], objective="critic/loss")
    search = Listed("12")
    scripts = {
        name(1, 0): [[Train(5, critic_loss=4.0), Train(10, critic_loss=1.0), End()]],
        name(1, 1): [[Train(5, critic_loss=2.0), Train(10, critic_loss=2.0), End()]],
        name(2, 0): [[Train(5, critic_loss=8.0), End(1, "diverged")]],
        name(2, 1): [[Train(5, critic_loss=6.0), Train(10, critic_loss=1.0), End()]],
    }
    launcher = PretendLauncher(scripts)
    World(made, launcher, search=search).run()
    assert launcher.most == 2
    assert search.reports == [(0, 5, 3.0), (0, 10, 1.5), (0, "end", 1.5), (1, 5, 7.0), (1, "end", None)]
    assert [proposal.value for proposal in made.proposals] == [1.5, None]
    assert Sweep(made.path).proposals == made.proposals


def test_configurations_that_a_search_gives_up_stay_stopped(sweep):
    made = sweep([], objective="critic/loss", jobs=1)
    search = Listed("12", give_up=lambda number, step, value: value > 5)
    scripts = {name(1, 0): [[Train(5, critic_loss=4.0), Train(6, critic_loss=9.0), Train(7, critic_loss=1.0), End()]]}
    launcher = PretendLauncher(scripts, default=[Train(10, critic_loss=1.0), End()])
    ended = World(made, launcher, search=search).run()
    of_one, of_two = ([name(weight, seed) for seed in (0, 1)] for weight in (1, 2))
    assert ended == {**statuses("pruned", *of_one), **statuses("completed", *of_two)}
    assert Run(made.run("gradient_penalty.weight=1", 0)).info["status"] == "interrupted"
    assert search.reports[:3] == [(0, 5, 4.0), (0, 6, 9.0), (0, "end", 9.0)]
    again = PretendLauncher({})
    search = Listed("12")
    assert World(Sweep(made.path), again, search=search, retry_failed=True).run() == ended
    assert again.started == []
    one, two = search.history
    assert (one.value, one.ended, one.given_up, one.reports) == (9.0, True, True, [(5, 4.0), (6, 9.0)])
    assert (two.value, two.ended, two.given_up, two.reports) == (1.0, True, False, [(10, 1.0)])


def test_what_a_run_writes_after_it_is_given_up_does_not_reach_the_search(sweep):
    """How much that is depends on how fast its process ends."""
    made = sweep([], objective="critic/loss", jobs=1, seeds=[0], budget=2)
    script = [Train(5, critic_loss=9.0), Train(6, critic_loss=8.0), Train(7, critic_loss=7.0), End(0)]
    launcher = PretendLauncher({name(1, 0): [script]}, deaf=True)
    search = Listed("12", give_up=lambda number, step, value: value > 5)
    assert World(made, launcher, search=search).run()[name(1, 0)] == "completed"  # it did not hear the signal
    assert search.reports[:2] == [(0, 5, 9.0), (0, "end", 9.0)]
    one = made.proposals[0]
    assert (one.value, one.given_up, one.last_step) == (9.0, True, 5)
    again = Listed("12")
    World(Sweep(made.path), PretendLauncher({}), search=again).run()
    assert again.history[0].reports == [(5, 9.0)]
    assert again.history[0].given_up


def test_the_last_rows_of_a_short_run_reach_the_search(sweep):
    made = sweep([], objective="critic/loss", jobs=1, seeds=[0], budget=1)
    launcher = PretendLauncher({name(1, 0): [[[Train(5, critic_loss=4.0), Train(6, critic_loss=9.0), End()]]]})
    search = Listed("1", give_up=lambda number, step, value: value > 5)
    World(made, launcher, search=search).run()
    assert search.reports == [(0, 5, 4.0), (0, 6, 9.0), (0, "end", 9.0)]
    assert made.proposals[0].given_up


def test_a_sweep_that_is_killed_as_it_gives_up_reports_the_same_when_it_is_resumed(sweep):
    made = sweep([], objective="critic/loss", jobs=1, seeds=[0], budget=2)
    script = [Train(5, critic_loss=4.0), Train(6, critic_loss=9.0), Train(7, critic_loss=1.0), End(137, "running")]
    search = Listed("12", give_up=lambda number, step, value: value > 5)

    def killed(world):
        if made.proposals[0].given_up:
            raise KeyboardInterrupt

    world = World(made, PretendLauncher({name(1, 0): [script]}, deaf=True), search=search, during=killed)
    with pytest.raises(KeyboardInterrupt):
        world.run()
    reopened, again = Sweep(made.path), Listed("12")
    World(reopened, PretendLauncher({}), search=again).run()
    (one,) = again.history
    assert (one.reports, one.given_up, one.ended) == ([(5, 4.0), (6, 9.0)], True, False)
    assert again.reports[0] == (0, "end", 9.0)
    assert reopened.proposals[0].value == 9.0


def test_runs_that_train_one_after_another_report_the_same_when_resumed(sweep):
    first = [Train(5, critic_loss=4.0), Train(10, critic_loss=1.0), End()]
    second, last = Train(5, critic_loss=8.0), Train(10, critic_loss=3.0)
    whole, cut = (sweep([], objective="critic/loss", jobs=1, seeds=[0, 1], budget=1, name=n) for n in ("w", "c"))
    undisturbed = Listed("1")
    scripts = {name(1, 0): [first], name(1, 1): [[second, last, End()]]}
    World(whole, PretendLauncher(scripts), search=undisturbed).run()
    assert undisturbed.reports == [(0, 5, 4.0), (0, 10, 1.0), (0, "end", 2.0)]
    scripts = {name(1, 0): [first], name(1, 1): [[second, End(137, "running")], [last, End()]]}
    launcher = PretendLauncher(scripts)
    World(cut, launcher, search=Listed("1")).run()
    resumed = Listed("1")
    World(Sweep(cut.path), launcher, search=resumed).run()
    assert resumed.reports == undisturbed.reports


@pytest.mark.parametrize("proposed", [5, ["a"], {WEIGHT: 1.0}, {1: "1"}], ids=repr)
def test_a_proposal_that_is_no_mapping_of_texts_is_named(sweep, proposed):
    class Wrong(Listed):
        def propose(self):
            return proposed

    world = World(sweep([], objective="critic/loss"), PretendLauncher({}), search=Wrong(""))
    with pytest.raises(ContractError, match=r"Wrong returned .* from propose; it must be a mapping"):
        world.run()


def test_resume_restores_the_search(sweep):
    made = sweep([], objective="critic/loss", seeds=[0], budget=3)
    launcher = PretendLauncher({name(2, 0): [[Train(5, critic_loss=5.0), End(137, "running")]]})
    World(made, launcher, search=Listed("1234")).run()
    assert launcher.started == [name(1, 0), name(2, 0), name(3, 0)]  # and the budget's end
    search, again = Listed("1234"), PretendLauncher({})
    World(Sweep(made.path), again, search=search).run()
    known = [(each.settings[WEIGHT], each.value, each.ended) for each in search.history]
    assert known == [("1", 1.0, True), ("2", None, False), ("3", 1.0, True)]
    assert again.resumed == again.started == [name(2, 0)]
    assert search.reports[-1] == (1, "end", 1.0)


def test_proposals_that_give_the_same_experiment_share_its_runs(sweep):
    made = sweep([], objective="critic/loss", seeds=[0], budget=5)
    search, launcher = Listed(["1", "1", "2", "1"]), PretendLauncher({})
    World(made, launcher, search=search).run()
    assert launcher.started == [name(1, 0), name(2, 0)]
    assert {report for report in search.reports if report[1] == "end"} == {(number, "end", 1.0) for number in range(4)}
    assert [each.configuration for each in made.proposals] == [f"gradient_penalty.weight={weight}" for weight in "1121"]


def test_an_invalid_proposal_has_failed(sweep):
    made = sweep([], objective="critic/loss", seeds=[0])
    search, launcher = Listed(["many", "2"]), PretendLauncher({})
    World(made, launcher, search=search).run()
    assert launcher.started == [name(2, 0)]
    assert search.reports[0] == (0, "end", None)
    assert "must be float" in made.proposals[0].error


def test_an_objective_that_no_run_has_ends_a_search(sweep):
    made = sweep([], objective="critic/los", seeds=[0])
    with pytest.raises(RunError, match=r"has no metric 'critic/los'. Did you mean 'critic/loss'\?"):
        World(made, PretendLauncher({}), search=Listed("1")).run()


def test_a_configuration_without_the_objective_ends_without_a_value(sweep):
    search = Listed("12")
    scripts = {name(2, 0): [[Train(5, generator_loss=1.0), End()]]}
    launcher = PretendLauncher(scripts, default=[Train(5, critic_loss=1.0), End()])
    World(sweep([], objective="critic/loss", seeds=[0], jobs=1), launcher, search=search).run()
    assert search.reports[-1] == (1, "end", None)


def test_a_search_that_has_ended_needs_no_experiment_file(sweep):
    made = sweep([], objective="critic/loss", seeds=[0], budget=2)
    ended = World(made, PretendLauncher({}), search=Listed("12")).run()
    made.info["asked"]["gin"] = ["gone.gin"]
    made.save()
    assert {one.name: one.status for one in run_trials(Sweep(made.path), PretendLauncher({}), Listed("12"))} == ended


def test_a_failing_search_is_named(sweep):
    class Broken(Listed):
        def propose(self):
            raise KeyError("x")

    with pytest.raises(PluginError, match=r"Broken failed in propose: KeyError: 'x' \(test_sweep_engine\.py:\d+\)"):
        World(sweep([]), PretendLauncher({}), search=Broken("")).run()


def test_refusals_of_a_search_pass_as_they_are(sweep):
    class Choosy(Listed):
        def start(self, space, **others):
            raise ConfigError("not so")

    with pytest.raises(ConfigError, match=r"^not so$"):
        World(sweep([]), PretendLauncher({}), search=Choosy(""))
