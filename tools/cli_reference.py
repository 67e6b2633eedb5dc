"""Writes docs/cli.md from the help texts of the commands.

python tools/cli_reference.py
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ganlab.cli import cli

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

# With this, click marks a paragraph that it does not wrap.
_AS_IT_IS = "\b\n"

_HEAD = """\
# Commands

Every command with its options, as `ganlab COMMAND --help` has them. This page is written by
`python tools/cli_reference.py`.

Options of `ganlab` itself go before the command: `ganlab --debug run ...` shows the traceback of an error. Mistakes
exit with 2 and one message, a run that failed with 1, one that was interrupted with 130, 143 or 129, having saved.
Plugins may add commands; `ganlab completion` makes the shell complete all of this.
"""


def page() -> str:
    """The text of docs/cli.md."""
    found = list(_commands(cli, ["ganlab"]))
    contents = [f"| [`{' '.join(path)}`](#{'-'.join(path)}) | {_first(command)} |" for path, command in found]
    parts = [_HEAD, "\n".join(["| command | |", "|---|---|", *contents]) + "\n"]
    parts += [_section(path, command) for path, command in found]
    return "\n".join(parts)


def _commands(group: click.Group, path: Sequence[str]) -> Iterator[tuple[list[str], click.Command]]:
    """Every command of ganlab's own, in the order of the help, each group before its members."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield [*path, name], command
        if isinstance(command, click.Group):
            yield from _commands(command, [*path, name])


def _section(path: Sequence[str], command: click.Command) -> str:
    context = click.Context(command)
    arguments = [_argument(p) for p in command.params if isinstance(p, click.Argument)]
    options = [_option(p, context) for p in command.params if isinstance(p, click.Option) and not p.hidden]
    members = []
    if isinstance(command, click.Group):
        members = ["[COMMAND]" if command.invoke_without_command else "COMMAND"]
    usage = [*path, *members, *arguments, *(["[OPTIONS]"] if options else [])]
    parts = [f"## {' '.join(path)}\n", f"```\n{' '.join(usage)}\n```\n", *_texts(command.help or "")]
    if options:
        parts.append("\n".join(["| option | |", "|---|---|", *options]) + "\n")
    return "\n".join(parts)


def _first(command: click.Command) -> str:
    """The first sentence of a command's help, for the table of contents."""
    return " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())


def _texts(text: str) -> Iterator[str]:
    """The paragraphs of a help text; those that click leaves as they are, after its mark, are code."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith(_AS_IT_IS):
            yield f"```sh\n{paragraph.removeprefix(_AS_IT_IS)}\n```\n"
        else:
            yield " ".join(paragraph.split()) + "\n"


def _argument(parameter: click.Argument) -> str:
    name = _value(parameter)
    if parameter.metavar:
        return name
    return name if parameter.required else f"[{name}]"


def _option(parameter: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in parameter.opts)
    names += "".join(f", `{name}`" for name in parameter.secondary_opts)
    if not parameter.is_flag:
        names = names.removesuffix("`") + f" {_value(parameter)}`"
    default = parameter.get_default(context, call=False)
    shown = "" if parameter.is_flag or default in (None, ()) or isinstance(default, enum.Enum) else str(default)
    text = parameter.help or ""
    if shown and "default" not in text:
        text = f"{text} Default: `{shown}`."
    return f"| {_cell(names)} | {_cell(text)} |"


def _value(parameter: click.Parameter) -> str:
    if parameter.metavar:
        return parameter.metavar
    if isinstance(parameter.type, click.Choice):
        return "|".join(map(str, parameter.type.choices))
    if isinstance(parameter, click.Argument):
        return (parameter.name or "").upper() + ("..." if parameter.nargs == -1 else "")
    kind = re.sub(r"\W.*", "", parameter.type.name).upper()
    return {"INTEGER": "N", "FLOAT": "X", "FILE": "PATH", "DIRECTORY": "FOLDER"}.get(kind, kind)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE}")
