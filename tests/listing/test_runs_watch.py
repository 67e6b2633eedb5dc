"""What trains now: speeds and times left by a clock of the test, and files in any state."""

import json
import types

import pytest
from click.testing import CliRunner
from ganlab_runs import watching
from ganlab_runs.watching import Watcher

from ganlab.cli import cli


def row(step, loss=1.0):
    return json.dumps({"step": step, "metrics": {"critic/loss": {"reduced": loss, "replicas": []}}}) + "\n"


@pytest.fixture
def running(tmp_path, monkeypatch):
    """A run that trains as long as the list says so: its folder, and the list of statuses."""
    folder, statuses = tmp_path / "runs" / "a", ["running"]
    folder.mkdir(parents=True)
    info = {
        "status": "running",
        "step": 10,
        "steps": 100,
        "wall_seconds": 5.0,
        "timed_from": {"step": 0, "seconds": 0.0},
    }
    (folder / "run.json").write_text(json.dumps(info))
    (folder / "metrics.jsonl").write_text(row(20, 0.25))
    monkeypatch.setattr(watching, "status_of", lambda path, info, wait: statuses[0])
    return folder, statuses


def test_speed_is_that_between_two_rows(running):
    folder, _ = running
    now = 100.0
    watcher = Watcher(folder.parent, "critic/loss", lambda: now)
    (first,) = watcher.look()
    assert (first.step, first.steps, first.value) == (20, 100, 0.25)
    assert first.speed == pytest.approx(2.0)  # run.json: ten steps in five seconds
    now = 102.0
    assert watcher.look()[0].speed == pytest.approx(2.0)  # no new row
    (folder / "metrics.jsonl").write_text(row(20) + row(60, -3.0))
    now = 104.0
    (second,) = watcher.look()
    assert (second.step, second.value) == (60, -3.0)
    assert second.speed == pytest.approx(10.0)
    assert second.seconds_left == pytest.approx(4.0)


def test_a_figure_that_the_last_row_lacks_is_that_of_run_json(running):
    folder, _ = running
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**info, "evaluation": {"mode_coverage/modes": 6.0}}))
    assert [Watcher(folder.parent, tag).look()[0].value for tag in ("modes", "critic/loss")] == [6.0, 0.25]


@pytest.mark.parametrize("timed", [None, {"step": 10, "seconds": 5.0}, {"step": "x"}, {"step": 1}, 3])
def test_there_is_no_speed_until_steps_after_the_first_are_timed(running, timed):
    folder, _ = running
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**info, "timed_from": timed}))
    (found,) = Watcher(folder.parent, "critic/loss").look()
    assert (found.speed, found.seconds_left) == (None, None)


def test_a_speed_leaves_out_the_first_steps(running):
    folder, _ = running
    info = json.loads((folder / "run.json").read_text())
    info |= {"step": 0, "wall_seconds": 0.0, "timed_from": None}
    (folder / "run.json").write_text(json.dumps(info))
    (folder / "metrics.jsonl").unlink()
    now = 100.0
    watcher = Watcher(folder.parent, "critic/loss", lambda: now)
    assert watcher.look()[0].speed is None
    now = 160.0
    info |= {"step": 21, "wall_seconds": 61.0, "timed_from": {"step": 1, "seconds": 51.0}}
    (folder / "run.json").write_text(json.dumps(info))
    assert watcher.look()[0].speed == pytest.approx(2.0)  # not 21 steps in a minute
    now = 165.0
    (folder / "metrics.jsonl").write_text(row(41))
    assert watcher.look()[0].speed == pytest.approx(4.0)


def test_a_run_that_ends_is_shown_with_its_end(running):
    folder, statuses = running
    watcher = Watcher(folder.parent, "critic/loss")
    watcher.look()
    statuses[0] = "completed"
    assert [one.status for one in watcher.look()] == ["completed"]
    assert Watcher(folder.parent, "critic/loss").look() == []


@pytest.mark.parametrize(
    "text",
    ["", "\n", "not json\n", '{"step": "x"}\n', "x" * 3_000_000, row(5).strip(), '{"step": 1e400, "metrics": {}}\n'],
)
def test_any_file_has_a_progress(running, text):
    folder, _ = running
    (folder / "metrics.jsonl").write_text(text)
    (found,) = Watcher(folder.parent, "critic/loss").look()
    assert (found.step, found.value) == (10, None)


def test_a_link_out_of_the_run_is_not_read(running, tmp_path):
    folder, _ = running
    (tmp_path / "elsewhere").write_text(row(90))
    (folder / "metrics.jsonl").unlink()
    (folder / "metrics.jsonl").symlink_to(tmp_path / "elsewhere")
    assert Watcher(folder.parent, "critic/loss").look()[0].step == 10


def test_runs_that_cannot_be_read_are_left_out(running):
    folder, _ = running
    (folder.parent / "b").mkdir()
    (folder.parent / "b" / "run.json").write_text("{")
    assert [one.path.name for one in Watcher(folder.parent, "critic/loss").look()] == ["a"]


def command(*words):
    result = CliRunner().invoke(cli, ["runs", "watch", *map(str, words)])
    assert result.exit_code == (0 if words and words[0].exists() else 2), result.output
    return result.output


def test_the_command_looks_once_or_until_the_end(running, tmp_path, monkeypatch):
    folder, statuses = running
    assert "20/100" in command(folder.parent, "--once")
    (found,) = json.loads(command(folder.parent, "--json"))
    assert (found["step"], found["seconds_left"]) == (20, 40.0)

    def ends(seconds):
        statuses[0] = "completed"
        (folder / "metrics.jsonl").write_text(row(100, 0.5))

    # Its own clock alone: threads that an earlier test left may sleep, too.
    monkeypatch.setattr("ganlab_runs.watch_command.time", types.SimpleNamespace(sleep=ends))
    said = command(folder.parent).splitlines()
    assert len(said) == 2
    assert said[0].endswith("running, step 20/100, 2 steps/s, 40 s left, critic/loss 0.25")
    assert said[1].endswith("completed, step 100/100, critic/loss 0.5")
    assert "Nothing trains at or below" in command(folder.parent)
    assert "There is no folder" in command(tmp_path / "none")


def test_names_cannot_write_to_the_terminal(running):
    folder, _ = running
    folder.rename(folder.with_name("a\x1b[31m\nb"))
    watching_all = folder.parent
    assert "\x1b" not in command(watching_all, "--once", "--metric", "a\x1b[31m")
