"""A dry run checks the names of runs and sweeps like the command itself."""

import pytest
from click.testing import CliRunner

from ganlab.cli import cli

FOLDERS = {("run",): "runs/exp", ("sweep", "--seeds", "0"): "runs"}


@pytest.fixture
def ganlab(tmp_path, monkeypatch):
    """Runs a command line with an experiment file of this name: `ganlab("exp.gin", "run")` returns click's result."""
    monkeypatch.chdir(tmp_path)

    def run(file, *arguments):
        (tmp_path / file).write_text("include 'quickstart.gin'\n")
        return CliRunner().invoke(cli, [*arguments, "--gin", file])

    return run


@pytest.mark.parametrize("command", FOLDERS, ids=lambda command: command[0])
@pytest.mark.parametrize("name", ["../x", "a\nb", "", "taken"], ids=ascii)
def test_dry_run_refuses_the_same_names_as_the_command(ganlab, tmp_path, command, name):
    (tmp_path / FOLDERS[command] / "taken").mkdir(parents=True)
    planned = ganlab("exp.gin", *command, "--name", name, "--dry-run")
    done = ganlab("exp.gin", *command, "--name", name)
    assert planned.exit_code == done.exit_code == 2
    assert planned.stderr == done.stderr
    assert planned.stdout == done.stdout == ""
    assert "Invalid " in done.stderr or "already" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exp.gin", "runs"]
