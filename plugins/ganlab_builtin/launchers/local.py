"""Trials as processes of this machine."""

from __future__ import annotations

import os
import select
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import ganlab
from ganlab.bounds import Ge
from ganlab_builtin.launchers.children import Child
from ganlab_builtin.launchers.warm import Server, can_fork


class Local(ganlab.Launcher):
    """Starts each trial as a process on this machine, at once.

    TensorFlow is imported once, by a process from which all trials are forked: a trial then trains some five seconds
    earlier. It reaches the same bits as a process of its own.

    Trials run in their own sessions, so that Ctrl-C at the terminal goes to the sweep, which then asks them to save.
    A trial whose sweep dies is also asked to save, by SIGTERM. One that ignores signals is killed after its grace
    period.
    """

    def __init__(self, *, grace_seconds: Annotated[float, Ge(0)] = 60.0, fork: bool = True) -> None:
        """Chooses how long to wait for a trial that was asked to end, and how trials start.

        Args:
            grace_seconds: The time from SIGTERM to SIGKILL, for the trial and the processes that it started.
            fork: Whether to fork trials from a process that has imported TensorFlow, on Linux. If not, each starts
                as a new process, as everywhere else.
        """
        self.grace_seconds = float(grace_seconds)
        self._fork = fork
        self._servers: list[Server] = []

    def start(self, command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> ganlab.Job:
        """Starts one command."""
        variables = {**os.environ, **environment}
        try:
            if self._fork and can_fork(command):
                server = self._server(variables)
                if server.alive:
                    return server.start(command, folder, log)
            return Child(command, environment=variables, folder=folder, log=log, grace_seconds=self.grace_seconds)
        except OSError as error:
            raise ganlab.RunError(f"No process can be started in {folder} with the log {log}: {error}.") from error

    def wait(self, seconds: float) -> None:
        """Waits until a forked trial has begun or ended, but no longer than this."""
        alive = [server for server in self._servers if server.alive]
        if not alive:
            super().wait(seconds)
            return
        select.select(alive, [], [], seconds)
        for server in alive:
            server.follow()

    def close(self) -> None:
        """Ends the process that trials are forked from."""
        for server in self._servers:
            server.close()
        self._servers = []

    def _server(self, variables: Mapping[str, str]) -> Server:
        """The server with these environment variables, which its trials inherit; it may have ended."""
        if not self._servers or self._servers[-1].environment != variables:
            self._servers.append(Server(variables, self.grace_seconds))
        self._servers[-1].follow()
        return self._servers[-1]
