"""A run's folder holds what is read and written for it, and no link leads out: it is data, perhaps a stranger's."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ganlab.support.paths import real_parts, special, walk


def check_links(folder: Path) -> None:
    """Looks through all of a run's folder, before anything is written to it.

    Raises:
        RunError: Something in it is a link that leads out of it, a pipe, a socket or a device.
    """
    for at, _, files in walk(folder):
        for name in files:
            path = Path(at, name)
            try:
                kind = stat.S_IFMT(os.lstat(path).st_mode)
            except FileNotFoundError:  # gone since: a lock, or a file that was written aside
                continue
            if kind == stat.S_IFLNK:
                real_parts(folder, path.relative_to(folder))
            elif kind != stat.S_IFREG:
                raise special(path, kind)
