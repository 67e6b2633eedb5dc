"""`ganlab runs rm`: removes runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ganlab.commands import LocalPath, confirm, counted, in_bytes, say
from ganlab.files import line
from ganlab_archive.removing import removable, remove, weight


@click.command("rm")
@click.argument("runs", metavar="RUN...", type=LocalPath(), nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; required without a terminal.")
@click.option("--keep-metrics", is_flag=True, help="Remove only checkpoints and sample pictures.")
def rm(runs: tuple[Path, ...], yes: bool, keep_metrics: bool) -> None:
    """Removes runs, or only their largest files.

    All of them are checked first: if one is not a run, or is being trained, none is removed. Links are not followed.

    \b
    ganlab runs rm runs/quickstart/20260801-120000-s0-1f2e
    ganlab runs rm --keep-metrics --yes runs/sweep/*/s*
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    with removable(runs) as found:
        size = sum(weight(run, keep_metrics=keep_metrics) for run in found)
        what = "the checkpoints and sample pictures of " if keep_metrics else ""
        if not yes:
            if not _on_a_terminal():
                raise click.UsageError("There is no terminal to ask on: pass --yes to remove without confirmation.")
            for run in found:
                say(f"  {line(run.path)}")
            question = f"Remove {what}{'this run' if len(found) == 1 else f'these {len(found)} runs'}"
            if not confirm(f"{question}, {in_bytes(size)}?"):
                say("Nothing was removed.")
                return
        for run in found:
            remove(run, keep_metrics=keep_metrics)
    say(f"Removed {what}{counted(len(found), 'run')}: {in_bytes(size)}.")


def _on_a_terminal() -> bool:
    return sys.stdin.isatty()
