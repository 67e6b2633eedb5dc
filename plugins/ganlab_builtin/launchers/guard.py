"""A process between a sweep and one of its commands, which ends the command when the sweep ends or requests it.

Run by file name in a Python without site-packages, which starts in some 20 ms: each trial has one. It imports nothing
from ganlab.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable

CANNOT_START = 127

# How often to check for the parent's death if Linux does not signal it.
_LOOK_SECONDS = 1.0
# Signals that ask the command to end, and that kill it.
_ASKING, _KILLING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP), signal.SIGUSR1
_PR_SET_PDEATHSIG = 1


def guard(parent: int, grace: float, begin: Callable[[], object]) -> int:
    """Runs a command, begun in the new process, in a process group of its own, for a parent.

    SIGTERM is passed on to it, and sent to it when the parent dies. If it has not ended `grace` seconds after that, it
    is killed with its group; SIGUSR1 kills it at once.

    Returns:
        Its exit status, 128 plus the signal's number if a signal ended it.
    """
    received: list[int] = []
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (*_ASKING, _KILLING, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: received.append(number))
    _die_with_parent(signal.SIGTERM)
    # After the fork the child has the guard's handlers, which would swallow a signal: they wait until it has its own.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, (*_ASKING, _KILLING))
    try:
        child = os.fork()
    except OSError as error:
        print(f"The system lets no further process start: {error.strerror}.", file=sys.stderr, flush=True)
        return CANNOT_START
    if child == 0:
        _settle(os.getppid())
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        begin()
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    with contextlib.suppress(OSError):  # the child does so too: whichever comes first
        os.setpgid(child, child)
    asked_at: float | None = None
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _kill(child)  # what it left behind
            return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        if asked_at is None and (os.getppid() != parent or any(number in _ASKING for number in received)):
            asked_at = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        late = asked_at is not None and time.monotonic() - asked_at >= grace
        if late or _KILLING in received:
            _kill(child)
        if select.select([reading], [], [], _LOOK_SECONDS)[0]:
            os.read(reading, 4096)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _settle(parent: int) -> None:
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    for number in (*_ASKING, _KILLING, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    _die_with_parent(signal.SIGKILL)  # the parent is the guard: nothing else would end this process
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def execute(command: list[str]) -> None:
    """Replaces this process by a command; one that cannot be started ends with 127."""
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}.", file=sys.stderr, flush=True)
    finally:
        os._exit(CANNOT_START)


def _die_with_parent(number: int) -> None:
    """Asks Linux for a signal when the parent dies."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    sys.exit(guard(int(sys.argv[1]), float(sys.argv[2]), lambda: execute(sys.argv[3:])))
