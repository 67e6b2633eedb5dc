import io

import pytest
from command_lines import Terminal
from ganlab_sweep import Sweep, Trial
from ganlab_sweep.output import print_end
from ganlab_sweep.screen import LiveTable, as_data, summary, table

from ganlab.runs import create_run


@pytest.fixture
def sweep(tmp_path):
    return Sweep.create(tmp_path / "s", {"asked": {}, "proposals": [], "trials": {}}, [])


@pytest.fixture
def trials(sweep):
    """Makes trials of the configuration a, one for each status."""

    def trials(*statuses):
        return [Trial(sweep, "a", seed, "critic/loss", status=status) for seed, status in enumerate(statuses)]

    return trials


def drawn(trials):
    from rich.console import Console

    screen = Console(width=100, file=io.StringIO())
    screen.print(table(trials))
    return screen.file.getvalue().splitlines()


def test_a_table_lists_a_configuration_once_and_its_known_values(trials):
    first, second = trials("running", "queued")
    first.step, first.steps, first.value, first.seconds = 30, 60, -1.23456, 185.0
    head, one, two = (line.split() for line in drawn([first, second]))
    assert head == ["configuration", "seed", "status", "step", "critic/loss", "health", "warnings", "time"]
    assert one == ["a", "0", "running", "30/60", "-1.235", "3", "min", "5", "s"]
    assert two == ["1", "queued"]


def test_a_long_metric_leaves_room_for_the_configuration(trials):
    (trial,) = trials("completed")
    trial.tag, trial.configuration = "evaluation/mode_coverage/reverse_kl", "gradient_penalty.weight=9.1066"
    first, second, head, row = drawn([trial])
    assert (first.split(), second.split()) == (["evaluation/"], ["mode_coverage/"])
    assert head.split()[4] == "reverse_kl"
    assert row.startswith("gradient_penalty.weight=9.1066 ")
    trial.configuration += ",critic_steps=5,betas=(0, 0.9)"
    assert [row.split("  ")[0].strip() for row in drawn([trial])[3:]] == [
        "gradient_penalty.weight=9.1066,",
        "critic_steps=5, betas=(0, 0.9)",
    ]


def test_health_and_warnings_of_trials_are_columns_fields_and_words(trials):
    sick, sound, old = trials("completed", "completed", "completed")
    sick.health, sick.warnings = ("gradient_penalty: The slope is 138.",), ("a", "b")
    sound.health = ()
    cells = [line.split() for line in drawn([sick, sound, old])]
    assert cells[0][5:7] == ["health", "warnings"]
    assert [row[-2:] for row in cells[1:3]] == [["gradient_penalty", "2"], ["ok", "0"]]
    assert cells[3] == ["2", "completed"]
    assert summary([sick, sound, old]) == "3 completed of 3 trials, 1 unhealthy"
    assert as_data(sick)["health"] == ("gradient_penalty: The slope is 138.",)
    assert as_data(sick)["warnings"] == ("a", "b")
    assert as_data(old)["health"] is None
    stream = io.StringIO()
    with LiveTable(stream) as screen:
        screen.show([sick, sound])
    assert stream.getvalue().splitlines() == ["a/s0: completed, unhealthy: gradient_penalty", "a/s1: completed"]


def test_a_trial_that_was_changed_midway_is_marked(sweep, trials, capsys):
    both, changes = trials("queued", "queued"), ["experiment.steps: 1, and now 2", "data of datasets.digits"]
    for trial, resumed in zip(both, ([], [{"step": 20, "changes": changes}]), strict=True):
        create_run(trial.run, config="", operative="", info={"status": "completed", "resumed": resumed})
        trial.look()
    assert [line.split()[:2] for line in drawn(both)[1:]] == [["a", "0"], ["1", "!"]]
    assert [as_data(trial)["changes"] for trial in both] == [[], [{"step": 20, "what": tuple(changes)}]]
    print_end(sweep, both, interrupted=False, as_json=False)
    assert f"! a/s1 changed midway, at step 20 ({'; '.join(changes)})" in capsys.readouterr().err


def test_names_are_not_markup(trials):
    (trial,) = trials("running")
    trial.configuration = "x=[red]"
    assert "x=[red]" in drawn([trial])[1]


def test_without_a_terminal_every_change_is_one_line(trials):
    stream = io.StringIO()
    one, two = trials("queued", "queued")
    with LiveTable(stream) as screen:
        screen.show([one, two])
        one.status, one.steps = "running", 60
        screen.show([one, two])
        screen.show([one, two])
        one.status, one.step, one.seconds, one.value = "completed", 60, 12.0, 0.5
        two.status, two.error = "failed", "There is no data."
        screen.show([one, two])
    assert stream.getvalue().splitlines() == [
        "a/s0: running",
        "a/s0: completed at step 60/60 in 12.0 s, critic/loss 0.5",
        "a/s1: failed: There is no data.",
    ]


def test_at_a_terminal_the_table_keeps_to_the_height_and_goes_away(trials, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with LiveTable(stream) as screen:
        screen.show(trials(*["completed"] * 50, "running", *["queued"] * 49, "failed"))
        shown = stream.getvalue()
    # Ten lines less four: the trial at work, the one with trouble, and the first of those that ended.
    assert shown.count("completed") - shown.count("50 completed") == 4
    assert shown.count("running") - shown.count("1 running") == 1
    assert "50 completed, 1 running, 49 queued, 1 failed of 101 trials" in shown
    assert stream.getvalue().endswith("\x1b[2K")  # cleared: the last table is printed by itself


def test_the_time_left_follows_from_the_work_done_since_the_first_look(trials):
    now = [100.0]
    one, two, three, four = trials("completed", "running", "queued", "queued")
    two.steps = 100
    stream = Terminal()
    with LiveTable(stream, clock=lambda: now[0]) as screen:
        screen.show([one, two, three, four])
        assert "left" not in stream.getvalue()  # what an earlier process did says nothing about this one's speed
        two.step, now[0] = 50, 160.0
        screen.show([one, two, three, four])
        assert "about 5 min left" in stream.getvalue()  # half a trial in a minute, 2.5 to go
        for trial in (two, three, four):
            trial.status = "completed"
        before = len(stream.getvalue())
        screen.show([one, two, three, four])
        assert "left" not in stream.getvalue()[before:]
