"""A command as a child process of whoever starts it: of a sweep, of a job in a cluster's queue, of an actor."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

CANNOT_START = 127

# A process that becomes the command, having asked Linux for SIGTERM when its parent dies, and having made sure that it
# did not die before. In Python's `preexec_fn` this could deadlock: launchers have threads.
_BECOME = f"""
import os, signal, sys
signal.pthread_sigmask(signal.SIG_SETMASK, ())
if sys.platform == "linux":
    import ctypes
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGTERM)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    print(f"{{sys.argv[2]}} cannot be started: {{error.strerror}}.", file=sys.stderr)
    sys.exit({CANNOT_START})
"""


class Child:
    """One command, started when this is made; on Linux it is told to end, by SIGTERM, when its parent dies.

    It is in a session of its own: Ctrl-C at a terminal is for the parent, which decides what its children do.
    """

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> None:
        """Starts it.

        Args:
            command: Its words.
            environment: All of its environment.
            folder: The working directory.
            log: The file that its output and errors are added to.

        Raises:
            OSError: The folder or the log cannot be used.
        """
        become = [sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), *command]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                become,
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        """Its exit status, 128 and the signal's number where one ended it, or None while it runs."""
        return _as_shells_count(self._process.poll())

    def wait(self, seconds: float) -> int | None:
        """Waits for its end, but no longer than this; as `poll` then."""
        try:
            return _as_shells_count(self._process.wait(seconds))
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """Sends it SIGTERM. One that has ended is left alone."""
        self._process.terminate()


def _as_shells_count(status: int | None) -> int | None:
    return 128 - status if status is not None and status < 0 else status
