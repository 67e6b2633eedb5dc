"""`ganlab runs archive` and `ganlab runs unarchive`: packs runs into one file and unpacks them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from ganlab.commands import LocalPath, RunsPath, counted, from_bytes, in_bytes, say
from ganlab.files import line, orderly_end
from ganlab_archive import Limits
from ganlab_archive.archiving import archive
from ganlab_archive.unpacking import unarchive

_LIMITS = Limits()


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    size = None if value is None else from_bytes(value)
    if value is not None and not size:
        raise click.BadParameter(
            f"{value!r} is not a size. Write a number of bytes, or a number with kB, MB, GB or TB, for example 20GB."
        )
    return size


_max_files = click.option(
    "--max-files",
    metavar="COUNT",
    type=click.IntRange(min=1),
    default=_LIMITS.files,
    show_default=True,
    help="Refuse an archive with more files and folders than this.",
)
_max_size = click.option(
    "--max-size",
    metavar="SIZE",
    callback=_size,
    help="Refuse an archive whose files are larger in total than this, for example 200GB. By default "
    f"{_LIMITS.expansion} times the archive's own size, at least {in_bytes(_LIMITS.least)} and at most "
    f"{in_bytes(_LIMITS.bytes)}.",
)


@click.command("archive")
@click.argument("runs", metavar="RUN...", type=RunsPath(), nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=LocalPath(dir_okay=False),
    required=True,
    help="The archive to write, .tar.gz.",
)
@click.option("--no-checkpoints", is_flag=True, help="Leave out the checkpoints, which are most of a run's size.")
@_max_files
@_max_size
def archive_command(
    runs: tuple[Path, ...], output: Path, no_checkpoints: bool, max_files: int, max_size: int | None
) -> None:
    """Packs runs into one file; the same runs give the same bytes.

    What 'ganlab runs unarchive' with the same --max-files and --max-size would refuse is refused.

    \b
    ganlab runs archive runs/ring/lazy -o lazy.tar.gz
    ganlab runs archive runs/sweep/*/s* -o sweep.tar.gz --no-checkpoints
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    done = archive(runs, output, checkpoints=not no_checkpoints, limits=_limits(max_files, max_size))
    for link in done.left_out:
        say(f"Warning: {line(link)} is a link and was left out.", err=True)
    say(f"Wrote {line(output)}: {counted(len(done.names), 'run')}, {in_bytes(done.bytes)}.")


@click.command("unarchive")
@click.argument("file", metavar="FILE", type=LocalPath())
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=LocalPath(file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="The folder to unpack the runs into.",
)
@_max_files
@_max_size
def unarchive_command(file: Path, output: Path, max_files: int, max_size: int | None) -> None:
    """Unpacks an archive of runs, completely or not at all.

    The archive may be untrusted: nothing is written outside DIR or into an existing run. Links are refused, and so is
    an archive that holds more than its size suggests.
    """
    with orderly_end():
        for path in unarchive(file, output, _limits(max_files, max_size)):
            say(line(path))


def _limits(files: int, size: int | None) -> Limits:
    if size is None:
        return dataclasses.replace(_LIMITS, files=files)
    return dataclasses.replace(_LIMITS, files=files, bytes=size, expansion=None)
