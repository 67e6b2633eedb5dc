"""The launcher role: starts the trials of a sweep."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path


class Job:
    """One command that a launcher has started or queued."""

    def poll(self) -> int | None:
        """Its exit status, or None while it waits or runs; never blocks for long.

        A process that a signal ended has the status 128 plus the signal's number, as in shells, with every launcher. A
        job that was ended from outside (a lost machine, a time limit) has a status other than 0.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Asks it to save and end: sends SIGTERM if it runs, removes it from the queue if it waits. Returns at once."""
        raise NotImplementedError

    def kill(self) -> None:
        """Kills it and all processes that it started, if `stop` had no effect for too long. Returns at once.

        By default it does nothing, and the sweep ends without waiting for the job.
        """


class Launcher:
    """Starts commands, each as a process of its own, on this machine or on others that see the same folders.

    A launcher keeps no state that a sweep needs: if the sweep dies, its jobs end soon (they may save first), and a new
    sweep finds their results in the run directories.

    Attributes:
        grace_seconds: How long a job may take to save and end when asked; a sweep kills it some time after that.
    """

    grace_seconds: float = 60.0

    def start(self, command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> Job:
        """Starts one command.

        Args:
            command: Its words; the first is the path of a Python interpreter.
            environment: Environment variables to set in addition to the present ones, for example limits on threads.
            folder: The working directory.
            log: The file that its output and errors are appended to.

        Raises:
            ganlab.GanlabError: It can never be started here; the message names the remedy.
        """
        raise NotImplementedError

    def wait(self, seconds: float) -> None:
        """Waits between two polls of the jobs; by default it sleeps.

        A launcher that is notified when a job ends may return at that moment: the next trial then starts without delay.

        Args:
            seconds: The longest time.
        """
        time.sleep(seconds)

    def close(self) -> None:
        """Releases what the launcher holds, after the last job has ended."""
