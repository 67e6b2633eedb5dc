"""Trials that start from a process which has imported TensorFlow: the sweep's side of `forking`."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ganlab
from ganlab_builtin.launchers.children import Child

# Commands that can be forked, as a sweep calls them.
_FORKABLE = ganlab.python_command("-m", "ganlab")
_TERMINATED, _KILLED = 143, 137
# What a trial's guard takes as being asked to end it.
_SIGNALS = {"stop": signal.SIGTERM, "kill": signal.SIGUSR1}
# How long the process may take to report the end of a trial.
_REPORT_SECONDS = 5.0


def can_fork(command: Sequence[str]) -> bool:
    """Whether a command can start from a forked process. Elsewhere than on Linux, forking TensorFlow is not safe."""
    return sys.platform == "linux" and list(command[: len(_FORKABLE)]) == _FORKABLE


class Server:
    """The process that forks, started on construction; it imports TensorFlow while its first trials wait."""

    def __init__(self, environment: Mapping[str, str], grace_seconds: float) -> None:
        """Starts it.

        Args:
            environment: The whole environment, of the process and its trials.
            grace_seconds: The time from SIGTERM, which asks a trial to save and end, to SIGKILL.
        """
        self.environment, self._grace = dict(environment), grace_seconds
        self.alive = True
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = ganlab.start_process(
                ganlab.python_command("-m", "ganlab_builtin.launchers.forking", str(theirs.fileno())),
                env=self.environment,
                survives=True,  # until this end of the socket is closed
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._rest = b""
        self._trials: list[Trial] = []

    def start(self, command: Sequence[str], folder: Path, log: Path) -> Trial:
        """Has a trial started.

        Args:
            command: A command that can be forked.
            folder: The working directory.
            log: The file that output and errors are appended to.
        """
        trial = Trial(self, lambda: self._child(command, folder, log))
        message = {"start": len(self._trials), "arguments": list(command[len(_FORKABLE) - 1 :]), "grace": self._grace}
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with log.open("ab") as output:
                socket.send_fds(self._connection, [_line(message)], [output.fileno(), directory])
        finally:
            os.close(directory)
        self._trials.append(trial)
        return trial

    def signal(self, method: str, trial: Trial) -> None:
        """Has a trial that has not begun signalled: `stop` or `kill`."""
        with contextlib.suppress(OSError):
            self._connection.sendall(_line({method: self._trials.index(trial)}))

    def fileno(self) -> int:
        """The descriptor that can be read when there is something to follow."""
        return self._connection.fileno()

    def follow(self) -> None:
        """Reads what the process has reported since the last call."""
        while self.alive and select.select([self._connection], [], [], 0)[0]:
            try:
                data = self._connection.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                self.alive = False
                for trial in self._trials:
                    trial.orphaned()
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "started" in message:
                    self._trials[message["started"]].began(message["process"])
                else:
                    self._trials[message["ended"]].ended(message["status"])

    def close(self) -> None:
        """Ends the process; trials under way are asked to save."""
        self.alive = False
        self._connection.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:  # somebody has stopped it; its guards notice its end
            self._process.kill()
            self._process.wait()

    def _child(self, command: Sequence[str], folder: Path, log: Path) -> Child:
        return Child(command, environment=self.environment, folder=folder, log=log, grace_seconds=self._grace)


class Trial(ganlab.Job):
    """A forked trial; one that the server could not even begin becomes a process of its own."""

    def __init__(self, server: Server, cold: Callable[[], Child]) -> None:
        self._server, self._cold = server, cold
        self._status: int | None = None
        self._calls: list[str] = []
        self._guard: int | None = None
        self._ended_at: float | None = None
        self._child: Child | None = None

    def began(self, process: int) -> None:
        """Records the process of its guard, as a descriptor that outlives the process's number."""
        with contextlib.suppress(OSError):  # it has ended: its status follows
            self._guard = os.pidfd_open(process)

    def ended(self, status: int) -> None:
        """Records its exit status."""
        self._status = status
        self._forget()

    def orphaned(self) -> None:
        """Records that the server has ended: a trial that had not begun is started as a process of its own."""
        if self._status is not None or self._guard is not None:
            return
        self._child = self._cold()
        for method in self._calls:
            getattr(self._child, method)()

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        self._server.follow()
        if self._child is not None:
            return self._child.poll()
        if self._status is None and self._guard is not None and select.select([self._guard], [], [], 0)[0]:
            self._ended_at = self._ended_at or time.monotonic()
            if not self._server.alive or time.monotonic() - self._ended_at > _REPORT_SECONDS:
                # Nobody is left who knows how it ended.
                self.ended(_KILLED if "kill" in self._calls else _TERMINATED)
        return self._status

    def stop(self) -> None:
        """Asks it to save and end."""
        self._ask("stop")

    def kill(self) -> None:
        """Kills it at once, with its process group."""
        self._ask("kill")

    def _ask(self, method: str) -> None:
        self._server.follow()
        self._calls.append(method)
        if self._child is not None:
            getattr(self._child, method)()
        elif self._guard is not None:  # heard also while the server is stopped
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._guard, _SIGNALS[method])
        else:
            self._server.signal(method, self)

    def _forget(self) -> None:
        if self._guard is not None:
            os.close(self._guard)
            self._guard = None


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
