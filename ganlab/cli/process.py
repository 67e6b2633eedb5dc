"""The command line's process: closed or full streams, and memory or threads that the system refuses."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import resource
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from ganlab.cli.messages import message_of
from ganlab.support.full_disk import is_full_disk

_FAILED = 1
_NAMES = ("stdin", "stdout", "stderr")
# TensorFlow's error, by name: a command that fails need not have imported TensorFlow.
_EXHAUSTED = "ResourceExhaustedError"


def open_streams() -> None:
    """Makes standard input, output and error usable: closed ones go to /dev/null, and standard error never fails.

    Otherwise the first file that a run opens would become its standard error, and error messages would land in it.
    """
    for number, name in enumerate(_NAMES):
        try:
            os.fstat(number)
        except OSError:
            _open_on_nothing(number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
    sys.stdout, sys.stderr = _over(sys.stdout, _Output), _over(sys.stderr, _Unfailing)


def finish(command: Callable[[], Any]) -> int:
    """Runs a command as click does, which raises `SystemExit`, and returns its exit code.

    A resource that the system refuses (disk space behind standard output, memory, threads) is reported in one sentence
    on standard error.
    """
    code: Any = 0
    try:
        command()
    except SystemExit as end:
        code = end.code
    except Exception as error:
        message = refused(error)
        if message is None:
            raise
        if "--debug" in sys.argv[1:]:
            traceback.print_exception(error)
        code = _report(message)
    if isinstance(code, str):
        code = _report(code)
    try:
        sys.stdout.flush()
    except OSError as error:
        # The unwritten output stays in the buffer, and Python would try to write it again on exit.
        _open_on_nothing(1)
        if not code:
            code = _FAILED if error.errno == errno.EPIPE else _report(_no_output(error))
    gc.freeze()  # else Python, as it ends, spends a second on collecting what TensorFlow has made
    return int(code or 0)


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Context manager: drops output that cannot be written, so that a closed terminal does not change the exit code."""
    try:
        yield
    except OSError as error:
        if not _is_of_output(error):
            raise


def refused(error: BaseException) -> str | None:
    """The message for an error that the system caused; None for any other."""
    if isinstance(error, OSError) and _is_of_output(error):
        return _no_output(error)
    cause = _innermost(error)
    if is_full_disk(cause) and not isinstance(cause, OSError):
        return f"{_sentence(cause)}. Free some space, or write to another disk."
    if isinstance(cause, MemoryError) or type(cause).__name__ == _EXHAUSTED or _is_no_memory(cause):
        return (
            f"There is not enough memory ({_sentence(cause)}). {_limit('Close other programs, or use smaller parts')}"
        )
    if isinstance(cause, RuntimeError):
        if "can't start new thread" not in str(cause):
            return None
        return "The system does not let this process start another thread. " + _limit(
            "Raise the limit of processes (ulimit -u)"
        )
    if isinstance(cause, ImportError):
        where = f"{cause.name} cannot be imported: " if cause.name else ""
        return f"{where}{_sentence(cause)}. " + _limit("'ganlab doctor' examines the installation")
    if isinstance(cause, OSError):
        place = f"{os.fsdecode(cause.filename)}: " if isinstance(cause.filename, (str, bytes)) else ""
        return f"{place}{cause.strerror or cause}."
    return None


def _innermost(error: BaseException) -> BaseException:
    """The root cause of a failed import, which TensorFlow wraps in a traceback as text."""
    seen = [error]
    while (before := seen[-1].__cause__ or seen[-1].__context__) is not None and before not in seen:
        if not isinstance(before, (OSError, MemoryError, ImportError, RuntimeError)):
            break
        seen.append(before)
    kinds = (MemoryError, ImportError) if isinstance(error, ImportError) else type(error)
    return next((one for one in reversed(seen) if isinstance(one, kinds)), error)


def _is_no_memory(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    return any(words in str(error).lower() for words in ("failed to map segment", "cannot allocate memory"))


def _limit(otherwise: str) -> str:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return f"{otherwise}."
    return f"This process may use {soft >> 20} MiB of address space (ulimit -v): raise that limit."


def _sentence(error: BaseException) -> str:
    lines = str(error).strip().split("\n")
    return (lines[-1 if lines[0].startswith("Traceback") else 0] or type(error).__name__).rstrip(".")


def _no_output(error: OSError) -> str:
    return f"The output cannot be written: {error.strerror or error}."


def _is_of_output(error: OSError) -> bool:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return error is getattr(raw, "failure", None)


def _report(message: str) -> int:
    print(f"Error: {message_of(RuntimeError(message))}", file=sys.stderr, flush=True)
    return _FAILED


def _open_on_nothing(number: int) -> None:
    descriptor = os.open(os.devnull, os.O_RDWR)
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.set_inheritable(number, True)


class _Output(io.FileIO):
    """Standard output that remembers the error it failed with: an `OSError` does not name the file it came from."""

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            raise


class _Unfailing(io.FileIO):
    """A descriptor that drops what it cannot write, for a closed terminal or a full disk behind a log."""

    def write(self, data: Any) -> int:
        with contextlib.suppress(OSError):
            return super().write(data)
        return len(data)


def _over(stream: Any, kind: type[io.FileIO]) -> Any:
    """A text stream like this one, over another kind of file."""
    try:
        raw = kind(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError, AttributeError):  # a stream that is not a file
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=getattr(stream, "line_buffering", True),
        write_through=getattr(stream, "write_through", False),
    )
