"""A hostile run cannot affect another one: runs every command that reads runs, beside a valid run."""

import contextlib
import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner
from ganlab_runs.watching import Watcher
from ganlab_tensorboard.logfolder import LogFolder
from ganlab_tensorboard.plugin import GanlabTab
from hostile import ODDITIES, UNSAFE, folder, in_time
from werkzeug.test import Client
from werkzeug.wrappers import Response

from ganlab.cli import cli, completing
from ganlab.runs import find_runs, lock

# An overflow in a figure of the hostile run would print a warning about code.
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

SOUND, ODD = "20260801-120000-s0-aaaa", "20260801-130000-s0-bbbb"


# A run of 100,000 entries takes seconds.
LONG = ("many-metrics", "many-settings")


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in ODDITIES])
def runs(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lock, "_STILL_SECONDS", 0.1)
    yield folder(tmp_path, request.param).relative_to(tmp_path)
    # pytest cannot remove folders a thousand levels deep, and would end with a traceback.
    subprocess.run(["rm", "-rf", tmp_path / "runs"], check=True)


def ganlab(*arguments):
    """Runs a command; checks that it prints no traceback and no control characters, and returns its result."""
    with in_time():
        done = CliRunner().invoke(cli, [str(argument) for argument in arguments], env={"COLUMNS": "500"})
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code in (0, 2), done.output
    assert not set(UNSAFE) & set(done.output)
    assert not re.search(r"^\W*Error: forged", done.output, re.MULTILINE)
    if done.exit_code == 2:
        assert done.stdout == ""
        assert len(re.findall(r"^Error: ", done.stderr, re.MULTILINE)) == 1
    return done


def offered(name, option, run):
    """The shell completions for an option of a command on a run."""
    command = cli.get_command(click.Context(cli), name)
    parameter = next(one for one in command.params if option in one.opts)
    context = click.Context(command)
    context.args = [str(run)]
    with in_time():
        return [item.value for item in completing._completed(completing.completer(command, parameter), context, "")]


@pytest.mark.slow
def test_commands_show_the_valid_run_beside_a_hostile_one(runs, tmp_path):
    sound, odd = runs / "digits" / SOUND, runs / "digits" / ODD
    listed = ganlab("runs", "list", runs)
    assert listed.exit_code == 0
    assert re.search(rf"{SOUND} +completed +40/40", listed.stdout)
    assert ODD in listed.stdout
    rows = {Path(row["path"]).name: row for row in json.loads(ganlab("runs", "list", runs, "--json").stdout)}
    assert (rows[SOUND]["status"], rows[SOUND]["problem"]) == ("completed", None)

    compared = ganlab("compare", runs, "--all", "--html", "report.html", "--csv", "rows.csv")
    assert compared.exit_code == 0
    assert "-1.5" in compared.stdout or "critic" in compared.stdout
    assert not set(UNSAFE) & set((tmp_path / "report.html").read_text())
    assert "<script>alert" not in (tmp_path / "report.html").read_text()
    json.loads(ganlab("compare", runs, "--json").stdout)
    ganlab("compare", odd, "--metric", "critic/loss:min")

    assert ganlab("runs", "show", sound).exit_code == 0
    ganlab("runs", "show", odd)
    ganlab("runs", "show", odd, "--json")
    for name, option in (("compare", "--metric"), ("compare", "--by"), ("evaluate", "--checkpoint")):
        assert all(text.isprintable() for text in offered(name, option, odd))

    assert ganlab("runs", "archive", sound, "-o", "sound.tar.gz").exit_code == 0
    if sum(path.lstat().st_size for path in odd.iterdir()) < 1 << 32:  # otherwise it takes too long
        ganlab("runs", "archive", odd, "-o", "odd.tar.gz")
    ganlab("runs", "rm", odd, "--yes")
    assert sound.is_dir()
    assert not (tmp_path / "planted").exists()


def test_tab_shows_the_valid_run_beside_a_hostile_one(runs):
    tab = GanlabTab(SimpleNamespace(logdir=str(runs), flags=None))
    apps = tab.get_plugin_apps()

    def ask(route, code=200, **query):
        with in_time():
            answer = Client(apps[f"/data/{route}"], Response).get(f"/data/{route}", query_string=query)
        assert answer.status_code in ((200, 400) if code is None else (code,)), answer.data[:500]
        return json.loads(answer.data, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    def look():
        found = {run["name"]: run["id"] for run in ask("overview")["runs"]}
        for curve in (None, "critic/loss", "critic/loss:max", "constructor"):
            data = ask("compare", None, **({"curve": curve} if curve else {}))
            assert curve == "constructor" or "configurations" in data
        for name, run in found.items():
            assert ask("run", run=run)["id"] == run
            series = ask("series", code=200 if SOUND in name else None, run=run, tag=["critic/loss", "constructor"])
            assert SOUND not in name or series["series"]["critic/loss"]["values"] == [-1.5]
        return found, data

    look()
    with in_time():
        tab.store.finish()
    found, _ = look()
    assert tab.store.pending() == 0
    assert any(name.endswith(SOUND) for name in found)
    assert len(found) + len(tab.store.problems()) == 2
    with in_time():
        assert {one.path.name for one in Watcher(runs, "critic/loss").look()} == set()


def test_tensorboard_shows_the_valid_run_beside_a_hostile_one(runs, tmp_path):
    said = []
    with in_time(), contextlib.closing(LogFolder(lambda: find_runs(runs), said.append)) as shown:
        shown.refresh()
        shown.refresh()
        assert len(shown.names) == 2
        there = {path.resolve() for path in shown.path.iterdir()}
        assert (tmp_path / runs / "digits" / SOUND).resolve() in there
        for path in shown.path.iterdir():
            assert path.parent == shown.path
            assert path.name.isprintable()
            for at, _, files in os.walk(path, followlinks=True):
                assert Path(at).resolve().is_relative_to(tmp_path) or Path(at).is_relative_to(shown.path)
                assert len(Path(at).parts) < 60, "a circle of links"
                assert all((Path(at) / name).is_file() for name in files if "tfevents" in name)
                assert all((Path(at) / name).resolve().is_relative_to(tmp_path) for name in files)
        shown.refresh()
    assert all(sentence.count("\n") == 0 for sentence in said)


@pytest.mark.slow
def test_commands_that_act_on_a_run_refuse_a_hostile_one(runs, monkeypatch):
    from ganlab.errors import GanlabError
    from ganlab.run import Run
    from ganlab.training.loading import find_checkpoint

    odd = runs / "digits" / ODD
    with in_time(), contextlib.suppress(GanlabError):
        find_checkpoint(Run(odd)).damage()
    ganlab("run", "--resume", odd)
    ganlab("sample", odd, "-o", "samples.npz")
    ganlab("evaluate", odd)
    ganlab("export", odd, "-o", "exported")
