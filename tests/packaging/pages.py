"""Code blocks of the project's pages."""

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from ganlab.cli import cli

ROOT = Path(__file__).parents[2]


def blocks(page):
    """The (language, name, text) of every code block of a page in the source tree, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w*) ?([\w.]*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def files_and_commands(found):
    """Of code blocks, the text of each file by its name, and the lines of shell commands."""
    files = {name: text for _, name, text in found if "." in name}
    return files, [line for language, _, text in found if language == "sh" for line in text.splitlines()]


def invoked(command, *more):
    """Runs a command of a page in this process, with further arguments; it must succeed. Returns what it prints."""
    result = CliRunner().invoke(cli, [*shlex.split(command)[1:], *map(str, more)])
    assert result.exit_code == 0, f"{command}\n{result.output}"
    return result.stdout
