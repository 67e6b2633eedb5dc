"""`ganlab runs archive` and `ganlab runs unarchive`: runs as one file, and back."""

from __future__ import annotations

from pathlib import Path

import click

from ganlab.cli.words import counted, in_bytes
from ganlab.runs import archiving


@click.command("archive")
@click.argument("runs", metavar="RUN...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The archive to write, .tar.gz.",
)
@click.option("--no-checkpoints", is_flag=True, help="Leave the checkpoints out, which are most of a run.")
def archive_command(runs: tuple[Path, ...], output: Path, no_checkpoints: bool) -> None:
    """Packs runs into one file, the same bytes for the same runs.

    \b
    ganlab runs archive runs/ring/lazy -o lazy.tar.gz
    ganlab runs archive runs/sweep/*/s* -o sweep.tar.gz --no-checkpoints
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    done = archiving.archive(runs, output, checkpoints=not no_checkpoints)
    for link in done.left_out:
        click.echo(f"Warning: {link} is a link and was left out.", err=True)
    click.echo(f"Wrote {output}: {counted(len(done.names), 'run')}, {in_bytes(done.bytes)}.")


@click.command("unarchive")
@click.argument("archive", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="The folder that the runs go into.",
)
def unarchive_command(archive: Path, output: Path) -> None:
    """Unpacks an archive of runs, all of it or nothing.

    It may be a stranger's: nothing is written outside of DIR or over a run that is there, and links are
    refused.
    """
    for path in archiving.unarchive(archive, output):
        click.echo(path)
