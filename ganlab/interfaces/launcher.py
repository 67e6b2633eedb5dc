"""What starts the trials of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


class Job:
    """One command that a launcher has started or put in a queue."""

    def poll(self) -> int | None:
        """Its exit status, or None while it waits or runs; never blocks for long.

        A process that a signal ended has 128 and the signal's number, as shells count, whatever the launcher. What
        ended without its own doing (a machine lost, a time limit) has one that is not 0.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Asks it to save and end: SIGTERM where it runs, out of the queue where it waits. Returns at once."""
        raise NotImplementedError

    def kill(self) -> None:
        """Ends it at once, with all that it started, where `stop` had no effect for too long. Returns at once.

        By default it does nothing, and the sweep ends without it.
        """


class Launcher:
    """Starts commands, each as a process of its own, on this machine or on others that see the same folders.

    A launcher keeps nothing that a sweep needs: where the sweep dies, its jobs end soon (they may save first), and a
    new sweep finds in the run directories what they did.

    Attributes:
        grace_seconds: How long a job may take that was asked to save and end; a sweep kills it some time after that.
    """

    grace_seconds: float = 60.0

    def start(self, command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> Job:
        """Starts one command.

        Args:
            command: Its words; the first is the path of a Python interpreter.
            environment: What to set beside the variables that are there, such as limits on threads.
            folder: The working directory.
            log: The file that its output and errors are added to.

        Raises:
            ganlab.GanlabError: It cannot be started here, ever; the message says what to do.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Lets go of what the launcher holds, after the last job ended."""
