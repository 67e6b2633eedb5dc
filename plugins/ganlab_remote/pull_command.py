"""`ganlab pull`: brings a published run here."""

from __future__ import annotations

from pathlib import Path

import click

from ganlab.commands import LocalPath, say
from ganlab.files import line, orderly_end


@click.command("pull")
@click.argument("address", metavar="ADDRESS")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=LocalPath(file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="The folder to unpack into.",
)
def pull(address: str, output: Path) -> None:
    """Brings a run that 'ganlab push' published into DIR, for sample, certify, evaluate, replay and the others.

    It may be a stranger's: nothing of it is executed, and what 'ganlab runs unarchive' would refuse is refused.
    """
    from ganlab_remote import shipping

    with orderly_end():
        for path in shipping.pull(address, output):
            say(line(path))
