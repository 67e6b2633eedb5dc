"""One process trains into a run's directory at a time.

There are two locks, because neither is enough. `flock` ends with its process, however that dies, but some network file
systems restrict it to one machine or lack it. The file lock.json names the holder of the run and is rewritten every few
seconds. It stays behind when its process is killed, and then shows which process that was.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ganlab.errors import RunError, RunInUseError
from ganlab.runs.directory import RunDirectory
from ganlab.support.atomic import encoded, replacing
from ganlab.support.paths import read_inside
from ganlab.support.strict_json import parse_json
from ganlab.support.terminal import line

LOCK = "lock.json"
_BEAT_SECONDS = 5.0
# A lock of another machine is stale if it stays unchanged this long: a few beats. Clocks differ and are not compared.
_STILL_SECONDS = 3 * _BEAT_SECONDS
_POLL_SECONDS = 0.25
# The locks of other machines as this process last saw them change, and when, by its own monotonic clock.
_looks: dict[Path, tuple[Any, float]] = {}
# Ten times the bytes of a lock.json.
_LARGEST = 1 << 12
_SOMEBODY = "another process"
_NO_FLOCK = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


@contextlib.contextmanager
def locked(run: RunDirectory, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Context manager: locks a run's directory until the end of the block, or of the process.

    Args:
        run: The run to lock.
        say: Called with a sentence if a dead process held it before.

    Raises:
        RunError: Another process holds the run (`RunInUseError`), or its directory is not writable.
    """
    descriptor = os.open(run.path, os.O_RDONLY)
    try:
        alone = _flock(descriptor, fcntl.LOCK_EX, run.path)
        left = _stale(run.path, say or (lambda sentence: None), alone=alone)
        if left and say:
            say(left)
        with _beating(run.path / LOCK):
            run.update(process=_holder(_mine()))
            yield
    finally:
        os.close(descriptor)


def holder(path: Path, *, wait: bool = True) -> str | None:
    """Describes the process that holds a run's directory, or None. Writes nothing.

    Args:
        path: The run's directory.
        wait: Whether to watch a lock of another machine, for at most 15 seconds, until it is clear whether its process
            lives. Otherwise it counts as living until the lock has stayed unchanged for as long since the first call.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _beating_holder(path) or _SOMEBODY
    except OSError:  # a file system without flock
        return _beating_holder(path, wait=wait)
    finally:
        os.close(descriptor)
    return _beating_holder(path, alone=True, wait=wait)


def start_watching(paths: Iterable[Path]) -> None:
    """Looks at the locks of many runs for the first time, so that questions about all of them wait together."""
    for path in paths:
        with contextlib.suppress(OSError):
            holder(path, wait=False)


@contextlib.contextmanager
def at_rest(runs: Sequence[RunDirectory], *, shared: bool) -> Iterator[None]:
    """Context manager: locks the directories of runs that are not in training. Writes nothing: the disk may be full.

    Args:
        runs: The runs to lock.
        shared: Whether other readers may hold the locks at the same time.

    Raises:
        RunInUseError: A run is being trained, or is held by a lock that excludes this one.
    """
    start_watching(run.path for run in runs)
    with contextlib.ExitStack() as stack:
        for run in runs:
            descriptor = os.open(run.path, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            alone = _flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, run.path)
            if _beating_holder(run.path, alone=alone, wait=True):
                raise _in_use(run.path)
        yield


def _in_use(path: Path) -> RunInUseError:
    who = _beating_holder(path)
    # A holder without a heartbeat reads the run, archives it, or has just begun to train it.
    using = f"is being trained by {who}" if who else f"is in use by {_SOMEBODY}"
    return RunInUseError(f"{path} {using}. Wait for it, or stop it first.")


def _beating_holder(path: Path, *, alone: bool = False, wait: bool = False) -> str | None:
    """The holder named in lock.json, if its process is alive or, on another machine, still rewrites the file.

    Args:
        path: The run's directory.
        alone: Whether flock has shown that no process of this machine holds the run, whatever the file states.
        wait: As for `holder`.
    """
    left = _read(path / LOCK)
    if left is None:
        return None
    here = left.get("host") == socket.gethostname()
    lives = (not alone and _lives(left)) if here else _changes(path / LOCK, wait=wait)
    return _holder(left) if lives else None


def _changes(path: Path, *, wait: bool) -> bool:
    """Whether a lock of another machine is still rewritten; true without waiting as long as that is unknown."""
    seen, since = _looks.setdefault(path, (_look(path), time.monotonic()))
    while (now := _look(path)) == seen:
        left = since + _STILL_SECONDS - time.monotonic()
        if left <= 0:
            return False
        if not wait:
            return True
        time.sleep(min(left, _POLL_SECONDS))
    _looks[path] = now, time.monotonic()
    return now is not None


def _look(path: Path) -> Any:
    """All of a lock that a beat changes; None if it was released."""
    try:
        return _read(path), path.lstat().st_mtime_ns  # the time alone if the disk is full
    except FileNotFoundError:
        return None


def _flock(descriptor: int, how: int, path: Path) -> bool:
    """Takes the lock that ends with its process; returns false if the file system does not have it."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(path) from None
    except OSError as error:
        if error.errno not in _NO_FLOCK:
            raise
        return False
    return True


def _stale(path: Path, say: Callable[[str], None], *, alone: bool) -> str | None:
    """Returns a sentence on a stale lock, after making sure that its process is gone; None without a lock."""
    left = _read(path / LOCK)
    if left is None:
        return None
    holder = _holder(left)
    if left.get("host") == socket.gethostname():
        trains = not alone and _lives(left) and left.get("pid") != os.getpid()
    else:
        say(f"{path} is locked by {holder}, which cannot be checked from here: waiting up to {_STILL_SECONDS:.0f} s.")
        trains = _changes(path / LOCK, wait=True)
    if trains:
        raise RunInUseError(f"{path} is being trained by {holder}. Wait for it, or stop it first.")
    return f"Taking over a stale lock on {path}: {holder} exited without releasing it."


@contextlib.contextmanager
def _beating(path: Path) -> Iterator[None]:
    """Context manager: keeps rewriting the lock file."""
    done = threading.Event()

    def beat() -> None:
        count = 0
        while not done.wait(_BEAT_SECONDS):
            count += 1
            try:
                _write(path, count)
            except OSError:  # the disk may be full
                with contextlib.suppress(OSError):
                    os.utime(path)

    try:
        _write(path, 0)
    except OSError as error:
        raise RunError(f"{path} cannot be written ({error.strerror}), so the run cannot be locked.") from error
    thread = threading.Thread(target=beat, name="ganlab-lock", daemon=True)
    try:
        thread.start()
        yield
    finally:
        done.set()
        if thread.ident is not None:
            thread.join()
        with contextlib.suppress(OSError):
            path.unlink()


def _write(path: Path, beat: int) -> None:
    with replacing(path, durable=False) as file:
        file.write(encoded(json.dumps({**_mine(), "beat": beat}) + "\n"))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        left = parse_json(read_inside(path.parent, path.name, most=_LARGEST))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RunError):
        return {}
    return left if isinstance(left, dict) else {}


def _mine() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid())}


def _lives(left: dict[str, Any]) -> bool:
    """Whether the process that a lock names is running on this machine."""
    return left.get("started") == _started(left.get("pid")) != ""


def _started(pid: Any) -> str:
    """The start time of a process of this machine, so that it is not mistaken for one with the same id; "" for none."""
    with contextlib.suppress(OSError, ValueError, TypeError, IndexError, OverflowError):
        stat = Path(f"/proc/{int(pid)}/stat").read_text()
        return stat.rpartition(")")[2].split()[19]  # field 22 of proc(5), in ticks since boot
    try:
        os.kill(int(pid), 0)
    except (OSError, ValueError, TypeError, OverflowError):
        return ""
    return "unknown"  # no /proc, as on macOS: the process id must do


def _holder(lock: dict[str, Any]) -> str:
    return line(f"process {lock['pid']} on {lock.get('host')}") if lock.get("pid") else _SOMEBODY
