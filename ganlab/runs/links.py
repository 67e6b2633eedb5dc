"""Checks that no link leads out of a run's folder: a run is data, possibly from a stranger."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ganlab.support.paths import real_parts, special, walk


def check_links(folder: Path) -> None:
    """Checks everything in a run's folder before anything is written to it.

    Raises:
        RunError: The folder holds a link that leads out of it, a pipe, a socket or a device.
    """
    for at, _, files in walk(folder):
        for name in files:
            path = Path(at, name)
            try:
                kind = stat.S_IFMT(os.lstat(path).st_mode)
            except FileNotFoundError:  # removed since: a lock, or a temporary file
                continue
            if kind == stat.S_IFLNK:
                real_parts(folder, path.relative_to(folder))
            elif kind != stat.S_IFREG:
                raise special(path, kind)
