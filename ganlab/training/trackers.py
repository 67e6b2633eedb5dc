"""Calls trackers with a run's events, each on a thread of its own: one that fails, exits or hangs stops nothing."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ganlab.plugins.manager import Plugins, failed
from ganlab.training.time_limits import NOTICE_SECONDS, STOPPING_SECONDS, limit

_Call = Callable[..., Any]

_LIMIT = "GANLAB_TRACKER_SECONDS"
_LOOK_SECONDS = 0.2


class Trackers:
    """The plugins that follow a run by hooks."""

    def __init__(
        self, plugins: Plugins, say: Callable[[str], None], stopping: Callable[[], bool] = lambda: False
    ) -> None:
        """Takes the plugins; `say` is called once for the same failure, and a run that is `stopping` waits for none."""
        self._plugins, self._say, self._stopping = plugins, say, stopping
        self._limit, self._here = limit(_LIMIT), _here()
        self._threads: dict[str, _Thread] = {}
        self._dropped: set[str] = set()
        self._said: set[str] = set()

    def call(self, hook: str, **arguments: Any) -> None:
        """Calls a hook of every plugin and waits for each, up to a limit; one that exceeds it is not called again."""
        for name, call in self._plugins.calls(hook):
            if name in self._dropped:
                continue
            thread = self._threads.get(name) or self._threads.setdefault(name, _Thread(name))
            # A list of its own for each tracker, which may change it.
            own = {key: list(value) if isinstance(value, list) else value for key, value in arguments.items()}
            done = thread.begin(call, own)
            if not self._answers(name, hook, done):
                self._dropped.add(name)
            elif thread.error is not None:
                self._once(failed(name, hook, thread.error))
            self._return(name, hook)

    def close(self) -> None:
        """Ends the threads; those of trackers that hang end with the process."""
        for thread in self._threads.values():
            thread.end()

    def _answers(self, name: str, hook: str, done: threading.Event) -> bool:
        begun, notice = time.monotonic(), NOTICE_SECONDS
        stopping_since: float | None = None
        while not done.wait(_LOOK_SECONDS):
            now = time.monotonic()
            waited = now - begun
            if self._stopping() and stopping_since is None:
                stopping_since = now
            leaving = stopping_since is not None and now - stopping_since >= STOPPING_SECONDS
            if waited >= self._limit or leaving:
                self._say(
                    f"Plugin {name!r} has not answered for {waited:.0f} s in {hook}: it is not called again, and the "
                    f"run {'stops' if leaving else 'continues'} without it. The limit is {_LIMIT}={self._limit:g}"
                    f"{f', {STOPPING_SECONDS:g} s for a run that is to stop' if leaving else ''}."
                )
                return False
            if waited >= notice:
                self._say(
                    f"Plugin {name!r} has not answered for {waited:.0f} s in {hook}: training waits for it, for at "
                    f"most {self._limit:g} s ({_LIMIT})."
                )
                notice *= 2
        return True

    def _return(self, name: str, hook: str) -> None:
        """Restores the working directory if a tracker has changed it, because a run's path may be relative to it."""
        with contextlib.suppress(OSError):
            if self._here and _here() != self._here:
                os.chdir(self._here)
                self._once(f"Plugin {name!r} changed the working directory in {hook}: it is reset to {self._here}.")

    def _once(self, failure: str) -> None:
        if failure not in self._said:  # else a tracker that is down fills the screen, row by row
            self._said.add(failure)
            self._say(failure)


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return ""


class _Thread:
    """The thread that runs all hooks of one plugin: what a hook opens may be usable only in the same thread."""

    def __init__(self, name: str) -> None:
        self.error: BaseException | None = None
        self._calls: queue.SimpleQueue[tuple[_Call, Mapping[str, Any], threading.Event] | None] = queue.SimpleQueue()
        # A daemon: the process does not wait for it at its end.
        self._thread = threading.Thread(target=self._serve, name=f"ganlab-tracker-{name}", daemon=True)
        self._thread.start()

    def begin(self, call: _Call, arguments: Mapping[str, Any]) -> threading.Event:
        """Starts a call; the event is set when it has ended, with `error` where it failed."""
        done = threading.Event()
        self._calls.put((call, arguments, done))
        return done

    def end(self) -> None:
        self._calls.put(None)

    def _serve(self) -> None:
        while (work := self._calls.get()) is not None:
            call, arguments, done = work
            self.error = None
            try:
                call(**arguments)
            except BaseException as error:  # sys.exit would end this thread silently
                self.error = error
            done.set()
