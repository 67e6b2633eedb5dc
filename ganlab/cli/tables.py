"""Where commands print their tables: lazily, since rich is a tenth of a second of their start."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


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
