"""Where commands print their tables: lazily, since rich is a tenth of a second of their start."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ganlab.support.terminal import lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def table_console(width: int = 100) -> Console:
    """Standard output for tables.

    Args:
        width: In columns, where neither a terminal nor COLUMNS says how wide it is: a pipe has room for every column.
    """
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = width
    return console


def cell(value: object, *, style: str = "") -> Text:
    """Text for a table, which is no markup and has nothing in it that a terminal would obey.

    Args:
        value: What to show; its line ends stay.
        style: How, as rich calls it.
    """
    from rich.text import Text

    return Text(lines(value), style=style)
