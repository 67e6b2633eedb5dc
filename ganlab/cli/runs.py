"""`ganlab runs`: lists, watches, shows, removes and archives runs."""

from __future__ import annotations

import click

from ganlab.cli.subcommands import Subcommands


class _Runs(Subcommands):
    modules = {  # noqa: RUF012 (typed in the base)
        "list": "ganlab.cli.runs_list",
        "watch": "ganlab.cli.runs_watch",
        "show": "ganlab.cli.runs_show",
        "rm": "ganlab.cli.runs_rm",
        "archive": "ganlab.cli.runs_archive",
        "unarchive": "ganlab.cli.runs_archive",
    }


@click.group("runs", cls=_Runs)
def runs() -> None:
    """Lists, watches, shows, removes and archives runs. Nothing in a run is executed."""
