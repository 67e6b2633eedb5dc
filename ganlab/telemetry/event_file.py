"""Writes event files, TensorBoard's sequences of checksummed records, in the calling thread.

TensorBoard's own writer computes checksums in Python, a third of a millisecond for the row of a step, and writes from a
thread, where a full disk prints a traceback. TensorFlow's writer, used here, is compiled.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event

from ganlab.lazy import tensorflow as tf
from ganlab.support.durable import sync

PATTERN = "events.out.tfevents.*"
# A full file is followed by another one, so that resuming rewrites only those with later steps.
FULL_BYTES = 64 << 20


class EventFile:
    """The event file of one process in a folder; when it is full, the next one."""

    def __init__(self, folder: Path, *, full_bytes: int = FULL_BYTES) -> None:
        """Opens a new file.

        Args:
            folder: The folder of the file.
            full_bytes: The size at which another file is begun.

        Raises:
            OSError: It cannot be written.
        """
        self._folder, self._full = folder, full_bytes
        self._count = 0
        self._writer: Any = None
        self._open()

    def add(self, event: Event) -> None:
        """Takes an event.

        Raises:
            OSError: It cannot be written.
        """
        self._check_open()
        data = event.SerializeToString()
        if self._bytes and self._bytes + len(data) > self._full:
            self.close()
            self._open()
        self._do(self._writer.write, data)
        self._bytes += len(data)

    def flush(self) -> None:
        """Waits until all events taken so far are on disk.

        Raises:
            OSError: It cannot be written.
        """
        self._check_open()
        self._do(self._writer.flush)
        sync(self._path)

    def close(self) -> None:
        """Flushes and closes the file; closing it again does nothing.

        Raises:
            OSError: It cannot be written.
        """
        if self._writer is not None:
            writer, self._writer = self._writer, None
            self._do(writer.close)
            sync(self._path)

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard reads a folder's files in the order of their names: a clock that was set back must not change it.
        seconds = max([int(time.time()), *(_time_of(path) + 1 for path in self._folder.glob(PATTERN))])
        name = f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}.{os.getpid()}.{self._count}"
        self._path, self._bytes, self._count = self._folder / name, 0, self._count + 1
        self._writer = self._do(tf.io.TFRecordWriter, str(self._path))
        self.add(Event(wall_time=time.time(), file_version="brain.Event:2"))

    def _check_open(self) -> None:
        # The next file could not be begun: each later write reports that again, like any other failure.
        if self._writer is None:
            raise OSError(f"the event file {self._path.name} is not open")

    def _do(self, what: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return what(*arguments)
        except tf.errors.OpError as error:
            raise OSError(f"the event file {self._path.name}: {error.message}") from error


def _time_of(path: Path) -> int:
    part = path.name.split(".")[3]
    return int(part) if part.isdecimal() else 0
