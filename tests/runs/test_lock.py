"""Locks of a run's directory, and what happens when their process dies."""

import errno
import fcntl
import json
import os
import socket
import subprocess
import sys

import pytest

from ganlab.errors import RunError
from ganlab.runs import create_run, lock


@pytest.fixture
def run(tmp_path):
    return create_run(tmp_path / "run", config="", operative="", info={"status": "running"})


@pytest.fixture
def no_flock(monkeypatch):
    """A file system without such locks."""

    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


def dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def leave(run, **fields):
    (run.path / "lock.json").write_text(json.dumps(fields))


def test_lock_names_its_holder_and_is_removed_at_the_end(run):
    with lock.locked(run):
        held = json.loads((run.path / "lock.json").read_text())
        assert (held["host"], held["pid"]) == (socket.gethostname(), os.getpid())
        assert run.info["process"] == f"process {os.getpid()} on {socket.gethostname()}"
    assert not (run.path / "lock.json").exists()


def test_second_process_is_refused_until_the_lock_is_released(run):
    code = (
        "import sys, ganlab; from ganlab.runs.lock import locked\n"
        "with locked(ganlab.Run(sys.argv[1]), print): print('held')"
    )

    def other():
        return subprocess.run([sys.executable, "-c", code, run.path], capture_output=True, text=True)

    with lock.locked(run):
        refused = other()
        assert f"is being trained by process {os.getpid()} on " in refused.stderr
        assert "held" not in refused.stdout
    assert other().stdout == "held\n"


def test_stale_lock_is_taken_over_with_a_message(run):
    pid = dead_process()
    leave(run, host=socket.gethostname(), pid=pid, started="123", beat=4)
    said = []
    with lock.locked(run, said.append):
        assert json.loads((run.path / "lock.json").read_text())["pid"] == os.getpid()
    holder = f"process {pid} on {socket.gethostname()}"
    assert said == [f"Taking over a stale lock on {run.path}: {holder} exited without releasing it."]


def test_lock_of_a_live_process_is_respected_without_flock(run, no_flock):
    parent = os.getppid()
    leave(run, host=socket.gethostname(), pid=parent, started=lock._started(parent), beat=0)
    with pytest.raises(RunError, match=f"is being trained by process {parent} on "), lock.locked(run):
        pass


def test_reused_process_id_does_not_hold_the_lock(run, no_flock):
    parent = os.getppid()
    leave(run, host=socket.gethostname(), pid=parent, started="1", beat=0)
    said = []
    with lock.locked(run, said.append):
        pass
    assert len(said) == 1


def test_lock_of_another_machine_is_watched_before_takeover(run, no_flock, monkeypatch):
    # No clocks are compared, because they differ and may go backwards: a lock that changes is alive.
    beats = iter([1, 2, 2])

    def wait(seconds):
        assert seconds >= 2 * lock._BEAT_SECONDS
        leave(run, host="elsewhere", pid=1, started="9", beat=next(beats))

    leave(run, host="elsewhere", pid=1, started="9", beat=0)
    monkeypatch.setattr(lock.time, "sleep", wait)
    with (
        pytest.raises(RunError, match="by process 1 on elsewhere, on another machine"),
        lock.locked(run),
    ):
        pass
    said = []
    leave(run, host="elsewhere", pid=1, started="9", beat=2)
    next(beats)
    with lock.locked(run, said.append):
        pass
    assert "which cannot be checked from here: waiting 15 s" in said[0]
    assert "Taking over a stale lock on " in said[1]


def test_damaged_lock_counts_as_another_process(run, monkeypatch):
    (run.path / "lock.json").write_text('{"ho')
    monkeypatch.setattr(lock.time, "sleep", lambda seconds: None)
    said = []
    with lock.locked(run, said.append):
        pass
    assert said[1].endswith(": another process exited without releasing it.")


def test_lock_file_is_rewritten_while_held(run, monkeypatch):
    import threading

    monkeypatch.setattr(lock, "_BEAT_SECONDS", 0.01)
    with lock.locked(run):
        before = threading.Event()
        for _ in range(500):
            if json.loads((run.path / "lock.json").read_text())["beat"] >= 2:
                break
            before.wait(0.01)
        assert json.loads((run.path / "lock.json").read_text())["beat"] >= 2


def test_unwritable_directory_cannot_be_locked(run, monkeypatch):
    def refuse(path, beat):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(lock, "_write", refuse)
    with pytest.raises(RunError, match=r"lock\.json cannot be written \(Permission denied\)"), lock.locked(run):
        pass


def test_reader_is_not_reported_as_the_trainer(run):
    run.update(process="process 1 on elsewhere")
    said = "is in use by another process"
    code = (
        "import sys, ganlab; from ganlab.runs.lock import at_rest\n"
        "with at_rest(ganlab.Run(sys.argv[1]), shared=True): print('held', flush=True); sys.stdin.read()"
    )
    reader = subprocess.Popen([sys.executable, "-c", code, run.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with reader:
        assert reader.stdout.readline() == b"held\n"
        with pytest.raises(RunError, match=said), lock.locked(run):
            pass
        with pytest.raises(RunError, match=said), lock.at_rest(run, shared=False):
            pass
        reader.stdin.close()
    with lock.locked(run):
        pass


def lies():
    me = {"host": socket.gethostname(), "pid": os.getpid(), "started": lock._started(os.getpid()), "beat": 1}
    init = {**me, "pid": 1, "started": lock._started(1)}
    future = {"host": "elsewhere", "pid": 1, "started": "1", "beat": 3}
    return [
        (me, 0.0),
        (init, 0.0),
        (init, 1e9),
        (future, 120.0),
        (future, 1e9),
        ({**future, "host": {}, "pid": []}, 1e6),
        ({}, 1e6),
        ([], 1e6),
        ("x", 1e6),
    ]


@pytest.mark.parametrize("lie", range(9))
def test_forged_lock_does_not_block_what_flock_allows(run, lie, monkeypatch):
    said, ahead = lies()[lie]
    path = run.path / "lock.json"
    path.write_text(json.dumps(said))
    os.utime(path, (lock.time.time() + ahead,) * 2)
    assert lock.holder(run.path) is None
    for shared in (True, False):
        with lock.at_rest(run, shared=shared):
            pass
    monkeypatch.setattr(lock, "_STILL_SECONDS", 0.0)
    with lock.locked(run):
        pass


def test_holder_is_named_even_if_the_lock_time_is_in_the_future(run):
    with lock.locked(run):
        os.utime(run.path / "lock.json", (lock.time.time() + 1e9,) * 2)
        assert lock.holder(run.path) == f"process {os.getpid()} on {socket.gethostname()}"
        with pytest.raises(RunError, match="is being trained by"), lock.at_rest(run, shared=True):
            pass


def test_failure_to_start_the_heartbeat_leaves_no_lock(run, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(lock.threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError), lock.locked(run):
        pass
    assert not (run.path / "lock.json").exists()
