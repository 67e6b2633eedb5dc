"""Being asked to stop: SIGINT and SIGTERM end a run in good order."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class StoppedError(BaseException):
    """A signal came where what is being done may be left: no `Exception`, which a plugin might catch."""


class Received:
    """The signals that came."""

    def __init__(self) -> None:
        self._received: list[signal.Signals] = []
        self._leaving = False

    @property
    def first(self) -> signal.Signals | None:
        """The one that the run stops for, or None."""
        return self._received[0] if self._received else None

    @contextlib.contextmanager
    def leaving(self, allowed: bool) -> Iterator[None]:
        """Inside, a signal does not wait: what is being done is left where it is.

        Args:
            allowed: Whether that is so.

        Raises:
            StoppedError: A signal comes, or has come before.
        """
        self._leaving = allowed
        try:
            if allowed and self._received:
                raise StoppedError
            yield
        finally:
            self._leaving = False

    def receive(self, number: int, frame: Any) -> None:
        """Takes a signal, as a handler."""
        if self._received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._received.append(signal.Signals(number))
        if self._leaving:
            self._leaving = False
            raise StoppedError


@contextlib.contextmanager
def signals() -> Iterator[Received]:
    """Collects SIGINT and SIGTERM instead of dying of the first; a second SIGINT interrupts at once."""
    received = Received()
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.signal(number, received.receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
