"""The plugin file that a run, a sweep or a benchmark was made with.

Such a folder is data, possibly from a stranger. The file that it names is executed only if the user names it again, or
if it lies in the working directory with the recorded content.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ganlab.errors import GanlabError, NotNamedError, PluginError
from ganlab.plugins import machines
from ganlab.plugins import manager as plugins
from ganlab.plugins.discovery import is_data
from ganlab.runs.info import read_info
from ganlab.runs.modules import hash_of_file
from ganlab.support.paths import is_name
from ganlab.support.terminal import line

# Any other file of that name and content has been written for something else, and would do that.
_HOOK = re.compile(r"^\s*(async )?def ganlab_\w+\(|^ganlab_\w+ *=", re.MULTILINE)


def recorded() -> tuple[str | None, str | None]:
    """The plugin file in use and the hash of its content, for a folder to record; None and None without one."""
    row = next((row for row in plugins.current().rows if row.name == plugins.LOCAL_MODULE), None)
    return (None, None) if row is None else (row.distribution, hash_of_file(Path(row.distribution)))


def confirmed(what: str, path: str | None, content: str | None, named: Path | None) -> Path | None:
    """The plugin file to use for a folder that is resumed; from now on its experiments name no machine for the user.

    Args:
        what: The folder's kind, for the error.
        path: The path that the folder has recorded, or None.
        content: The hash that it has recorded.
        named: The file that the user names, or None.

    Raises:
        PluginError: The folder needs one, and neither the user nor the working directory has it.
    """
    machines.distrust()
    here = None if named or path is None else _here(path, content)
    if named is None and here is None and path is not None:
        raise _not_named(what, path)
    return named or here


def take_up(folder: Path) -> None:
    """Adds the plugin file of a run to the plugins in use, if the working directory has it and none is in use.

    Args:
        folder: The folder of an experiment's file, a run's or not.

    Raises:
        PluginError: The plugin is broken.
    """
    path, content = _used_by(folder)
    if path is not None and not _in_use() and (here := _here(path, content)) is not None:
        plugins.add_plugin_file(here)


@contextlib.contextmanager
def named_in_errors(folder: Path) -> Iterator[None]:
    """Context manager: an error inside names the plugin file that the run used, if none is in use now.

    Args:
        folder: The folder of the experiment's file. Unless it is a run's directory, errors are left as they are.
    """
    try:
        yield
    except GanlabError as error:
        path, _ = _used_by(folder)
        if path is None or _in_use():
            raise
        raise _not_named("run", path, f" Without it: {str(error).partition('. ')[0].rstrip('.')}.") from None


def _used_by(folder: Path) -> tuple[str | None, Any]:
    try:
        used = read_info(folder)["provenance"]["plugins"][plugins.LOCAL_MODULE]
        return used["distribution"], used.get("content")
    except (GanlabError, KeyError):
        return None, None


def _in_use() -> bool:
    return any(row.name == plugins.LOCAL_MODULE for row in plugins.current().rows)


def _here(path: str, content: Any) -> Path | None:
    """The file of that name and content in the working directory, unless that is a stranger's data as well."""
    name = os.path.basename(path)
    file = Path(name)
    if not (is_name(name) and name.endswith(".py") and os.path.isfile(file)) or is_data(file.parent):
        return None
    if (
        content is None
        or hash_of_file(file) != content
        or not _HOOK.search(file.read_text(encoding="utf-8", errors="replace"))
    ):
        return None
    return file.resolve()


def _not_named(what: str, path: str, more: str = "") -> PluginError:
    if not os.path.isfile(path):
        return PluginError(
            f"The {what} was made with the plugin file {line(path)}, which is not there: name it by --plugin-file (in "
            f"Python: ganlab.use_plugin_file).{more}"
        )
    changed = Path(os.path.basename(path)).resolve() == Path(path) and not is_data(Path())  # or it would be used
    return NotNamedError(
        ["--plugin-file", path],
        f"the {what} was made with this file{', which has changed since' if changed else ''} (in Python: "
        f"ganlab.use_plugin_file), and code that a folder names is executed only if you name it, too.{more}",
    )
