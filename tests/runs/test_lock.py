"""Locks of a run's directory, and what happens when their process dies."""

import errno
import fcntl
import json
import os
import socket
import subprocess
import sys
import time

import pytest
from ganlab_archive import archive
from ganlab_archive.removing import removable, remove
from ganlab_runs.listing import listed, look_at
from ganlab_runs.watching import Watcher

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


def taken(run):
    """Returns the messages printed while a lock is taken."""
    said = []
    with lock.locked(run, said.append):
        assert json.loads((run.path / "lock.json").read_text())["pid"] == os.getpid()
    return said


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
    holder = f"process {pid} on {socket.gethostname()}"
    assert taken(run) == [f"Taking over a stale lock on {run.path}: {holder} exited without releasing it."]


def test_lock_of_a_live_process_is_respected_without_flock(run, no_flock):
    parent = os.getppid()
    leave(run, host=socket.gethostname(), pid=parent, started=lock._started(parent), beat=0)
    with pytest.raises(RunError, match=f"is being trained by process {parent} on "), lock.locked(run):
        pass


def test_reused_process_id_does_not_hold_the_lock(run, no_flock):
    parent = os.getppid()
    leave(run, host=socket.gethostname(), pid=parent, started="1", beat=0)
    assert len(taken(run)) == 1


def elsewhere(run, beat, clock_behind=0.0):
    """Leaves the lock of a process of another machine whose clock is behind by some seconds."""
    leave(run, host="elsewhere", pid=7, started="9", beat=beat)
    os.utime(run.path / "lock.json", (time.time() - clock_behind,) * 2)


class Clock:
    """Time that passes only while the process waits; a process of another machine beats meanwhile."""

    def __init__(self, beat=lambda seconds: None):
        self.now, self._beat = 0.0, beat

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        before, self.now = self.now, self.now + seconds
        if int(before / lock._BEAT_SECONDS) != int(self.now / lock._BEAT_SECONDS):
            self._beat(self.now)


@pytest.fixture
def clock(monkeypatch):
    def use(beat=lambda seconds: None):
        made = Clock(beat)
        monkeypatch.setattr(lock, "time", made)
        return made

    return use


def removed(run):
    with removable([run.path]) as (found,):
        remove(found)


def archived(run):
    archive([run.path], run.path.parent / "a.tar.gz")


@pytest.mark.parametrize("behind", [-1e9, -90.0, 0.0, 90.0, 1e9])
@pytest.mark.parametrize("use", [removed, archived, taken])
def test_live_lock_of_another_machine_is_respected_whatever_its_clock(run, clock, use, behind):
    elsewhere(run, 0, behind)
    waited = clock(lambda now: elsewhere(run, int(now), behind))
    with pytest.raises(RunError, match="is being trained by process 7 on elsewhere"):
        use(run)
    assert waited.now <= lock._BEAT_SECONDS + 1
    assert look_at(run.path).status == "running"
    assert waited.now <= 2 * lock._BEAT_SECONDS + 1


@pytest.mark.parametrize("behind", [-1e9, -90.0, 0.0, 90.0, 1e9])
@pytest.mark.parametrize("use", [removed, archived, taken])
def test_dead_lock_of_another_machine_does_not_block_whatever_its_clock(run, clock, use, behind):
    elsewhere(run, 3, behind)
    waited = clock()
    assert look_at(run.path).status == "killed"
    assert 2 * lock._BEAT_SECONDS < waited.now < 4 * lock._BEAT_SECONDS
    use(run)
    assert waited.now < 4 * lock._BEAT_SECONDS  # known by now


def test_takeover_from_another_machine_says_why_it_waits(run, clock):
    elsewhere(run, 2)
    clock()
    said = taken(run)
    assert "which cannot be checked from here: waiting up to 15 s" in said[0]
    assert "Taking over a stale lock on " in said[1]


def test_locks_of_many_runs_are_watched_together(tmp_path, clock):
    runs = [
        create_run(tmp_path / name, config="", operative="", info={"status": status})
        for name, status in [("a", "running"), ("b", "running"), ("c", "completed"), ("d", "running")]
    ]
    for one in runs:
        elsewhere(one, 0)
    waited = clock(lambda now: elsewhere(runs[3], int(now), 90.0))
    assert [row.status for row in listed(tmp_path)] == ["killed", "killed", "completed", "running"]
    assert waited.now == pytest.approx(lock._STILL_SECONDS)


def test_nothing_in_doubt_needs_no_wait(tmp_path, clock):
    waited = clock()
    for name, status in [("a", "completed"), ("b", "running")]:
        create_run(tmp_path / name, config="", operative="", info={"status": status})
    (tmp_path / "b" / "lock.json").write_text(json.dumps({**lock._mine(), "pid": dead_process()}))
    assert [row.status for row in listed(tmp_path)] == ["completed", "killed"]
    with removable([tmp_path / "a", tmp_path / "b"]):
        pass
    assert waited.now == 0


def test_watching_finds_out_without_waiting(run, clock):
    elsewhere(run, 0, 90.0)
    passed, watcher = clock(), Watcher(run.path, "critic/loss")
    for now, status in [(0, "running"), (4, "running"), (14, "running"), (16, "killed")]:
        passed.now = now
        assert [row.status for row in watcher.look()] == [status]
    elsewhere(run, 1, 90.0)  # the machine was only stopped
    assert [row.status for row in watcher.look()] == ["running"]


def test_damaged_lock_counts_as_another_process(run, clock):
    (run.path / "lock.json").write_text('{"ho')
    clock()
    assert taken(run)[1].endswith(": another process exited without releasing it.")


def test_full_disk_does_not_stop_the_heartbeat(run, monkeypatch):
    monkeypatch.setattr(lock, "_BEAT_SECONDS", 0.01)
    with lock.locked(run):

        def full(path, beat):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(lock, "_write", full)
        time.sleep(0.05)
        before, end = lock._look(run.path / "lock.json"), time.monotonic() + 10
        while lock._look(run.path / "lock.json") == before:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_lock_file_is_rewritten_while_held(run, monkeypatch):
    monkeypatch.setattr(lock, "_BEAT_SECONDS", 0.01)
    with lock.locked(run):
        end = time.monotonic() + 5
        while json.loads((run.path / "lock.json").read_text())["beat"] < 2:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_unwritable_directory_cannot_be_locked(run, monkeypatch):
    def refuse(path, beat):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(lock, "_write", refuse)
    with pytest.raises(RunError, match=r"lock\.json cannot be written \(Permission denied\)"), lock.locked(run):
        pass


def test_readers_share_a_run_and_are_not_reported_as_its_trainer(run):
    run.update(process="process 1 on elsewhere")
    said = "is in use by another process"
    code = (
        "import sys, ganlab; from ganlab.runs.lock import at_rest\n"
        "with at_rest([ganlab.Run(sys.argv[1])], shared=True): print('held', flush=True); sys.stdin.read()"
    )
    reader = subprocess.Popen([sys.executable, "-c", code, run.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with reader:
        assert reader.stdout.readline() == b"held\n"
        with lock.at_rest([run], shared=True):
            pass
        with pytest.raises(RunError, match=said), lock.locked(run):
            pass
        with pytest.raises(RunError, match=said), lock.at_rest([run], shared=False):
            pass
        reader.stdin.close()
    taken(run)


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
    monkeypatch.setattr(lock, "_STILL_SECONDS", 0.0)
    assert lock.holder(run.path) is None
    for shared in (True, False):
        with lock.at_rest([run], shared=shared):
            pass
    taken(run)


def test_holder_is_named_even_if_the_lock_time_is_in_the_future(run):
    with lock.locked(run):
        os.utime(run.path / "lock.json", (lock.time.time() + 1e9,) * 2)
        assert lock.holder(run.path) == f"process {os.getpid()} on {socket.gethostname()}"
        with pytest.raises(RunError, match="is being trained by"), lock.at_rest([run], shared=True):
            pass


def test_failure_to_start_the_heartbeat_leaves_no_lock(run, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(lock.threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError), lock.locked(run):
        pass
    assert not (run.path / "lock.json").exists()
