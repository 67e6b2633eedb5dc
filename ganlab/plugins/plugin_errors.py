"""Attributes errors to plugins, in one sentence that names the plugin's component."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ganlab.errors import GanlabError, Interruption, PluginError, TrainingFailedError

# Frames of these are never the plugin's own.
_LIBRARIES = {*sys.stdlib_module_names, "ganlab", "keras", "numpy", "tensorflow"}

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_ASSERTED = re.compile(r"assertion failed: \[(.*?)\](?: \[|$)", re.MULTILINE)
_RAISED = re.compile(r"^\s*(?:\w+\.)*(\w+(?:Error|Exception)(?:: .+)?)$", re.MULTILINE)
_OTHER_CALLS = "is out of scope and cannot be used here"
# The text that TensorFlow writes around the message of a failed operation.
_AROUND = re.compile(
    r"Graph execution error:|Detected at node|File \"|<stack traces|\d+ root error|\[\[\{\{|Traceback \(|in user code:"
)
# Patterns that only messages of TensorFlow and Keras contain, whatever the error's type.
_LIBRARYS = re.compile(r"\{\{\w+ \S+\}\}|\[Op:\w+\]|\[\[|^Exception encountered when calling|^Graph execution error")
# Limits of an exception's message: what fits on a screen.
_MOST_LINES, _LONGEST = 20, 2000
_BEFORE = re.compile(
    r"^(?:\(\d+\) [A-Z_]+:\s+)?(?:Error in user-defined function passed to \S+ transformation with iterator: \S+: )?"
    r"(?:\{\{\w+ \S+\}\} ?)*"
)
_AFTER = re.compile(r"\s*\[Op:\w+\](?: name:.*)?$")


@dataclass(frozen=True)
class Running:
    """A plugin's code that is running."""

    part: str
    method: str
    since: float


# By thread, outermost first.
_running: dict[int, list[Running]] = defaultdict(list)
_listeners: list[Callable[[Running | None], None]] = []


def listen(listener: Callable[[Running | None], None]) -> None:
    """Registers a function that gets a plugin's code in its thread when it begins, and None when it has ended.

    Calls within other calls are left out.
    """
    _listeners.append(listener)


def running(thread: int) -> Running | None:
    """The plugin's code that a thread is running, the outermost if calls are nested; None if there is none."""
    return next(iter(_running.get(thread, ())), None)


@contextlib.contextmanager
def plugin_code(part: str, method: str) -> Iterator[None]:
    """Context manager: turns an exception in a plugin's code into a `PluginError` that names the component and line.

    Args:
        part: The component, e.g. `constraints.gradient_penalty`.
        method: The method that runs, e.g. `penalty`.

    Raises:
        PluginError: The plugin raised an exception, `SystemExit` included. ganlab's own errors pass unchanged.
    """
    stack = _running[threading.get_ident()]
    stack.append(Running(part, method, time.monotonic()))
    _tell(stack)
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit, Interruption):
        raise
    except BaseException as error:
        meant = unwrapped(error)
        if meant is error and isinstance(error, (GanlabError, TrainingFailedError)):
            raise
        if isinstance(meant, (GanlabError, TrainingFailedError)):
            raise meant from None
        if isinstance(meant, NotImplementedError) and not str(meant):
            missing = traceback.extract_tb(meant.__traceback__)[-1].name
            if missing == method:
                raise PluginError(f"{part} has no method {method}, which it must have{where(meant)}") from error
            raise PluginError(f"{part} failed in {method}: {missing} is not implemented{where(meant)}") from error
        raise PluginError(f"{part} failed in {method}: {sentence(meant)}{where(meant)}") from error
    finally:
        _tell(stack, ended=True)
        stack.pop()
        if not stack:  # threads come and go
            _running.pop(threading.get_ident(), None)


def _tell(stack: list[Running], *, ended: bool = False) -> None:
    if len(stack) == 1:
        for listener in _listeners:
            listener(None if ended else stack[0])


def unwrapped(error: BaseException) -> BaseException:
    """The error that was raised inside a Keras layer; Keras raises another in its place, with the call's arguments."""
    while getattr(error, "_keras_call_info_injected", False) and error.__context__ is not None:
        error = error.__context__
    return error


def sentence(error: BaseException) -> str:
    """Returns an error's message, without the pages that TensorFlow writes around it.

    That is the text of an assertion; otherwise the error raised by Python code inside an operation; otherwise the type
    and the message. Messages of TensorFlow and Keras are cut to the first line, others are complete, within bounds.
    """
    text = _ESCAPES.sub("", str(getattr(error, "message", None) or error))
    asserted = _ASSERTED.search(text)
    if asserted:
        return asserted[1]
    if _OTHER_CALLS in text:
        return (
            "it uses a tensor that was made in another call. Store none on self: what is kept between calls is a "
            "state, which initial_state begins and advance continues"
        )
    if _AROUND.search(text) and (raised := list(_RAISED.finditer(text))):
        return "\n".join([raised[-1][1], *_own_lines(text[raised[-1].end() :])])
    if _is_librarys(error, text):
        lines = [line.strip() for line in text.splitlines() if line.strip() and not _AROUND.match(line.strip())]
        message = _AFTER.sub("", _BEFORE.sub("", lines[0])) if lines else ""
        return f"{type(error).__name__}: {message}" if message else type(error).__name__
    message = bounded(text.strip())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def bounded(text: str) -> str:
    """Cuts a text to a screen: its first lines and characters, and how many were left out."""
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        text = "\n".join([*lines[: _MOST_LINES - 1], f"[... {len(lines) - _MOST_LINES + 1} more lines ...]"])
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [... {len(text) - _LONGEST} more letters ...]"


def _is_librarys(error: BaseException, text: str) -> bool:
    """Whether a message is by TensorFlow or Keras, whose first line is the essential one."""
    package = type(error).__module__.partition(".")[0]
    return package in ("tensorflow", "keras") or bool(_LIBRARYS.search(text))


def _own_lines(text: str) -> list[str]:
    """The lines of a message after the first, up to those that TensorFlow added."""
    lines: list[str] = []
    for line in bounded(text.strip("\n")).splitlines():
        if _AROUND.search(line) or not line.strip():
            break
        lines.append(line.strip())
    return lines


def where(error: BaseException) -> str:
    """The deepest line of the plugin's package in an error's traceback, `" (file.py:9)"`; empty if there is none."""
    # As in pytest's traces, a frame with this variable stands for the code that it calls.
    walked = traceback.walk_tb(error.__traceback__)
    frames = [(frame, line) for frame, line in walked if "__tracebackhide__" not in frame.f_locals]
    packages = [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame, _ in frames]
    # After the frame of `plugin_code` comes its caller's, which may be an application's.
    caller = packages[1:2] if frames and frames[0][0].f_code.co_filename == __file__ else []
    own = [package for package in packages if package not in {*_LIBRARIES, *caller}]
    if not own:
        return ""
    frame, line = [at for at, package in zip(frames, packages, strict=True) if package == own[0]][-1]
    return f" ({Path(frame.f_code.co_filename).name}:{line})"
