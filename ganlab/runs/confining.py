"""A run's folder holds what is read and written for it, and no link leads out: it is data, perhaps a stranger's."""

from __future__ import annotations

import os
from pathlib import Path

from ganlab.errors import RunError


def inside(folder: Path, name: str) -> Path:
    """The path of a run's file.

    Args:
        folder: The run's directory, which may itself be reached by links.
        name: The file's name in it.

    Raises:
        RunError: It is a link that leads out of the folder.
    """
    path = folder / name
    if path.is_symlink() and not _leads_inside(path, folder):
        raise RunError(_told(path))
    return path


def check_links(folder: Path) -> None:
    """Looks through all of a run's folder, before anything is written to it.

    Raises:
        RunError: Something in it is a link that leads out of it.
    """
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(at, name)
            if path.is_symlink() and not _leads_inside(path, folder):
                raise RunError(_told(path))


def _leads_inside(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a circle of links
        return False


def _told(path: Path) -> str:
    return (
        f"{path} is a link to {os.readlink(path)}, out of the run's folder. A run is data, and nothing is read or "
        "written elsewhere for it: if you trust the link, put what it leads to in its place."
    )
