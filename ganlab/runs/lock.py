"""One process trains into a run's directory at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator

from ganlab.errors import RunError
from ganlab.runs.run import Run


@contextlib.contextmanager
def locked(run: Run) -> Iterator[None]:
    """Holds a run's directory; the operating system lets go when the process dies, however it does.

    Raises:
        RunError: Another process holds it.
    """
    descriptor = os.open(run.path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = run.info.get("process") or "another process"
            raise RunError(f"{run.path} is being trained by {holder}. Wait for it, or stop it first.") from None
        run.update(process=f"process {os.getpid()} on {socket.gethostname()}")
        yield
    finally:
        os.close(descriptor)
