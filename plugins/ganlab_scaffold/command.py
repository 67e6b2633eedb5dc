"""`ganlab plugins new`: creates an installable package with a working component to start from."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ganlab.commands import LocalPath, say
from ganlab_scaffold import OTHERS, TEMPLATES, new_plugin


@click.command("new")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice([*TEMPLATES, *OTHERS]),
    default=next(iter(TEMPLATES)),
    show_default=True,
    help="The kind of component in the package.",
)
@click.option(
    "--directory",
    type=LocalPath(exists=True, file_okay=False, writable=True),
    default=Path(),
    help="Where to create the package's folder; by default here.",
)
def new(name: str, kind: str, directory: Path) -> None:
    """Creates the package NAME: a working component, its tests, an experiment that uses it, and a README.

    \b
    ganlab plugins new soft-slope
    ganlab plugins new ganlab-moons --kind dataset
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    made = new_plugin(name, kind, directory)
    folder = shlex.quote(str(made.folder))
    say(f"Wrote {made.folder}: the {kind} {made.selector}, in {made.module}.\n\nNext:")
    say(f"  pip install -e {folder}\n  pytest {folder}\n  {made.next}")
