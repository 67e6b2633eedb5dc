"""One process trains into a run's directory at a time.

Two locks, since neither is enough. `flock` ends with its process however that dies, but some network file systems keep
it to one machine or do not have it. The file lock.json says who holds the run and is rewritten every few seconds; it
stays when its process is killed, and then tells who that was.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.runs.directory import RunDirectory
from ganlab.support.paths import read_inside
from ganlab.support.strict_json import parse_json
from ganlab.support.terminal import line

LOCK = "lock.json"
_BEAT_SECONDS = 5.0
# How long another machine's lock must stay as it is to be a dead process's: some beats, since clocks are not compared.
_STILL_SECONDS = 3 * _BEAT_SECONDS
# How far from the present such a lock's time may lie, where clocks differ, and still be a living process's.
_LATELY_SECONDS = 60.0
# Bytes of lock.json, ten times over.
_LARGEST = 1 << 12
_SOMEBODY = "another process"
_NO_FLOCK = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


@contextlib.contextmanager
def locked(run: RunDirectory, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Holds a run's directory until the end of the block, or of the process.

    Args:
        run: What to hold.
        say: Told in a sentence where a dead process held it before.

    Raises:
        RunError: Another process holds it, or it cannot be written to.
    """
    descriptor = os.open(run.path, os.O_RDONLY)
    try:
        alone = _flock(descriptor, fcntl.LOCK_EX, run.path)
        left = _left(run.path, say or (lambda sentence: None), alone=alone)
        if left and say:
            say(left)
        with _beating(run.path / LOCK):
            run.update(process=_holder(_mine()))
            yield
    finally:
        os.close(descriptor)


def holder(path: Path) -> str | None:
    """Who holds a run's directory, in words, or None. Looks without writing and without waiting.

    Args:
        path: The run's directory.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _beating_holder(path) or _SOMEBODY
    except OSError:  # a file system without flock
        return _beating_holder(path)
    finally:
        os.close(descriptor)
    return _beating_holder(path, alone=True)


@contextlib.contextmanager
def at_rest(run: RunDirectory, *, shared: bool) -> Iterator[None]:
    """Holds a run's directory while nobody trains it, and writes nothing: the disk may be full, or not one's own.

    Args:
        run: What to hold.
        shared: Whether others may hold it so at the same time, for reading.

    Raises:
        RunError: It is being trained, or held in a way that this one excludes.
    """
    descriptor = os.open(run.path, os.O_RDONLY)
    try:
        alone = _flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, run.path)
        if _beating_holder(run.path, alone=alone):
            raise _in_use(run.path)
        yield
    finally:
        os.close(descriptor)


def _in_use(path: Path) -> RunError:
    who = _beating_holder(path)
    # Who holds it without a heartbeat reads it, archives it, or has this moment begun to train it.
    using = f"is being trained by {who}" if who else f"is in use by {_SOMEBODY}"
    return RunError(f"{path} {using}. Wait for it, or stop it first.")


def _beating_holder(path: Path, *, alone: bool = False) -> str | None:
    """Who says so in lock.json, if that process still lives or, on another machine, wrote there lately.

    Args:
        path: The run's directory.
        alone: Whether it is known, by flock, that no process of this machine holds it, whatever the file says.
    """
    left = _read(path / LOCK)
    if left is None:
        return None
    if left.get("host") == socket.gethostname():
        lives = not alone and _lives(left)
    else:
        try:
            lives = abs(time.time() - (path / LOCK).lstat().st_mtime) < _LATELY_SECONDS
        except OSError:  # let go of since
            lives = False
    return _holder(left) if lives else None


def _flock(descriptor: int, how: int, path: Path) -> bool:
    """Takes the lock that ends with its process; false where the file system has none."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(path) from None
    except OSError as error:
        if error.errno not in _NO_FLOCK:
            raise
        return False
    return True


def _left(path: Path, say: Callable[[str], None], *, alone: bool) -> str | None:
    """What to say of a lock that is there already, once it is known that its process is not."""
    left = _read(path / LOCK)
    if left is None:
        return None
    holder = _holder(left)
    if left.get("host") == socket.gethostname():
        if not alone and _lives(left) and left.get("pid") != os.getpid():
            raise RunError(f"{path} is being trained by {holder}. Wait for it, or stop it first.")
    else:
        say(f"{path} was held by {holder}, which cannot be asked from here: waiting {_STILL_SECONDS:.0f} s for it.")
        time.sleep(_STILL_SECONDS)
        if _read(path / LOCK) not in (left, None):
            raise RunError(f"{path} is being trained by {holder}, on another machine. Wait for it, or stop it first.")
    return f"{path} was held by {holder}, which is gone without a word: taking it over."


@contextlib.contextmanager
def _beating(path: Path) -> Iterator[None]:
    """Keeps the file there and changing."""
    done = threading.Event()

    def beat() -> None:
        count = 0
        while not done.wait(_BEAT_SECONDS):
            count += 1
            with contextlib.suppress(OSError):  # a disk that is full for a moment
                _write(path, count)

    try:
        _write(path, 0)
    except OSError as error:
        raise RunError(f"{path} cannot be written ({error.strerror}), so the run cannot be held.") from error
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
    part = path.with_name(f".{path.name}.tmp")
    part.unlink(missing_ok=True)  # by a process that was killed; or a stranger's link, which would be followed
    with part.open("x", encoding="utf-8") as file:
        file.write(json.dumps({**_mine(), "beat": beat}) + "\n")
    part.replace(path)


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
    """Whether the process of this machine that a lock names is there."""
    return left.get("started") == _started(left.get("pid")) != ""


def _started(pid: Any) -> str:
    """When a process of this machine started, so that another one with its number is not taken for it; "" for none."""
    try:
        stat = Path(f"/proc/{int(pid)}/stat").read_text()
        return stat.rpartition(")")[2].split()[19]  # field 22 of proc(5), in ticks since boot
    except (OSError, ValueError, TypeError, IndexError, OverflowError):
        pass
    try:
        os.kill(int(pid), 0)
    except (OSError, ValueError, TypeError, OverflowError):
        return ""
    return "unknown"  # no /proc here, as on macOS: the number must do


def _holder(lock: dict[str, Any]) -> str:
    return line(f"process {lock['pid']} on {lock.get('host')}") if lock.get("pid") else _SOMEBODY
