"""Archives of runs: the same runs give the same bytes, and hostile archives write nothing outside the folder."""

import errno
import gzip
import json
import os
import shutil
import socket
import tarfile
import time
from pathlib import Path

import pytest
from ganlab_archive import archive, unarchive
from resting_runs import contents, make

from ganlab.errors import RunError
from ganlab.run import Run
from ganlab.runs.lock import locked


def names(path):
    with tarfile.open(path) as packed:
        return packed.getnames()


def test_archive_and_unarchive_restore_runs(tmp_path):
    for name in ("ring/one", "ring/two", "digits/one"):
        make(tmp_path / "runs" / name)
    (tmp_path / "runs" / "ring" / "one" / ".run.json.tmp").write_text("half")
    (tmp_path / "runs" / "ring" / "one" / "lock.json").write_text(json.dumps({"host": socket.gethostname(), "pid": -1}))
    paths = [tmp_path / "runs" / name for name in ("ring/one", "digits/one", "ring/one")]
    done = archive(paths, tmp_path / "a.tar.gz")
    assert sorted(done.names) == ["digits/one", "ring/one"]
    assert done.bytes == (tmp_path / "a.tar.gz").stat().st_size
    found = unarchive(tmp_path / "a.tar.gz", tmp_path / "new" / "runs")
    assert found == [tmp_path / "new" / "runs" / name for name in ("digits/one", "ring/one")]
    assert contents(found[0]) == contents(tmp_path / "runs" / "digits" / "one")
    whole = contents(tmp_path / "runs" / "ring" / "one")
    assert set(whole) - set(contents(found[1])) == {".run.json.tmp", "lock.json"}
    assert Run(found[1]).info == Run(paths[0]).info
    assert sorted(path.name for path in (tmp_path / "new" / "runs").iterdir()) == ["digits", "ring"]


def test_archives_of_equal_runs_are_byte_identical(tmp_path):
    make(tmp_path / "here" / "b")
    make(tmp_path / "here" / "a")
    # In another place, at another time, in another order, with other permissions.
    shutil.copytree(tmp_path / "here" / "a", tmp_path / "there" / "a", copy_function=shutil.copyfile)
    shutil.copytree(tmp_path / "here" / "b", tmp_path / "there" / "b", copy_function=shutil.copyfile)
    for path in (tmp_path / "there").rglob("*"):
        os.utime(path, (time.time() - 10_000,) * 2)
        path.chmod(0o700)
    for place, order in (("here", "ab"), ("there", "ba")):
        archive([tmp_path / place / name for name in order], tmp_path / f"{place}.tgz")
    assert (tmp_path / "here.tgz").read_bytes() == (tmp_path / "there.tgz").read_bytes()
    with tarfile.open(tmp_path / "here.tgz") as packed:
        members = packed.getmembers()
    assert {(m.uid, m.gid, m.uname, m.mode) for m in members} == {(0, 0, "", 0o755), (0, 0, "", 0o644)}
    assert {m.mtime for m in members} == {1785585600}  # 2026-08-01 12:00 UTC, when the runs started
    assert [m.name for m in members][:2] == ["a", "a/checkpoints"]


def test_archive_of_one_run_without_checkpoints(tmp_path, monkeypatch):
    make(tmp_path / "runs" / "one")
    monkeypatch.chdir(tmp_path / "runs" / "one")
    archive([Path(".")], tmp_path / "a.tgz", checkpoints=False)
    assert names(tmp_path / "a.tgz") == [
        "one",
        "one/samples",
        "one/config.gin",
        "one/metrics.jsonl",
        "one/operative.gin",
        "one/run.json",
        "one/samples/step-00000040.png",
    ]


def test_links_are_left_out_and_reported(tmp_path):
    path = make(tmp_path / "one").path
    (tmp_path / "secret").write_text("s")
    (path / "notes").symlink_to(tmp_path / "secret")
    (path / "elsewhere").symlink_to(tmp_path)
    done = archive([path], tmp_path / "a.tgz")
    assert done.left_out == [path / "elsewhere", path / "notes"]
    assert not [name for name in names(tmp_path / "a.tgz") if "secret" in name or "notes" in name]


def test_archiving_refuses_a_run_in_training_and_changes_nothing(tmp_path):
    run = make(tmp_path / "one")
    before = contents(run.path)
    archive([run.path], tmp_path / "a.tgz")
    assert contents(run.path) == before
    first = (tmp_path / "a.tgz").read_bytes()
    with locked(run), pytest.raises(RunError, match=rf"one is being trained by process {os.getpid()} on "):
        archive([run.path], tmp_path / "a.tgz")
    assert (tmp_path / "a.tgz").read_bytes() == first


def test_full_disk_keeps_the_older_archive(tmp_path, monkeypatch):
    run = make(tmp_path / "one")
    (tmp_path / "a.tgz").write_text("older")

    def full(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(gzip.GzipFile, "write", full)
    with pytest.raises(RunError, match=r"a\.tgz cannot be written: No space left on device"):
        archive([run.path], tmp_path / "a.tgz")
    assert (tmp_path / "a.tgz").read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tgz", "one"]


def test_invalid_archive_paths_are_refused(tmp_path):
    run = make(tmp_path / "one")
    with pytest.raises(RunError, match="would be part of the run"):
        archive([run.path], run.path / "a.tgz")
    with pytest.raises(RunError, match="two not found: no such directory"):
        archive([run.path, tmp_path / "two"], tmp_path / "a.tgz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one"]
