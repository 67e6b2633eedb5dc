"""Runs a command as a child process: of a sweep, of a job in a cluster's queue, or of an actor."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import ganlab
from ganlab_builtin.launchers import guard

CANNOT_START = guard.CANNOT_START
_SAFE_PATH = "PYTHONSAFEPATH"


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Context manager: processes that a library starts inside import nothing from the working directory."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


class Child(ganlab.Job):
    """One command, started on construction; it ends when its parent dies, or soon after it was asked to.

    It runs in its own session: Ctrl-C at a terminal goes to the parent, which decides what its children do.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        log: Path,
        grace_seconds: float,
    ) -> None:
        """Starts it.

        Args:
            command: The command and its arguments.
            environment: The whole environment.
            folder: The working directory.
            log: The file that output and errors are appended to.
            grace_seconds: The time from SIGTERM, which asks it to save and end, to SIGKILL for its process group.
        """
        guarded = [sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), str(grace_seconds), *command]
        with log.open("ab") as output:
            self._process = ganlab.start_process(
                guarded,
                env=environment,
                survives=True,  # the guard ends the command
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        """Its exit status, 128 plus the signal's number if a signal ended it, or None while it runs."""
        return _as_shells_count(self._process.poll())

    def wait(self, seconds: float) -> int | None:
        """Waits for its end, but no longer than this; returns the same as `poll`."""
        try:
            return _as_shells_count(self._process.wait(seconds))
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """Sends SIGTERM, and SIGKILL after the grace period; does nothing if it has ended."""
        self._process.terminate()

    def kill(self) -> None:
        """Kills it at once, with its process group."""
        self._process.send_signal(signal.SIGUSR1)


def _as_shells_count(status: int | None) -> int | None:
    return 128 - status if status is not None and status < 0 else status
