"""Guards the import of plugins: redirects what they print away from a command's output, and names one that hangs.

It also silences the messages of TensorFlow in plugins that import it at module level.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from typing import Any

from ganlab.lazy import no_greetings, quiet_native_stderr

# Importing TensorFlow takes some seconds on a slow disk; anything slower deserves a message.
_SLOW_SECONDS = 10.0


@contextlib.contextmanager
def watched(name: str, origin: str) -> Iterator[None]:
    """Context manager: a plugin is imported inside.

    Its output goes to standard error. After ten seconds, and if it is interrupted, a message there names the plugin.
    """
    remedy = f"'--no-plugin {name}' leaves it out"
    note = f"Still importing the plugin {name!r} of {origin} after {_SLOW_SECONDS:g} s; Ctrl-C stops, {remedy}."
    timer = threading.Timer(_SLOW_SECONDS, lambda: print(note, file=sys.stderr, flush=True))
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # the system gives no thread for the message, which is no plugin's fault
        timer.start()
    try:
        with printing_to_stderr(), quiet_tensorflow():
            yield
    except KeyboardInterrupt:
        print(f"Interrupted while importing the plugin {name!r} of {origin}; {remedy}.", file=sys.stderr)
        raise
    finally:
        timer.cancel()


@contextlib.contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Context manager: redirects standard output to standard error, for Python, native code and child processes."""
    with contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, ValueError, AttributeError):  # no such streams, as under some services
            if sys.__stdout__ is not None:
                sys.__stdout__.flush()
            saved = os.dup(1)
            stack.callback(os.close, saved)
            os.dup2(2, 1)
            stack.callback(os.dup2, saved, 1)
        yield


@contextlib.contextmanager
def quiet_tensorflow() -> Iterator[None]:
    """Context manager: silences the first import of TensorFlow inside, and nothing else."""
    if "tensorflow" in sys.modules:
        yield
        return
    finder = _QuietFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.remove()


class _QuietFinder:
    """Finds TensorFlow as usual, once, and has it executed with standard error withheld."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "tensorflow":
            return None
        self.remove()
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            no_greetings()
            spec.loader = _QuietLoader(spec.loader)  # type: ignore[assignment]
        return spec

    def remove(self) -> None:
        """Removes itself from the list of finders."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _QuietLoader:
    """A loader that behaves like another, but withholds standard error while it executes the module."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Executes the module and restores its own loader."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with quiet_native_stderr():
            self._loader.exec_module(module)
