"""While a plugin is imported: what it prints must not mix with what a command prints, and one that hangs has a name.

TensorFlow, where a plugin imports it at its top, must not greet every command.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import threading
import types
from collections.abc import Iterator, Sequence
from typing import Any

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
        with printing_to_stderr(), quiet_tensorflow():
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


@contextlib.contextmanager
def quiet_tensorflow() -> Iterator[None]:
    """Inside, whoever is the first to import TensorFlow does so without its greeting; nothing else is withheld."""
    if "tensorflow" in sys.modules:
        yield
        return
    finder = _QuietFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.remove()


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
        _flush()
        os.dup2(withheld.fileno(), 2)
        try:
            yield
        except BaseException:
            withheld.seek(0)
            os.write(screen, withheld.read())
            raise
        finally:
            _flush()
            os.dup2(screen, 2)
            os.close(screen)


def no_greetings() -> None:
    """Has TensorFlow, which is not yet imported, say nothing of devices, unless the environment wants it to."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # there may be no such stream
        sys.stderr.flush()


class _QuietFinder:
    """Finds TensorFlow as it would be found without it, once, and has it executed with standard error withheld."""

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
        """Goes from the list of finders."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _QuietLoader:
    """A loader that behaves as another, but for what is written while it executes the module."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Executes the module, which keeps its own loader."""
        module.__loader__ = self._own
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        with quiet_native_stderr():
            self._own.exec_module(module)
