"""Handles signals that ask a process to stop in good order."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ganlab.errors import Interruption

# A terminal that closes sends SIGHUP.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def exit_code(name: str) -> int:
    """The exit code of a process that a signal stopped, by the convention of shells: 128 plus the signal's number.

    Args:
        name: The signal's name, e.g. "SIGTERM". A signal not in `STOPPING` counts as SIGINT.
    """
    return 128 + next((number for number in STOPPING if number.name == name), signal.SIGINT)


_undisturbed = 0


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Context manager for short work with libraries that lose an error raised by a signal's handler, or raise another.

    Handlers that abandon work ask `is_undisturbed` first.
    """
    global _undisturbed
    _undisturbed += 1
    try:
        yield
    finally:
        _undisturbed -= 1


def is_undisturbed() -> bool:
    """Whether such work is under way; signals are handled in the main thread, and this is meant for it."""
    return _undisturbed > 0


class Collector:
    """Collects the signals that arrive instead of exiting; a second SIGINT raises KeyboardInterrupt.

    Attributes:
        received: The signals, in order.
    """

    def __init__(self, on_first: Callable[[], None] = lambda: None) -> None:
        """Takes what to do when the first signal arrives."""
        self.received: list[signal.Signals] = []
        self._on_first = on_first

    def receive(self, number: int, frame: Any) -> None:
        """Takes a signal, as a handler."""
        self.received.append(signal.Signals(number))
        if len(self.received) == 1:
            self._on_first()
        elif number == signal.SIGINT:
            raise KeyboardInterrupt


@contextlib.contextmanager
def handling(handler: Callable[[int, Any], Any]) -> Iterator[None]:
    """Context manager: a handler receives the signals that ask to stop. An ignored SIGHUP (nohup) stays ignored.

    Outside of the main thread, which alone handles signals, it changes nothing.

    Args:
        handler: Called with the signal's number and the frame.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
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


class _EndedError(Interruption):
    """Raised by a signal that would otherwise end the process at once."""


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """Context manager for work that must be cleaned up: SIGTERM and SIGHUP end it by an exception, as SIGINT does.

    Where they would end the process at once they end it after the block, by SystemExit with the exit code of the
    signal. Where something else handles them, that stays as it is, and so it does outside of the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: Any) -> None:
        raise _EndedError(number)

    ours = [number for number in STOPPING if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, leave)
        yield
    except _EndedError as error:
        if not ours:  # a block around this one ends the process
            raise
        raise SystemExit(128 + error.args[0]) from None
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
