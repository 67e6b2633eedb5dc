"""Commands that plugins add: in help, on the command line, and where their names are taken."""

import json
import subprocess
import sys
import time
import types

import click
import pytest

import ganlab as package
from ganlab.plugins import manager as plugins

COMMAND = """
import click
import ganlab


@click.command()
@click.option("--times", default=1)
def greet(times):
    '''Greets somebody. At length.'''
    click.echo("hello " * times)


@click.command("run")
def mine():
    '''Runs what is mine.'''
    click.echo("mine")


@ganlab.hookimpl
def ganlab_register_commands(cli):
    cli.add_command(greet)
    cli.add_command(mine)
"""


@pytest.fixture
def local(here):
    """Writes the plugin file of the folder."""
    return lambda text: (here / "ganlab_plugins.py").write_text(text)


def test_commands_of_a_plugin_file_can_be_called(ganlab, local):
    local(COMMAND)
    assert ganlab("greet", "--times", "2").stdout == "hello hello \n"
    assert "Greets somebody. At length." in ganlab("greet", "--help").stdout


def test_help_lists_them(ganlab, local):
    local(COMMAND)
    text = ganlab("--help").stdout
    assert "Commands of plugins:" in text
    assert "\n  greet " in text
    assert "Greets somebody." in text
    assert "\n  ganlab_plugins.run  Runs what is mine." in text


def test_name_of_a_ganlab_command_is_reported_as_a_clash(ganlab, local):
    local(COMMAND)
    assert ganlab("ganlab_plugins.run").stdout == "mine\n"
    assert ganlab("ganlab_plugins.greet").stdout == "hello \n"
    assert "Missing experiment: pass --gin" in ganlab("run").stderr
    data = json.loads(ganlab("plugins", "--json").stdout)
    assert [(row["name"], row["summary"]) for row in data["commands"]] == [
        ("greet", "Greets somebody."),
        ("ganlab_plugins.run", "Runs what is mine."),
    ]
    (clash,) = data["clashes"]
    assert "'ganlab_plugins'" in clash
    assert "'ganlab run' remains ganlab's own command. Call 'ganlab ganlab_plugins.run'." in clash
    rows = [line.split() for line in ganlab("plugins").stdout.splitlines() if line.startswith("command ")]
    assert {(row[1], row[-1]) for row in rows} == {
        ("greet", "loaded"),
        ("ganlab_plugins.run", "loaded"),
        ("run", "clash"),
    }


def test_same_command_of_two_plugins_must_be_qualified(ganlab, here):
    found = plugins.use(plugins.Plugins())
    for name in ("one", "the-other"):
        hook = package.hookimpl(
            lambda cli, name=name: cli.add_command(click.Command("hi", callback=lambda: click.echo(name)))
        )
        found.add(
            plugins.Plugin(name, name, "1"),
            lambda hook=hook: types.SimpleNamespace(ganlab_register_commands=hook),
        )
    result = ganlab("hi")
    assert result.exit_code == 2
    assert "Several plugins add a command 'hi': 'one' of one 1 and 'the-other' of the-other 1. " in result.stderr
    assert "Call 'ganlab one.hi' or 'ganlab the_other.hi'." in result.stderr
    assert [ganlab(f"{name}.hi").stdout for name in ("one", "the_other")] == ["one\n", "the-other\n"]
    assert "No such command 'one.ho'. Did you mean 'one.hi'?" in ganlab("one.ho").stderr


def test_plugin_failing_to_add_commands_does_not_affect_others(ganlab, local):
    local(COMMAND.replace("    cli.add_command(mine)", "    raise SystemExit('first\\nsecond')"))
    result = ganlab("greet")
    assert result.stdout == "hello \n"
    assert "failed in ganlab_register_commands: SystemExit: first\nsecond" in result.stderr
    assert "\n  greet " in ganlab("--help").stdout


def test_help_does_not_wait_for_slow_plugins_or_tensorflow(here, local):
    heavy = "import tensorflow as tf\nfrom tensorflow.keras import layers\nclass L(layers.Layer): ...\nprint('noise')\n"
    local(heavy + COMMAND)
    command = [sys.executable, "-X", "importtime", "-m", "ganlab", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=here)
    assert "\n  greet " in done.stdout
    assert "noise" not in done.stdout
    assert "tensorflow" not in done.stderr
    local("import time\ntime.sleep(30)\n" + COMMAND)
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, cwd=here)
    assert time.monotonic() - began < 5
    assert "(ganlab_plugins)" in done.stdout
    local("import os\nos.abort()\n" + COMMAND)
    done = subprocess.run(command, capture_output=True, text=True, cwd=here)
    assert (done.returncode, "\n  verify " in done.stdout) == (0, True)


def test_plugin_file_in_a_run_is_not_executed_for_commands(here, ganlab, local):
    local("open('executed', 'w').close()\n" + COMMAND)
    (here / "run.json").write_text("{}")
    assert "greet" not in ganlab("--help").stdout
    assert "No such command 'greet'" in ganlab("greet").stderr
    assert not (here / "executed").exists()


def test_a_plugin_without_commands_is_not_imported_for_help(here, ganlab, local):
    local("open('executed', 'w').close()\n")
    assert "Commands of plugins" not in ganlab("--help").stdout
    assert not (here / "executed").exists()
