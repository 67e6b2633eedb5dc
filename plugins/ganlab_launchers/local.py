"""Trials as child processes of the sweep."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import ganlab
from ganlab_launchers.children import Child


class Local(ganlab.Launcher):
    """Starts each trial as a process on this machine, at once.

    Trials are in sessions of their own, so that Ctrl-C at the terminal is for the sweep, which then asks them to save.
    On Linux a trial whose sweep dies is sent SIGTERM by the kernel, and saves as well; elsewhere it goes on to its end,
    and a sweep that is started again waits for it.
    """

    def start(self, command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> ganlab.Job:
        """Starts one command.

        Raises:
            ganlab.RunError: The folder or the log cannot be used.
        """
        try:
            return _Process(Child(command, environment={**os.environ, **environment}, folder=folder, log=log))
        except OSError as error:
            raise ganlab.RunError(f"No process can be started in {folder} with the log {log}: {error}.") from error


class _Process(ganlab.Job):
    def __init__(self, child: Child) -> None:
        self._child = child

    def poll(self) -> int | None:
        return self._child.poll()

    def stop(self) -> None:
        self._child.stop()
