"""Lists plugins' commands for the help text, which must be quick whatever plugins do.

Plugins are loaded in a forked child, with a time limit and without TensorFlow: whatever they import, print or break
ends with the child.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import json
import os
import select
import signal
import sys
import time
import types
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

_SECONDS = 0.5
# Packages that take seconds to import, and that no command needs in order to give its name.
_HEAVY = ("tensorflow", "keras", "torch", "jax")


def rows(own: Sequence[str]) -> list[tuple[str, str]]:
    """The commands that plugins add, each with a one-line summary, and a line for a plugin that was too slow.

    Args:
        own: The names of ganlab's own commands.
    """
    if not hasattr(os, "fork"):
        return []
    asking: list[str] = []
    found: list[tuple[str, str]] = []
    for line in _lines_of_child(own):
        with contextlib.suppress(ValueError):
            message = json.loads(line)
            asking = [message["asking"]] if "asking" in message else []
            found += [(name, about) for name, about in message.get("rows", [])]
    return found + [(f"({name})", "This plugin is slow to import; 'ganlab plugins' waits for it.") for name in asking]


def _lines_of_child(own: Sequence[str]) -> list[str]:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads do not matter in a process that shows help
        child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _child(own, writing)
        finally:
            os._exit(0)
    os.close(writing)
    received, until = b"", time.monotonic() + _SECONDS
    try:
        while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
            part = os.read(reading, 65536)
            if not part:
                break
            received += part
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return received.decode(errors="replace").splitlines()


def _child(own: Sequence[str], writing: int) -> None:
    """Writes JSON lines: `asking` names the plugin being loaded, empty once it is done; `rows` are the commands."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for the rest of this process)
    warnings.simplefilter("ignore")

    def send(**message: Any) -> None:
        os.write(writing, json.dumps(message).encode() + b"\n")

    from ganlab.cli import plugin_commands
    from ganlab.plugins import manager as plugins

    found = plugins._current
    if found is None:
        found = plugins.Plugins()
        with _left_out(_HEAVY):
            for place in _candidates():
                send(asking=place.plugin.name)
                found.add(place.plugin, place.load)
                send()
    added = plugin_commands.added(found, own)
    listed = [(name, plugin_commands.summary(command)) for name, (command, _) in sorted(added.commands.items())]
    send(rows=listed)


def _candidates() -> Iterator[Any]:
    """The places of plugins whose source contains the hook's name, or is unknown."""
    from pathlib import Path

    from ganlab.cli.plugin_commands import HOOK
    from ganlab.plugins.discovery import places, plugin_file_in

    local = plugin_file_in(Path())
    for place in places(local=local.resolve() if local else None):
        if place.disabled:
            continue
        try:
            source = place.source()
            wanted = source is None or HOOK in (text := source.read_text(errors="replace")) or "import *" in text
        except Exception:
            wanted = True
        if wanted:
            yield place


@contextlib.contextmanager
def _left_out(names: Sequence[str]) -> Iterator[None]:
    """Context manager: replaces packages not yet imported with mocks, so that help does not wait for their import."""
    finder = _Absent(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Mocked(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__name__ == "keras":
            module.config = types.SimpleNamespace(backend=lambda: "tensorflow")  # type: ignore[attr-defined]


class _Mocked(types.ModuleType):
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from unittest import mock

        return mock.MagicMock(name=f"{self.__name__}.{name}")
