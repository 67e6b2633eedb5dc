"""Signals that stop a run: SIGINT, SIGTERM and SIGHUP let it save and end in good order."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

from ganlab.errors import Interruption
from ganlab.support.signals import STOPPING, Collector, handling, is_undisturbed


class StoppedError(Interruption):
    """A signal arrived during work that may be abandoned."""


class Received(Collector):
    """The signals that arrived."""

    def __init__(self, woken: int | None = None) -> None:
        """Takes the file descriptor that signals are written to before Python's handlers see them, or None."""
        super().__init__()
        self._leaving = False
        self._woken, self._seen = woken, b""
        self._reading = threading.Lock()
        self._overdue: Interruption | None = None
        self._pokes, self._poked = 0, 0

    @property
    def first(self) -> signal.Signals | None:
        """The signal that the run stops for, or None."""
        return self.received[0] if self.received else None

    def asked(self) -> signal.Signals | None:
        """The signal that the run is to stop for, even before the main thread handles it; any thread may call this."""
        with self._reading:
            if self.first is None and self._woken is not None:
                with contextlib.suppress(BlockingIOError):
                    self._seen += os.read(self._woken, 4096)
        seen = [number for number in self._seen if number in STOPPING]
        for _ in range(min(self._pokes, seen.count(signal.SIGINT))):
            seen.remove(signal.SIGINT)
        return self.first or next(map(signal.Signals, seen), None)

    @property
    def interrupted(self) -> bool:
        """Whether SIGINT arrived a second time, for which Python's KeyboardInterrupt is raised."""
        return signal.SIGINT in self.received[1:]

    def interrupt(self, error: Interruption) -> None:
        """Raises an error in the main thread from another thread, and so ends whatever it waits for."""
        self._overdue, self._pokes = error, self._pokes + 1
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def end(self) -> None:
        """Closes the file descriptor. A thread may still ask, and the number may soon be another file's."""
        with self._reading:
            if self._woken is not None:
                os.close(self._woken)
                self._woken = None

    def let_be(self) -> None:
        """Cancels an `interrupt` that has not arrived yet."""
        self._overdue = None

    @contextlib.contextmanager
    def leaving(self, allowed: bool) -> Iterator[None]:
        """Context manager: a signal abandons the work inside at once, if `allowed` and not `undisturbed`."""
        self._leaving = allowed
        try:
            if allowed and self.received:
                raise StoppedError
            yield
        except Exception:
            # Compiled code, of a plotting library for example, turns StoppedError into others.
            if not (allowed and self.received):
                raise
            raise StoppedError from None
        finally:
            self._leaving = False

    def receive(self, number: int, frame: Any) -> None:
        """Takes a signal, as a handler."""
        if number == signal.SIGINT and self._poked < self._pokes:
            self._poked += 1
            if is_undisturbed():
                return  # whoever waits asks again
            error, self._overdue = self._overdue, None
            if error is not None:
                raise error
            return
        super().receive(number, frame)
        if self._leaving and not is_undisturbed():
            raise StoppedError


@contextlib.contextmanager
def signals() -> Iterator[Received]:
    """Context manager: collects SIGINT, SIGTERM and SIGHUP instead of exiting; a second SIGINT interrupts at once."""
    if threading.current_thread() is not threading.main_thread():
        yield Received()
        return
    # Python's handlers run between two steps of the main thread, and a plugin may never reach the next step.
    reading, writing = os.pipe()
    for descriptor in (reading, writing):
        os.set_blocking(descriptor, False)
    received = Received(reading)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        with handling(received.receive):
            yield received
    finally:
        signal.set_wakeup_fd(before)
        received.end()
        os.close(writing)
