"""The `ganlab_plugins.py` that a run used: it may be named to whoever reads the run, and is never executed for it.

A run's directory is data, perhaps a stranger's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ganlab.errors import GanlabError
from ganlab.plugins import manager as plugins
from ganlab.runs.info import read_info
from ganlab.support.terminal import line


@contextlib.contextmanager
def named_in_errors(folder: Path) -> Iterator[None]:
    """Inside, an experiment is read: an error says which plugin file the run used, where none is in use now.

    Args:
        folder: Where the experiment's file is: a run's directory, or any other, which changes nothing.
    """
    try:
        yield
    except GanlabError as error:
        used = _used_by(folder)
        if used is None or _in_use():
            raise
        raise type(error)(
            f"{error} The run used {used}: name it with --plugin-file (in Python: ganlab.use_plugin_file)."
        ) from None


def _used_by(folder: Path) -> str | None:
    try:
        return line(read_info(folder)["provenance"]["plugins"][plugins.LOCAL_MODULE]["distribution"])
    except (GanlabError, KeyError, TypeError):
        return None


def _in_use() -> bool:
    return any(row.name == plugins.LOCAL_MODULE and row.status == "loaded" for row in plugins.current().rows)
