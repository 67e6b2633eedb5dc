"""A folder of compiled programs hands out what is sound, and keeps no more than it may."""

import os
import shutil

import pytest

from ganlab.support import program_store
from ganlab.support.hashing import digest
from ganlab.support.program_store import Room, fault, sizes

PLENTY = 1 << 30


@pytest.fixture
def store(tmp_path):
    folder = tmp_path / "programs"
    assert fault(folder) == ""
    return folder


def kept(store, **programs):
    """Has a process compile programs and end."""
    room = Room(store, PLENTY)
    room.fill("kind")
    for name, content in programs.items():
        (room.path / f"{name}.pb").write_bytes(content)
    room.keep()
    room.close()
    return {path.name[33:-3]: path for path in (store / "kind").iterdir()}


def seen(store, kind="kind"):
    """What the next process's TensorFlow finds."""
    room = Room(store, PLENTY)
    room.fill(kind)
    found = {path.stem: path.read_bytes() for path in room.path.iterdir()}
    room.close()
    return found


def test_programs_come_back_to_processes_of_the_same_kind(store):
    files = kept(store, one=b"first", two=b"second")

    assert seen(store) == {"one": b"first", "two": b"second"}
    assert seen(store, "other") == {}
    assert files["one"].name == f"{digest(b'first')}-one.pb"
    assert files["one"].stat().st_mode & 0o777 == 0o600
    assert store.stat().st_mode & 0o777 == 0o700


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def link(path):
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def pipe(path):
    path.unlink()
    os.mkfifo(path)


HARMS = {
    "flipped": flipped,
    "truncated": lambda path: os.truncate(path, 3),
    "emptied": lambda path: path.write_bytes(b""),
    "of nobody known": lambda path: path.rename(path.with_name("unknown.pb")),
    "writable by others": lambda path: path.chmod(0o602),
    "link": link,
    "pipe": pipe,
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_unsound_program_is_removed_and_never_seen(store, harm):
    files = kept(store, good=b"good program", bad=b"bad program")
    harm(files["bad"])

    assert seen(store) == {"good": b"good program"}
    assert [path.name[33:] for path in (store / "kind").iterdir()] == ["good.pb"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_program_of_another_user_is_removed_and_never_seen(store):
    os.chown(kept(store, good=b"good", bad=b"bad")["bad"], 12345, -1)
    assert seen(store) == {"good": b"good"}


def test_folder_that_others_may_write_is_refused(tmp_path, monkeypatch):
    store = tmp_path / "a" / "programs"
    assert fault(store) == ""
    store.chmod(0o770)
    assert fault(store) == (f"others may write into {store}, and what they write would be executed (chmod go-w)")
    store.chmod(0o755)  # to read is not to write
    assert fault(store) == ""
    store.parent.chmod(0o777)  # where others may put a folder of theirs in its place
    assert fault(store).startswith(f"others may write into {store.parent},")
    store.parent.chmod(0o1777)  # like /tmp
    assert fault(store) == ""
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert fault(store) == f"{store} belongs to another user, whose programs would be executed"


def test_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    assert fault(tmp_path / "file") == f"{tmp_path / 'file'} cannot be used: File exists"
    full = shutil.disk_usage(tmp_path)._replace(free=10**9)
    monkeypatch.setattr(program_store.shutil, "disk_usage", lambda folder: full)
    assert fault(tmp_path / "new") == f"{tmp_path / 'new'} has less than 1 GB of free space"


def test_longest_unused_programs_are_removed(store):
    for when, name in enumerate(["a", "b", "c"]):
        os.utime(kept(store, **{name: bytes(1000)})[name], (0, when))
    room = Room(store, 3500)
    room.fill("kind")
    (room.path / "a.pb").read_bytes()
    if not (room.path / "a.pb").stat().st_atime_ns:
        pytest.skip("this file system does not record when a file is read")
    (room.path / "d.pb").write_bytes(bytes(1000))
    room.keep()
    room.close()
    assert sorted(path.name[33:] for _, _, path in sizes(store)) == ["a.pb", "c.pb", "d.pb"]


def test_two_processes_that_compile_one_program_keep_it_once(store):
    one, two = Room(store, PLENTY), Room(store, PLENTY)
    for room, content in ((one, b"of one"), (two, b"of two")):
        room.fill("kind")
        (room.path / "same.pb").write_bytes(content)
    one.keep()
    two.keep()
    assert seen(store) == {"same": b"of one"}
    assert (two.path / "same.pb").read_bytes() == b"of two"


def test_room_follows_its_process(store):
    living, left = Room(store, PLENTY), Room(store, PLENTY)
    os.close(left._held)  # as the end of its process does
    living.fill("kind")
    (living.path / "one.pb").write_bytes(b"compiled")
    Room(store, PLENTY)

    assert living.path.is_dir()
    assert not left.path.exists()
    living.keep()
    assert seen(store) == {"one": b"compiled"}


def test_programs_of_another_kind_are_put_away(store):
    kept(store, one=b"first")
    room = Room(store, PLENTY)
    room.fill("kind")
    room.fill("other")
    assert list(room.path.iterdir()) == []
    (room.path / "two.pb").write_bytes(b"second")
    room.keep()
    assert seen(store) == {"one": b"first"}
    assert seen(store, "other") == {"two": b"second"}
