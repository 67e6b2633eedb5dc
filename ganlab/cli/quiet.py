"""Keeps native libraries' greetings off the screen."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator


def start_tensorflow() -> None:
    """Imports TensorFlow without its greeting.

    Raises:
        MissingDependencyError: It is not installed.
    """
    # Before the import, which greets with pages of notes on devices that are not there.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from ganlab.lazy import require

    with quiet_native_stderr():
        require("tensorflow")


@contextlib.contextmanager
def quiet_native_stderr() -> Iterator[None]:
    """Withholds what native code writes to standard error inside; it is shown after all if an exception leaves.

    TensorFlow's libraries greet, at import, with notes on devices that are not there, before any log level applies.
    """
    try:
        screen = os.dup(2)
    except OSError:  # no standard error at all
        yield
        return
    with tempfile.TemporaryFile() as withheld:
        sys.stderr.flush()
        os.dup2(withheld.fileno(), 2)
        try:
            yield
        except BaseException:
            withheld.seek(0)
            os.write(screen, withheld.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(screen, 2)
            os.close(screen)
