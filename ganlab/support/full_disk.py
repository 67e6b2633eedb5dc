"""Recognizes the errors of a full disk, whichever library reports them."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

# A quota and a limit on the size of files have the same effect and the same remedy.
_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FEW = 1 << 16


def is_full_disk(error: BaseException | str) -> bool:
    """Whether an error, or its message, is that of a disk without space.

    Args:
        error: Of libraries that have no errors by number, such as TensorFlow, the message decides.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _NUMBERS
    return any(os.strerror(number) in str(error) for number in _NUMBERS)


def is_full(folder: Path) -> bool:
    """Whether not even a few bytes can be written to a folder's disk."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_FEW))
            file.flush()
    except OSError as error:
        return is_full_disk(error)
    return False
