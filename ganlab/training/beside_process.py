"""The trainer's side: starts the process, asks it for evaluations and takes its answers."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from ganlab.errors import GanlabError
from ganlab.plugins import manager as plugins
from ganlab.plugins.blame import Running
from ganlab.runs import RunDirectory
from ganlab.support.processes import python_command, start_process
from ganlab.training.time_limits import limit
from ganlab.training.watchdog import LIMIT

# How long Python's waiting may last before a signal's handler runs, and before the process is killed at the end.
_LOOK_SECONDS, _END_SECONDS = 0.2, 5.0
# Of what it wrote to standard error, the bytes at the end that an error shows.
_TAIL = 400


class Beside:
    """A process that evaluates checkpoints of a run, one after another.

    It sees no accelerator, which belongs to the training, and yields the processor to it.

    Attributes:
        asked: The step whose evaluation has not been taken yet, or None.
    """

    def __init__(self, run: RunDirectory) -> None:
        """Starts the process, which makes the experiment while training begins."""
        rows = plugins.current().rows
        local = [row.distribution for row in rows if row.name == plugins.LOCAL_MODULE and row.status != "disabled"]
        request = {
            "run": str(run.path.resolve()),
            "no_plugin": [row.name for row in rows if row.status == "disabled" and row.name != plugins.LOCAL_MODULE],
            "plugin_file": local[0] if local else None,
        }
        self.asked: int | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        self._child = start_process(
            python_command("-m", "ganlab.beside"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C goes to the trainer alone
        )
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._running: Running | None = None
        self._limit = limit(LIMIT)
        threading.Thread(target=self._read, name="ganlab-beside", daemon=True).start()
        self._ready = False
        self._send(request)

    def ask(self, step: int, checkpoint: Path) -> None:
        """Asks for the evaluation of a checkpoint."""
        self.asked = step
        self._send({"step": step, "checkpoint": str(checkpoint.resolve())})

    def answer(self, *, wait: bool = False) -> dict[str, Any] | None:
        """The evaluation that was asked for: `figures`, `records`, `picture` and `complaints`.

        Args:
            wait: Whether to wait for it.

        Returns:
            None if it is not ready, or nothing was asked for.

        Raises:
            GanlabError: It failed, or the process ended, or could not make the experiment, or a plugin in it has not
                answered within its limit.
        """
        wait = wait and self.asked is not None
        if not self._ready and self._take(wait=wait) is None:
            return None
        self._ready = True
        found = None if self.asked is None else self._take(wait=wait)
        if found is not None:
            self.asked = None
        return found

    def close(self) -> None:
        """Ends the process, whatever it does."""
        with contextlib.suppress(OSError):
            if self._child.stdin is not None:
                self._child.stdin.close()  # upon which it exits
        try:
            self._child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._said.close()

    def _send(self, request: dict[str, Any]) -> None:
        assert self._child.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, which the missing answer shows
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()

    def _read(self) -> None:
        assert self._child.stdout is not None
        with contextlib.suppress(ValueError):  # killed while it wrote a line
            for text in self._child.stdout:
                found = json.loads(text)
                if "running" in found:
                    code = found["running"]
                    self._running = Running(code[0], code[1], time.monotonic()) if code else None
                else:
                    self._answers.put(found)
        self._answers.put(None)

    def _take(self, *, wait: bool) -> dict[str, Any] | None:
        while True:
            try:
                found = self._answers.get(wait, _LOOK_SECONDS if wait else None)
            except queue.Empty:
                self._check_time()
                if not wait:
                    return None
                continue
            if found is None:
                where = f" in {self._running.part}, {self._running.method}," if self._running else ""
                raise GanlabError(f"The process that evaluates beside training ended{where}{self._how()}.")
            if "error" in found:
                raise GanlabError(found["error"])
            return found

    def _check_time(self) -> None:
        code = self._running
        seconds = 0.0 if code is None else time.monotonic() - code.since
        if code is not None and seconds >= self._limit:
            raise GanlabError(
                f"{code.part} has not answered for {seconds:.0f} s in {code.method}, beside training; the limit is "
                f"{LIMIT}={self._limit:g}. Raise the limit, or leave the plugin out"
            )

    def _how(self) -> str:
        code = self._child.wait()
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - _TAIL))
        said = self._said.read().decode(errors="replace").strip().rpartition("\n")[2]
        return f" with exit status {code}{f': {said}' if said else ''}"
