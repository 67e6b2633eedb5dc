"""The `ganlab_plugins.py` that a run used: error messages name it, and it is never executed on the run's behalf.

A run's directory is data, possibly from a stranger.
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
    """Context manager: adds to errors the plugin file that the run used, if none is in use now.

    Args:
        folder: The folder of the experiment's file. Unless it is a run's directory, errors are left as they are.
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
    except (GanlabError, KeyError):
        return None


def _in_use() -> bool:
    return any(row.name == plugins.LOCAL_MODULE and row.status == "loaded" for row in plugins.current().rows)
