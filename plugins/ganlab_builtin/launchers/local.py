"""Trials as child processes of the sweep."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import ganlab
from ganlab.bounds import Ge
from ganlab_builtin.launchers.children import Child


class Local(ganlab.Launcher):
    """Starts each trial as a process on this machine, at once.

    Trials run in their own sessions, so that Ctrl-C at the terminal goes to the sweep, which then asks them to save.
    A trial whose sweep dies is also asked to save, by SIGTERM. One that ignores signals is killed after its grace
    period.
    """

    def __init__(self, *, grace_seconds: Annotated[float, Ge(0)] = 60.0) -> None:
        """Chooses how long to wait for a trial that was asked to end.

        Args:
            grace_seconds: The time from SIGTERM to SIGKILL, for the trial and the processes that it started.
        """
        self.grace_seconds = float(grace_seconds)

    def start(self, command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> ganlab.Job:
        """Starts one command.

        Raises:
            ganlab.RunError: The folder or the log cannot be used.
        """
        try:
            child = Child(
                command,
                environment={**os.environ, **environment},
                folder=folder,
                log=log,
                grace_seconds=self.grace_seconds,
            )
        except OSError as error:
            raise ganlab.RunError(f"No process can be started in {folder} with the log {log}: {error}.") from error
        return _Process(child)


class _Process(ganlab.Job):
    def __init__(self, child: Child) -> None:
        self._child = child

    def poll(self) -> int | None:
        return self._child.poll()

    def stop(self) -> None:
        self._child.stop()

    def kill(self) -> None:
        self._child.kill()
