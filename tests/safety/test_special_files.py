"""Pipes, sockets, devices and sparse files in the place of a file: refused by name within seconds, never waited for."""

import gzip
import os
import struct
from pathlib import Path

import pytest
from ganlab_archive import unarchive
from ganlab_builtin.datasets import Arrays, ImageFolder, MinFunnels, TFRecords
from ganlab_builtin.evaluators import statistics_file
from ganlab_builtin.features import weights
from ganlab_compare import compare
from hostile import bind, in_time

from ganlab import fingerprints
from ganlab.config.sources import read_source
from ganlab.errors import GanlabError, RunError
from ganlab.support.atomic import new_file
from ganlab.support.paths import open_regular, open_stored
from ganlab.telemetry.event_cutting import cut

EVENTS = "events.out.tfevents.1.host.1.0"


@pytest.fixture(autouse=True, scope="module")
def imported():
    """TensorFlow, whose import takes seconds that are not counted."""
    pytest.importorskip("tensorflow")


def sparse(path, begin=b""):
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(1 << 40)


KINDS = {
    "a pipe": os.mkfifo,
    "a link to a pipe": lambda path: (os.mkfifo(path.with_name("aside")), path.symlink_to("aside")),
    "a socket": bind,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a sparse file": sparse,
}


def index_of(path):
    """A folder of one record, with the special file as its index."""
    record = struct.pack("<QI", 20, 0) + bytes(20) + bytes(4)
    (path.parent / "0.tfrecord").write_bytes(record)
    return TFRecords(path=str(path.parent))


# By the name of the file: what reads it.
READERS = {
    "x.gin": lambda path: read_source(path),
    "x.npy": lambda path: Arrays(path=str(path)),
    "x.npz": lambda path: Arrays(path=str(path)),
    "funnels.npz": lambda path: MinFunnels(path=str(path), dims=2, funnels=4),
    "statistics.npz": statistics_file.read,
    "x.pth": weights.read,
    "x.safetensors": weights.read,
    "x.png": lambda path: ImageFolder(path=str(path.parent), size=8),
    "x.tfrecord": lambda path: TFRecords(path=str(path.parent)),
    "0.tfrecord.index.npy": index_of,
    "x.tar.gz": lambda path: unarchive(path, path.parent / "runs"),
    "run.json": lambda path: compare([path.parent]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READERS)
def test_special_file_is_refused_in_time(tmp_path, name, kind):
    path = tmp_path / "place" / name
    path.parent.mkdir()
    KINDS[kind](path)
    with in_time(), pytest.raises((GanlabError, OSError, weights.UnreadableError, statistics_file.UnusableError)):
        READERS[name](path)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "a sparse file"])
def test_regular_files_alone_are_opened(tmp_path, kind):
    path = tmp_path / "file"
    KINDS[kind](path)
    with in_time(), pytest.raises(OSError, match=f"it is not a regular file but {kind.removeprefix('a link to ')}"):
        open_regular(path)
    with in_time():
        assert fingerprints.of_files(os.fsencode(tmp_path) + b"/", [b"file"])
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    path.unlink()
    path.write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert open_regular(tmp_path / "link").read() == b"text"


def test_pipe_that_nobody_reads_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("ganlab.support.atomic._READER_SECONDS", 0.2)
    os.mkfifo(tmp_path / "pipe")
    refused = pytest.raises(RunError, match="pipe cannot be written: no process reads this pipe")
    with in_time(), refused, new_file(tmp_path / "pipe") as file:
        file.write(b"x")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    "fill",
    [
        sparse,
        lambda path: sparse(path, struct.pack("<Q", 24) + bytes(24)),
        lambda path: path.write_bytes(b"\1\0\0\0\0\0\0\0" * (5 << 20)),
    ],
    ids=["holes", "no head", "likely heads"],
)
def test_event_file_without_events_is_refused_in_time(tmp_path, fill):
    fill(tmp_path / EVENTS)
    with in_time(), pytest.raises(RunError, match="holds more than 32 MiB that are not events"):
        cut(tmp_path, after=3)
    assert [path.name for path in tmp_path.iterdir()] == [EVENTS]


def test_a_file_that_is_almost_all_holes_is_refused(tmp_path):
    sparse(tmp_path / "all", b"begins")
    with in_time(), pytest.raises(RunError, match="all is almost all holes"):
        open_stored(tmp_path, "all")
    with (tmp_path / "some").open("wb") as file:
        for at in range(0, 200_000_000, 50_000_000):
            file.seek(at)
            file.write(bytes(1_000_000))
        file.truncate(200_000_000)
    with open_stored(tmp_path, "some") as file:
        assert file.tell() == 0


def test_empty_records_are_refused(tmp_path):
    (tmp_path / "x.tfrecord").write_bytes(bytes(16) * 3)
    with pytest.raises(GanlabError, match="its record 0 is empty or ends beyond it"):
        TFRecords(path=str(tmp_path))


def test_archive_of_a_sparse_file_is_refused_in_time(tmp_path):
    sparse(tmp_path / "x.tar.gz", gzip.compress(b"x" * 512)[:40])
    with in_time(), pytest.raises(RunError, match="damaged or not an archive"):
        unarchive(tmp_path / "x.tar.gz", Path(tmp_path) / "runs")
