"""While a plugin is imported: what it prints must not mix with what a command prints, and one that hangs has a name."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

# Importing TensorFlow takes some seconds on a slow disk; whatever takes longer, somebody is waiting for.
_SLOW_SECONDS = 10.0


@contextlib.contextmanager
def watched(name: str, origin: str) -> Iterator[None]:
    """Inside, a plugin is imported.

    What it prints goes to standard error. After ten seconds, and where it is interrupted, standard error says which
    plugin it is.

    Args:
        name: The plugin's name.
        origin: The distribution that brings it, or its file.
    """
    remedy = f"'--no-plugin {name}' leaves it out"
    note = f"Still importing the plugin {name!r} of {origin} after {_SLOW_SECONDS:g} s; Ctrl-C stops, {remedy}."
    timer = threading.Timer(_SLOW_SECONDS, lambda: print(note, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        with printing_to_stderr():
            yield
    except KeyboardInterrupt:
        print(f"Interrupted while importing the plugin {name!r} of {origin}; {remedy}.", file=sys.stderr)
        raise
    finally:
        timer.cancel()


@contextlib.contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Inside, standard output is standard error: for what Python prints, and for native code and child processes."""
    with contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, ValueError, AttributeError):  # no such streams, as under some services
            if sys.__stdout__ is not None:
                sys.__stdout__.flush()
            kept = os.dup(1)
            stack.callback(os.close, kept)
            os.dup2(2, 1)
            stack.callback(os.dup2, kept, 1)
        yield
