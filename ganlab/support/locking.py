"""Locks a folder for as long as a process lives."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked_folder(path: Path, *, shared: bool = False) -> Iterator[bool]:
    """Context manager: locks a folder until the end of the block, or of the process, however it dies.

    Args:
        path: The folder.
        shared: Whether others that share it may hold it at the same time.

    Yields:
        False if another process holds it, or this one elsewhere. True on a file system without locks: better unguarded
        than not at all.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        ours = True
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            ours = not isinstance(error, BlockingIOError)
        yield ours
    finally:
        os.close(descriptor)
