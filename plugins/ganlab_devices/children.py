"""Runs checks in another process that may hang, die or print anything, and always returns."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from ganlab import start_process
from ganlab_devices.probe import MARK

# The most of a line that is read at once.
_LONGEST = 1 << 16
_KILL_SECONDS = 5.0


def answers(
    command: Sequence[str], checks: Sequence[str], limit: Callable[[str], float]
) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yields the name of each check with what it found, or with the reason that there is no answer.

    A failure ends its process, because later checks would see what it left; they get a new one.

    Args:
        command: The program, which takes the names of checks and answers each as `probe.py` does.
        checks: The names.
        limit: The most seconds that a check may take, by its name.
    """
    waiting = list(checks)
    while waiting:
        child = _Child([*command, *waiting])
        try:
            answer: dict[str, Any] | str = {}
            while waiting and not isinstance(answer, str):
                answer = child.answer(waiting[0], limit(waiting[0]))
                yield waiting.pop(0), answer
        finally:
            child.end()


class _Child:
    """A process that answers checks."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = start_process(
            command, cwd=os.sep, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        self._printed = b""
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def answer(self, check: str, seconds: float) -> dict[str, Any] | str:
        """What the check found; or why there is no answer."""
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            return f"no answer within {seconds:g} s{self._last_words()}"
        if line is None:
            return self._end_of_it()
        try:
            found = json.loads(line.removeprefix(MARK.encode()))
            if found["check"] != check:
                raise ValueError(found["check"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return f"an answer that cannot be read: {line[:200].decode(errors='replace')!r}"
        return str(found["failed"]) if "failed" in found else found

    def end(self) -> None:
        """Kills it, and does not wait for a process that a driver holds."""
        self._process.kill()
        self._waited(_KILL_SECONDS)

    def _read(self, output: IO[bytes]) -> None:
        while line := output.readline(_LONGEST):
            if line.startswith(MARK.encode()):
                self._answers.put(line)
            elif line.strip():
                self._printed = line
        self._answers.put(None)

    def _end_of_it(self) -> str:
        code = self._waited(_KILL_SECONDS)
        if code is None:
            return f"it closed its output{self._last_words()}"
        if code < 0:
            return f"it died of {_name(-code)}{self._last_words()}"
        return f"it ended with exit status {code} and no answer{self._last_words()}"

    def _waited(self, seconds: float) -> int | None:
        until = time.monotonic() + seconds
        while (code := self._process.poll()) is None and time.monotonic() < until:
            time.sleep(0.01)
        return code

    def _last_words(self) -> str:
        printed = self._printed.decode(errors="replace").strip()
        return f", and printed last: {printed[:300]}" if printed else ""


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
