"""Watches evaluators and diagnostics while they run: one that hangs is named, times out, and blocks no signal."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

from ganlab.errors import Interruption
from ganlab.plugins import plugin_errors
from ganlab.support.signals import exit_code
from ganlab.training.interruption import Received, StoppedError
from ganlab.training.time_limits import STOPPING_SECONDS, limit

LIMIT = "GANLAB_EVALUATOR_SECONDS"
# Evaluators may well take minutes. One that takes longer is named, again after twice the time, and so on.
_NOTICE_SECONDS = 600.0
_LOOK_SECONDS = 0.2
_AGAIN_SECONDS = 1.0


class OverdueError(Interruption):
    """A plugin has not answered within its limit."""


class Watch:
    """Watches the training thread while it runs code that may hang.

    A signal raises an error in that thread at once, and so does exceeding the limit. If a plugin swallows the error, or
    waits in compiled code, the watching thread saves the run and ends the process.
    """

    def __init__(self, received: Received, say: Callable[[str], None], *, alone: bool) -> None:
        """Takes the signals, what to call with notices, and whether a signal ends the running code.

        Where other processes train with this one, it does not: they would wait for it.
        """
        self._received, self._say, self._alone = received, say, alone
        self._limit = limit(LIMIT)

    @contextlib.contextmanager
    def over(self, leave: Callable[[str, str | None], None]) -> Iterator[None]:
        """Context manager: watches the current thread.

        Args:
            leave: Saves the run from another thread, given a status and the name of the signal or None.

        Raises:
            OverdueError: A plugin has not answered within its limit.
        """
        thread, watched = threading.get_ident(), _Watched()
        arguments = (watched, thread, leave)
        watcher = threading.Thread(target=self._watch, args=arguments, name="ganlab-watch", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            if not watched.leave():
                watcher.join()  # which ends the process
            self._received.let_be()

    def _watch(self, watched: _Watched, thread: int, leave: Callable[[str, str | None], None]) -> None:
        notice, asked_at, raised_at, asked_again_at = _NOTICE_SECONDS, None, None, 0.0
        while not watched.left.wait(_LOOK_SECONDS):
            now, code = time.monotonic(), plugin_errors.running(thread)
            asked = self._received.asked() if self._alone else None
            asked_at = asked_at or (now if asked else None)
            if asked and asked_at is not None and now - max(asked_at, asked_again_at) >= _AGAIN_SECONDS:
                asked_again_at = now  # it came while nothing could be abandoned, or a library has lost the error
                self._received.interrupt(StoppedError())
            if code is None:  # ganlab's own code, for example to write a picture
                raised_at = None
                continue
            seconds = now - code.since
            hangs = f"{code.part} has not answered for {seconds:.0f} s in {code.method}"
            since_asked = min(now - asked_at, seconds) if asked_at is not None else 0.0
            if asked and since_asked >= STOPPING_SECONDS and watched.claim():
                self._end(f"{hangs} and ignores {asked.name}", exit_code(asked.name), leave, "interrupted", asked.name)
            elif raised_at is not None and now - raised_at >= STOPPING_SECONDS and watched.claim():
                self._end(f"{hangs} and ignores the error", 1, leave, "failed", None)
            elif raised_at is None and seconds >= self._limit and thread == threading.main_thread().ident:
                raised_at = now
                self._received.interrupt(OverdueError(f"{hangs}; the limit is {LIMIT}={self._limit:g}"))
            elif seconds >= notice:
                notice *= 2
                self._say(f"{hangs}: training waits for it, for at most {self._limit:g} s ({LIMIT}).")

    def _end(
        self, what: str, code: int, leave: Callable[[str, str | None], None], status: str, name: str | None
    ) -> NoReturn:
        try:
            self._say(f"{what}: saving the run and exiting without it.")
            leave(status, name)
        except BaseException as error:
            code = 1
            with contextlib.suppress(Exception):
                self._say(f"The run could not be saved: {error}")
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(code)


class _Watched:
    """Decides which of two threads acts: the watched one, if it has left in time, or the watching one."""

    def __init__(self) -> None:
        self.left = threading.Event()
        self._lock, self._claimed = threading.Lock(), False

    def leave(self) -> bool:
        """Whether the watched thread may proceed."""
        with self._lock:
            self.left.set()
            return not self._claimed

    def claim(self) -> bool:
        """Whether the watching thread may act in its place."""
        with self._lock:
            self._claimed = not self.left.is_set()
            return self._claimed
