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
from ganlab.runs.run import Run

LOCK = "lock.json"
_BEAT_SECONDS = 5.0
# How long another machine's lock must stay as it is to be a dead process's: some beats, since clocks are not compared.
_STILL_SECONDS = 3 * _BEAT_SECONDS
# How old such a lock may look, where clocks differ, and still be a living process's.
_LATELY_SECONDS = 60.0
_SOMEBODY = "another process"
_NO_FLOCK = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


@contextlib.contextmanager
def locked(run: Run, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Holds a run's directory until the end of the block, or of the process.

    Args:
        run: What to hold.
        say: Told in a sentence where a dead process held it before.

    Raises:
        RunError: Another process holds it, or it cannot be written to.
    """
    descriptor = os.open(run.path, os.O_RDONLY)
    try:
        _flock(descriptor, run)
        left = _left(run.path, say or (lambda sentence: None))
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
        pass
    finally:
        os.close(descriptor)
    return _beating_holder(path)


@contextlib.contextmanager
def at_rest(run: Run, *, shared: bool) -> Iterator[None]:
    """Holds a run's directory while nobody trains it, and writes nothing: the disk may be full, or not one's own.

    Args:
        run: What to hold.
        shared: Whether others may hold it so at the same time, for reading.

    Raises:
        RunError: It is being trained, or held in a way that this one excludes.
    """
    descriptor = os.open(run.path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _in_use(run.path) from None
        except OSError as error:
            if error.errno not in _NO_FLOCK:
                raise
        beating = _beating_holder(run.path)
        if beating:
            raise _in_use(run.path)
        yield
    finally:
        os.close(descriptor)


def _in_use(path: Path) -> RunError:
    who = _beating_holder(path)
    # Who holds it without a heartbeat reads it, archives it, or has this moment begun to train it.
    using = f"is being trained by {who}" if who else f"is in use by {_SOMEBODY}"
    return RunError(f"{path} {using}. Wait for it, or stop it first.")


def _beating_holder(path: Path) -> str | None:
    """Who says so in lock.json, if that process still lives or, on another machine, wrote there lately."""
    left = _read(path / LOCK)
    if left is None:
        return None
    if left.get("host") == socket.gethostname():
        lives = left.get("started") == _started(left.get("pid")) != ""
    else:
        try:
            lives = time.time() - (path / LOCK).stat().st_mtime < _LATELY_SECONDS
        except OSError:  # let go of since
            lives = False
    return _holder(left) if lives else None


def _flock(descriptor: int, run: Run) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(run.path) from None
    except OSError as error:
        if error.errno not in _NO_FLOCK:
            raise


def _left(path: Path, say: Callable[[str], None]) -> str | None:
    """What to say of a lock that is there already, once it is known that its process is not."""
    left = _read(path / LOCK)
    if left is None:
        return None
    holder = _holder(left)
    if left.get("host") == socket.gethostname():
        alive = left.get("started") == _started(left.get("pid")) != ""
        if alive and left.get("pid") != os.getpid():
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
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        with contextlib.suppress(OSError):
            path.unlink()


def _write(path: Path, beat: int) -> None:
    part = path.with_name(f".{path.name}.tmp")
    part.write_text(json.dumps({**_mine(), "beat": beat}) + "\n", encoding="utf-8")
    part.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        left = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    return left if isinstance(left, dict) else {}


def _mine() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid())}


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
    return f"process {lock['pid']} on {lock.get('host')}" if lock.get("pid") else _SOMEBODY
