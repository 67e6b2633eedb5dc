"""Signals that ask a process to stop in good order."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

# SIGHUP is what a terminal that closes sends.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def exit_code(name: str) -> int:
    """The exit code of a process that a signal stopped, as shells count: 128 and the signal's number.

    Args:
        name: Of the signal, such as "SIGTERM". One that is not in `STOPPING` counts as SIGINT.
    """
    return 128 + next((number for number in STOPPING if number.name == name), signal.SIGINT)


@contextlib.contextmanager
def handling(handler: Callable[[int, Any], Any]) -> Iterator[None]:
    """Inside, a handler takes the signals that ask to stop. A SIGHUP that is ignored, as under nohup, stays ignored.

    Args:
        handler: Takes the signal's number and the frame.
    """
    before = {
        number: signal.signal(number, handler)
        for number in STOPPING
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
