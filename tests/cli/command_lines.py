"""Command lines of ganlab, run in this process."""

import io
import re

import click
from click.testing import CliRunner

from ganlab.cli import cli

# An experiment of the components in tests/config/ganlab_plugins.py.
MINIMAL = """\
experiment.dataset = @datasets.points()
experiment.architecture = @small()
experiment.loss = @plain()
experiment.strategy = @one()
experiment.critic_optimizer = @adam()
experiment.generator_optimizer = @adam()
"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def invoke(*words, **variables):
    """Runs a command line; returns click's result."""
    return CliRunner().invoke(cli, [str(word) for word in words], env=variables)


def command(*words, code=0, **variables):
    """Runs a command line, which must end with a code; returns what it prints, or its message unless the code is 0."""
    result = invoke(*words, **variables)
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def mistake_in(folder, *words):
    """Runs a wrong command line, which must print one line, end with 2 and leave the folder as it is.

    Returns the line without "Error: ".
    """
    before = _files(folder)
    result = invoke(*words)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert _files(folder) == before
    usage, message = re.fullmatch(r"(Usage: .*\n)?Error: (.*)\n", result.stderr, re.DOTALL).groups()
    assert usage is None or "Traceback" not in usage
    assert "\n" not in message
    return message


def _files(folder):
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


def every_command(group=cli, words=()):
    """Yields each command that can be called, those of applications too, with its words."""
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        if isinstance(found, click.Group):
            yield from every_command(found, (*words, name))
        if not isinstance(found, click.Group) or found.invoke_without_command:
            yield (*words, name), found
