"""Fuzz target: archives of runs are unpacked completely or not at all, never into another run or outside the folder."""

from __future__ import annotations

import contextlib
import gzip
import os
import stat
from pathlib import Path

from ganlab_archive import Limits, unarchive
from ganlab_archive.placing import finish_moving
from hypothesis import strategies as st

from fuzzing.drawing import altered, mutated, weighted
from ganlab.errors import GanlabError

_LIMITS = Limits(files=40, least=20_000)
_NAMES = [
    *("one/run.json", "one/a", "one/ONE", "one", "one/", "two/b/run.json", "two/b/run.json/c", "./one/a", "ONE/a"),
    *(
        "there",
        "there/run.json",
        "There/checkpoints/x",
        "there/checkpoints/new/run.json",
        "group/run.json",
        "group/new",
    ),
    *("link/x/run.json", "link", "../x", "one/../../x", "/one/run.json", "", ".", "/", "..", "one//a", "run.json"),
    *("one/" + "a/" * 40, "one/" + "b" * 300, "one/\x1b[2J", "one/\n", "one/\udcff", "one/lock.json", "two/\u00e9"),
    *(".unpacking-0", ".unpacking-0/run.json", "one/.hidden/x", "two/e\u0301", "new/a/run.json", "new/a/b"),
]
_MOVED = [["one", "two"], ["one", "two/b", "there"], ["..", "/", "", ".", "two/../../x"], ["one/run.json"], ["../runs"]]
_KINDS = [b"0", b"\0", b"5", b"7", b"1", b"2", b"3", b"4", b"6", b"x", b"g", b"L", b"K", b"S", b"Z"]
_KEYS = [b"path", b"size", b"mtime", b"linkpath", b"GNU.sparse.map", b"GNU.sparse.realsize", b"hdrcharset", b"comment"]
_VALUES = [b"", b"1", b"-1", b"nan", b"inf", b"1e999", b"9" * 5000, b"one/c", b"../c", b"\0", b"\xff", b"x" * 70_000]
_FIELDS = [
    b"",
    b"00000000002",
    b"99999999999",
    b"77777777777",
    b"\x80" + b"\xff" * 11,
    b"\xff" * 12,
    b"\x80" + bytes(11),
]


def _header(name: bytes, kind: bytes, size: bytes, time: bytes, right: bool) -> bytes:
    raw = bytearray(512)
    raw[: min(100, len(name))] = name[:100]
    raw[124 : 124 + len(size)], raw[136 : 136 + len(time)] = size, time
    raw[156:157], raw[257:265], raw[148:156] = kind, b"ustar\x0000", b" " * 8
    raw[148:156] = f"{(sum(raw) + (not right)) % 8**6:06o}\0 ".encode()
    return bytes(raw)


def _octal(number: int) -> bytes:
    return f"{number:011o}".encode()


def _blocks(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def _file(name: str, kind: bytes, data: bytes, size: bytes | None, time: bytes, right: bool) -> bytes:
    encoded = name.encode("utf-8", "surrogateescape")
    header = _header(encoded, kind, _octal(len(data)) if size is None else size, time, right)
    if len(encoded) <= 100:
        return header + _blocks(data)
    return _header(b"long", b"L", _octal(len(encoded)), b"", True) + _blocks(encoded) + header + _blocks(data)


def _pax(records: list[tuple[bytes, bytes, int]]) -> bytes:
    data = b""
    for key, value, wrong in records:
        body = b" " + key + b"=" + value + b"\n"
        length = len(body) + len(str(len(body) + len(str(len(body)))))
        data += str(length + wrong).encode() + body
    return _header(b"pax", b"x", _octal(len(data)), b"", True) + _blocks(data)


def files() -> st.SearchStrategy[bytes]:
    """The bytes of an archive: with valid and invalid headers, truncated, repeated, or packed twice."""
    name = weighted((3, st.sampled_from(_NAMES[:6])), (3, st.sampled_from(_NAMES)), (1, st.text(max_size=8)))
    plain = st.builds(_file, name, st.just(b"0"), st.binary(max_size=9), st.none(), st.just(_octal(9)), st.just(True))
    folder = st.builds(_file, name, st.just(b"5"), st.just(b""), st.none(), st.just(b""), st.just(True))
    odd = st.builds(
        _file,
        name,
        st.sampled_from(_KINDS),
        st.binary(max_size=600),
        st.one_of(st.none(), st.sampled_from(_FIELDS)),
        st.sampled_from(_FIELDS),
        weighted((9, st.just(True)), (1, st.just(False))),
    )
    wrong = weighted((9, st.just(0)), (1, st.integers(-9, 9)))
    key, value = st.sampled_from(_KEYS), st.one_of(st.sampled_from(_VALUES), st.binary(max_size=9))
    attributes = st.builds(_pax, st.lists(st.tuples(key, value, wrong), max_size=3))
    run = st.just(_file("one/run.json", b"0", b"{}", None, b"", True))
    part = weighted((8, plain), (3, folder), (1, odd), (1, attributes))
    bulk = st.integers(0, 60).map(
        lambda count: b"".join(_header(b"one/%d" % n, b"0", b"", b"", True) for n in range(count))
    )
    parts = st.lists(weighted((12, part), (1, bulk)), max_size=6).map(b"".join)
    end = weighted((8, st.just(bytes(1024))), (1, st.sampled_from([b"", bytes(512), bytes(10240), bytes(1024) + b"x"])))
    first = weighted((4, run), (1, st.just(b"")))
    whole = st.builds(lambda first, parts, end: first + parts + end, first, parts, end)
    right = _file("one/run.json", b"0", b"{}", None, b"", True) + _file("two/run.json", b"0", b"{}", None, b"", True)
    tar = weighted((6, whole), (1, mutated([right + bytes(1024)])))
    zipped = tar.map(lambda data: gzip.compress(data, mtime=0))
    twice = st.builds(lambda one, other: one + other, zipped, weighted((2, zipped), (1, st.binary(max_size=9))))
    torn = mutated([gzip.compress(right + bytes(1024), mtime=0)])
    return weighted((12, zipped), (1, twice), (1, torn), (1, st.binary(max_size=40)))


def check(data: bytes, folder: Path) -> None:
    """Unpacks an archive beside an existing run."""
    path, runs = folder / "a.tgz", folder / "runs"
    path.write_bytes(data)
    (runs / "there" / "checkpoints").mkdir(parents=True)
    (runs / "there" / "run.json").write_text("{}")
    (runs / "group").mkdir()
    (runs / "link").symlink_to(folder / "outside")
    (folder / "outside").mkdir()
    before = _listed(folder)
    found = []
    with contextlib.suppress(GanlabError):
        found = unarchive(path, runs, _LIMITS)
    after = _listed(folder)
    if not found:
        assert after == before
    assert all((run / "run.json").is_file() for run in found)
    assert {name: after.get(name) for name in before} == before
    for name in set(after) - set(before):
        place = folder / name
        assert stat.S_ISREG(os.lstat(place).st_mode) or place.is_dir()
        assert not place.is_symlink()
        around = any(run.is_relative_to(place) for run in found)
        assert around or any(place.is_relative_to(run) for run in found), name


def moving() -> st.SearchStrategy[bytes]:
    """The bytes of the list of runs that a killed process had yet to move."""
    return altered([[name.encode("utf-8", "surrogateescape").hex() for name in names] for names in _MOVED])


def check_moving(data: bytes, folder: Path) -> None:
    """Finishes moving: only runs of the hidden folder move, each to a free place in the other."""
    left, runs = folder / ".unpacking-0", folder / "runs"
    for name in ("one", "two/b", "there"):
        (left / name).mkdir(parents=True)
        (left / name / "run.json").write_text("{}")
    (runs / "there").mkdir(parents=True)
    (runs / "there" / "run.json").write_text("[]")
    (left / ".moving").write_bytes(data)
    finish_moving(left, runs)
    assert (runs / "there" / "run.json").read_text() == "[]"
    assert set(os.listdir(folder)) <= {".unpacking-0", "runs"}
    assert set(os.listdir(runs)) <= {"there", "one", "two", "b"}


def _listed(folder: Path) -> dict[str, bytes | str | None]:
    listed: dict[str, bytes | str | None] = {}
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            place = Path(at, name)
            what = os.readlink(place) if place.is_symlink() else place.read_bytes() if place.is_file() else None
            listed[str(place.relative_to(folder))] = what
    return listed
