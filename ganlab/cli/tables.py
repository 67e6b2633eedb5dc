"""Tables of commands. rich is imported lazily, because it adds a tenth of a second to their start."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ganlab.support.terminal import line, lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def table_console(width: int = 100) -> Console:
    """A console on standard output for tables.

    Args:
        width: Columns to use if neither a terminal nor COLUMNS sets the width: a pipe has room for every column.
    """
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = width
    return console


def print_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Prints a table.

    Args:
        columns: The titles; the cells below one that begins with `>` are aligned to the right.
        rows: The cells of each row, each shown as one line.
    """
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in columns:
        table.add_column(cell(title.removeprefix(">")), justify="right" if title.startswith(">") else "left")
    for row in rows:
        table.add_row(*(cell(line(one)) for one in row))
    table_console().print(table)


def cell(value: object, *, style: str = "") -> Text:
    """Text for a table, without markup or control characters.

    Args:
        value: The value to show; its line ends are kept.
        style: A rich style.
    """
    from rich.text import Text

    return Text(lines(value), style=style)
