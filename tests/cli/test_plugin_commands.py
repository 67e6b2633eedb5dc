"""Commands that plugins add: in help, on the command line, and where their names are taken."""

import importlib.metadata
import json
import subprocess
import sys
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


def test_commands_of_a_plugin_file_can_be_called_and_are_in_the_help(ganlab, local):
    local(COMMAND)
    assert ganlab("greet", "--times", "2").stdout == "hello hello \n"
    assert "Greets somebody. At length." in ganlab("greet", "--help").stdout
    text = ganlab("--help").stdout
    assert "Commands of plugins:" in text
    assert "\n  greet " in text
    assert "Greets somebody." in text
    assert "\n  ganlab_plugins.run  Runs what is mine." in text


def test_name_of_a_ganlab_command_is_reported_as_a_clash(ganlab, local):
    local(COMMAND)
    assert ganlab("ganlab_plugins.run").stdout == "mine\n"
    assert ganlab("ganlab_plugins.greet").stdout == "hello \n"
    assert "Missing experiment: name a FILE" in ganlab("run").stderr
    data = json.loads(ganlab("plugins", "--json").stdout)
    found = {row["name"]: row["summary"] for row in data["commands"] if row["plugin"] == "ganlab_plugins"}
    assert found == {"greet": "Greets somebody.", "ganlab_plugins.run": "Runs what is mine."}
    (clash,) = data["clashes"]
    assert "'ganlab_plugins'" in clash
    assert "'ganlab run' is another command. Call 'ganlab ganlab_plugins.run'." in clash
    rows = f"\n{ganlab('plugins').stdout}".partition("\ncommands\n")[2].splitlines()
    found = {row.split()[0] for row in rows if "Runs what is mine." in row or "is another command" in row}
    assert found == {"ganlab_plugins.run", "run"}


def test_same_command_of_two_plugins_must_be_qualified(ganlab, here):
    found = plugins.use(plugins.Plugins())
    for name in ("one", "the-other"):
        hook = package.hookimpl(
            lambda cli, name=name: cli.add_command(click.Command("hi", callback=lambda: click.echo(name)))
        )
        found.add(
            plugins.Plugin(name, name, "1"), lambda hook=hook: types.SimpleNamespace(ganlab_register_commands=hook)
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


def test_help_executes_no_plugin(here, local):
    local("import tensorflow as tf\nopen('executed', 'w').close()\n" + COMMAND)
    command = [sys.executable, "-X", "importtime", "-m", "ganlab", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=here)
    assert (done.returncode, "\n  greet " in done.stdout) == (0, True)
    assert not (here / "executed").exists()
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not {"tensorflow", "keras", "numpy", "rich", "gin", "sklearn", "ganlab_builtin"} & imported
    assert not {name for name in imported if name.startswith("ganlab.cli.") and name != "ganlab.cli.run"} - CLI


CLI = {f"ganlab.cli.{name}" for name in ("command_sources", "messages", "plugin_commands", "process", "subcommands")}

# The ways in which a hook adds commands, and what the help lists.
HOOKS = {
    "    @cli.command('make-it')\n    def make():\n        'Makes it.'": "\n  make-it  Makes it.",
    "    cli.add_command(some_things)": "\n  some-things  Groups.",
    "    cli.add_command(some_things, 'else')": "\n  else  Groups.",
    "    cli.add_command(some_things, name='else')": "\n  else  Groups.",
    "    cli.add_command(imported)": "\n  (ganlab_plugins)  Adds commands; 'ganlab plugins' lists them.",
    "    for each in (some_things,): cli.add_command(each)": "\n  (ganlab_plugins)  Adds commands; ",
    "    add_all(cli)": "\n  (ganlab_plugins)  Adds commands; ",
    "    pass": "",
}


@pytest.mark.parametrize(("body", "row"), HOOKS.items())
def test_help_lists_what_the_source_of_a_hook_shows(ganlab, local, body, row):
    local(
        f"@click.group()\ndef some_things():\n    'Groups.'\n\n@hookimpl\ndef ganlab_register_commands(cli):\n{body}\n"
    )
    _, title, text = ganlab("--help").stdout.partition("Commands of plugins:")
    assert row in text if row else not title


def test_plugin_file_in_a_run_is_not_executed_for_commands(here, ganlab, local):
    local("open('executed', 'w').close()\n" + COMMAND)
    (here / "run.json").write_text("{}")
    assert "greet" not in ganlab("--help").stdout
    assert "No such command 'greet'" in ganlab("greet").stderr
    assert not (here / "executed").exists()


def pointing(monkeypatch, **points):
    """Installs commands: by name, the value of the entry point, or several of distributions."""
    listed = [
        types.SimpleNamespace(name=name, dist=types.SimpleNamespace(metadata={"Name": dist, "Version": "1"}), **made)
        for name, each in points.items()
        for dist, made in each.items()
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: listed if group == "ganlab.commands" else [])


def entry(value):
    point = importlib.metadata.EntryPoint("", value, "ganlab.commands")
    return {"value": value, "load": point.load}


@pytest.fixture
def applications(here, monkeypatch):
    """An application in two modules whose package cannot be imported before one of them is called."""
    package = here / "an_application"
    package.mkdir()
    (package / "__init__.py").write_text("open('executed', 'a').close()\n")
    source = "import click\n\n@click.command()\ndef hi():\n    'Greets. Then ends.'\n    print('hi')\n"
    (package / "hi.py").write_text(source)
    (package / "broken.py").write_text("import nowhere\n")
    monkeypatch.syspath_prepend(here)
    hi = entry("an_application.hi:hi")
    yield {
        "hi": {"an-app": hi},
        "runs.hi": {"an-app": hi},
        "run": {"an-app": hi},
        "two": {"one": hi, "other": hi},
        "broken": {"an-app": entry("an_application.broken:hi")},
        "text": {"an-app": entry("an_application.hi:__name__")},
    }
    for name in [name for name in sys.modules if name.startswith("an_application")]:
        del sys.modules[name]


def test_help_lists_applications_without_importing_them(ganlab, here, monkeypatch, applications):
    pointing(monkeypatch, **applications)
    rows = [line.split() for line in ganlab("--help").stdout.splitlines()]
    assert [row for row in (["hi", "Greets."], ["an_app.run", "Greets."], ["broken"]) if row not in rows] == []
    assert ["hi", "Greets."] in [line.split() for line in ganlab("runs", "--help").stdout.splitlines()]
    assert not (here / "executed").exists()


def test_command_of_an_application_is_loaded_when_it_is_called(ganlab, here, monkeypatch, applications):
    pointing(monkeypatch, **applications)
    for words in ("hi", "runs hi", "an_app.run", "one.two", "other.two", "an_app.hi", "runs an_app.hi"):
        assert ganlab(*words.split()).stdout == "hi\n"
    assert (here / "executed").exists()


MISTAKES = {
    "two": (
        "Several plugins add a command 'two': 'one' of one 1 and 'other' of other 1. Call 'ganlab one.two' or "
        "'ganlab other.two'."
    ),
    "hii": "No such command 'hii'. Did you mean 'hi'?",
    "broken": "The command 'broken' of an-app 1 cannot be loaded: ModuleNotFoundError: No module named 'nowhere'",
    "text": "The command 'text' of an-app 1 is an_application.hi:__name__, of type str; it must be a click command.",
}


@pytest.mark.parametrize(("name", "message"), MISTAKES.items())
def test_commands_of_applications_that_cannot_be_used_are_mistakes(ganlab, monkeypatch, applications, name, message):
    pointing(monkeypatch, **applications)
    done = ganlab(name)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith(f"Error: {message}\n")


def test_hook_cannot_take_the_name_of_an_application(ganlab, local, monkeypatch, applications):
    local(COMMAND)
    pointing(monkeypatch, greet=applications["hi"])
    assert ganlab("greet").stdout == "hi\n"
    assert ganlab("ganlab_plugins.greet").stdout == "hello \n"
    data = json.loads(ganlab("plugins", "--json").stdout)
    assert [row["name"] for row in data["commands"]] == ["greet", "ganlab_plugins.greet", "ganlab_plugins.run"]
    assert "'ganlab greet' is another command. Call 'ganlab ganlab_plugins.greet'." in data["clashes"][0]


def test_a_plugin_without_commands_is_not_imported_for_help(here, ganlab, local):
    local("open('executed', 'w').close()\n")
    assert "Commands of plugins" not in ganlab("--help").stdout
    assert not (here / "executed").exists()
