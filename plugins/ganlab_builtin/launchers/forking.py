"""A process that has imported TensorFlow once and forks for every trial, which then starts in a fraction of a second.

It is a program: `python -P -m ganlab_builtin.launchers.forking DESCRIPTOR`, with one end of a Unix socket. It imports
everything, touches no device, and then takes one JSON object a line: `{"start": 1, "arguments": [...], "grace": 60}`
with the log and the working directory as descriptors, `{"stop": 1}` and `{"kill": 1}`. It answers
`{"started": 1, "process": 1234}` and `{"ended": 1, "status": 0}`. Each trial has a guard of its own; when the other
end of the socket is closed this process ends, and the guards ask their trials to save.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
from typing import Any, NoReturn

import ganlab
import ganlab_builtin
from ganlab_builtin.launchers import guard

_MESSAGE_BYTES = 1 << 20
_DESCRIPTORS = 2


class _Forked(BaseException):
    """Raised in a new trial, to leave the frames of the server behind."""

    def __init__(self, arguments: list[str]) -> None:
        self.arguments = arguments


class Server:
    """Starts trials, passes signals on to them, and reports their ends."""

    def __init__(self, connection: socket.socket) -> None:
        """Takes its end of the socket."""
        self._connection = connection
        self._guards: dict[int, int] = {}  # the number of a trial, by the process of its guard
        self._read, self._written = os.pipe()
        self._rest = b""
        self._descriptors: list[int] = []

    def serve(self) -> None:
        """Serves until the other end is closed."""
        for descriptor in (self._read, self._written):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._written, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while True:
            ready, _, _ = select.select([self._connection.fileno(), self._read], [], [])
            if self._read in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._read, 4096)
            if self._connection.fileno() in ready and not self._receive():
                return
            self._reap()

    def _receive(self) -> bool:
        """Takes what has come; returns whether the other end is open."""
        data, descriptors, _, _ = socket.recv_fds(self._connection, _MESSAGE_BYTES, _DESCRIPTORS)
        self._descriptors += descriptors
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "start" in message:
                log, folder, *self._descriptors = self._descriptors
                self._start(message, log, folder)
            for name, number in (("stop", signal.SIGTERM), ("kill", signal.SIGUSR1)):
                for process, trial in self._guards.items():
                    if message.get(name) == trial:
                        os.kill(process, number)
        return bool(data)

    def _start(self, message: dict[str, Any], log: int, folder: int) -> None:
        server = os.getpid()
        process = os.fork()
        if process == 0:
            self._leave(log, folder)
            os._exit(guard.guard(server, message["grace"], lambda: _begin(message["arguments"])))
        os.close(log)
        os.close(folder)
        self._guards[process] = message["start"]
        self._say(started=message["start"], process=process)

    def _leave(self, log: int, folder: int) -> None:
        """Makes a forked process independent of the server: session, streams, folder and signals."""
        os.setsid()
        for stream in (1, 2):
            os.dup2(log, stream)
        os.fchdir(folder)
        signal.set_wakeup_fd(-1)
        for descriptor in (log, folder, self._read, self._written, *self._descriptors):
            os.close(descriptor)
        self._connection.close()

    def _reap(self) -> None:
        for process in list(self._guards):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                self._say(ended=self._guards.pop(process), status=code)

    def _say(self, **message: int) -> None:
        with contextlib.suppress(OSError):  # the other end was closed: the next read says so
            self._connection.sendall(json.dumps(message).encode() + b"\n")


def _begin(arguments: list[str]) -> None:
    import numpy as np

    signal.signal(signal.SIGINT, signal.default_int_handler)
    np.random.seed()  # else all trials have the same global generator, where a new process has a random one
    raise _Forked(arguments)


def main(descriptor: int) -> None:
    """Imports what training needs, and serves at this end of the socket."""
    connection = socket.socket(fileno=descriptor)
    ganlab.preload()
    for module in pkgutil.iter_modules(ganlab_builtin.__path__):
        importlib.import_module(f"{ganlab_builtin.__name__}.{module.name}")
    gc.collect()
    gc.freeze()  # the collector of a trial would otherwise write to, and so copy, every page
    try:
        Server(connection).serve()
        return
    except _Forked as forked:
        arguments = forked.arguments
    sys.argv = arguments
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise  # a message, which Python prints
        _end(ended.code or 0)
    _end(0)


def _end(status: int) -> NoReturn:
    """Ends a trial as Python would, but leaves it to the system to free a gigabyte of TensorFlow's objects."""
    threading._shutdown()  # type: ignore[attr-defined]  # as multiprocessing ends a forked process
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main(int(sys.argv[1]))
