"""Untrusted archives: unpacked completely or not at all, within limits, with one sentence for each fault."""

import gzip
import io
import os
import signal
import subprocess
import sys
import tarfile
import time
import zlib
from pathlib import Path

import pytest
from ganlab_archive import Limits, archive, unarchive, unpacking
from resting_runs import contents, make

from ganlab.errors import RunError

RUN = ("one/run.json", b"{}")


def member(name, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def packed(path, *members, format=tarfile.PAX_FORMAT):
    with tarfile.open(path, "w:gz", format=format) as tar:
        for given in members:
            info, data = given if isinstance(given[0], tarfile.TarInfo) else member(*given)
            tar.addfile(info, io.BytesIO(data))
    return path


def header(name=b"one/a", kind=b"0", size=b"00000000000", time=b"00000000000"):
    raw = bytearray(512)
    raw[: len(name)] = name
    raw[100:108], raw[124 : 124 + len(size)], raw[136 : 136 + len(time)] = b"0000644\0", size, time
    raw[156:157], raw[257:265] = kind, b"ustar\x0000"
    raw[148:156] = b" " * 8
    raw[148:156] = f"{sum(raw):06o}\0 ".encode()
    return bytes(raw)


def blocks(data):
    return data + bytes(-len(data) % 512)


def octal(number):
    return f"{number:011o}".encode()


INFO = header(b"one/run.json", size=octal(2)) + blocks(b"{}")
END = bytes(1024)


def raw(path, *parts, end=END):
    path.write_bytes(gzip.compress(b"".join(parts) + end, mtime=0))
    return path


def pax(text):
    return header(b"x", b"x", octal(len(text))) + blocks(text)


def record(key, value):
    body = b" " + key + b"=" + value + b"\n"
    length = len(body) + 1
    while len(str(length)) + len(body) != length:
        length += 1
    return str(length).encode() + body


def refused(path, folder, match, **options):
    before = contents(folder.parent)
    listed = sorted(folder.parent.rglob("*"))
    with pytest.raises(RunError, match=match) as caught:
        unarchive(path, folder, **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600 + len(str(path))
    assert sorted(folder.parent.rglob("*")) == listed
    assert contents(folder.parent) == before


@pytest.fixture
def victim(tmp_path):
    return make(tmp_path / "runs" / "Victim").path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Victim/checkpoints/evil/run.json", "Victim is a run, and nothing is unpacked into a run"),
        ("Victim/run.json", "Victim already exists"),
        ("victim/run.json", "Victim already exists"),
        ("VICTIM/checkpoints/x/run.json", "Victim is a run"),
        ("ring/link/one/run.json", "link is a link, and nothing"),
        ("ring/link/run.json", "link is a link, and nothing"),
        ("ring/file/one/run.json", "file is a file where a folder of runs would go"),
    ],
)
def test_nothing_is_unpacked_into_an_existing_run(tmp_path, victim, name, message):
    (tmp_path / "runs" / "ring").mkdir()
    (tmp_path / "runs" / "ring" / "link").symlink_to(victim)
    (tmp_path / "runs" / "ring" / "file").write_text("")
    refused(packed(tmp_path / "a.tgz", (name, b"{}"), ("other/run.json", b"{}")), tmp_path / "runs", message)


@pytest.mark.parametrize("below", [".", "checkpoints", "new/folder", "../Victim/new", "new/../../Victim/x"])
def test_unpacking_inside_a_run_is_refused(tmp_path, victim, below):
    refused(packed(tmp_path / "a.tgz", RUN), victim / below, "is in the run|is a run|already exists|cannot be")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([RUN, ("one/a", b"1"), ("one/a", b"2")], "holds 'one/a' twice"),
        ([RUN, ("one/a", b"1"), ("one/A", b"2")], r"holds 'one/A' twice \(as 'one/a'\)"),
        ([RUN, ("ONE/a", b"1")], "holds 'ONE/a' twice"),
        ([RUN, ("one/a", b"1"), ("one/./a", b"2")], "twice"),
        ([RUN, ("one/\u00e9", b"1"), ("one/e\u0301", b"2")], "twice"),
        ([RUN, ("one/a", b"1"), ("one/a/b", b"2")], "twice"),
        ([RUN, ("one/a/b", b"1"), ("one/a", b"2")], "twice"),
        ([RUN, ("one/" + "a/" * 3000 + "b", b"1")], "is longer than 1024 bytes"),
        ([RUN, ("one/" + "a/" * 40 + "b", b"1")], "lies more than 32 folders deep"),
        ([RUN, ("one/" + "a" * 256, b"1")], "a part of it than 255"),
        ([RUN, ("one/\x1b[2J", b"1")], "has control characters"),
        ([RUN, ("one/a\nb", b"1")], "has control characters"),
        ([RUN, ("../one/a", b"1")], "would be extracted outside"),
        ([RUN, ("one/../../../out", b"1")], "would be extracted outside"),
        ([RUN, ("stray.py", b"1")], "holds 'stray.py', which is not part of a run"),
        ([("run.json", b"{}")], "is not an archive of runs"),
        ([("one/notes", b"1")], "is not an archive of runs"),
        ([RUN, member("one/a", type=tarfile.CHRTYPE)], "neither a file nor a folder but a device"),
        ([RUN, member("one/a", type=tarfile.BLKTYPE)], "but a device"),
        ([RUN, member("one/a", type=tarfile.FIFOTYPE)], "but a pipe"),
        ([RUN, member("one/a", type=tarfile.SYMTYPE, linkname="b")], "but a symbolic link"),
        ([RUN, member("one/a", type=tarfile.LNKTYPE, linkname="one/run.json")], "but a hard link"),
        ([RUN, member("one/a", type=tarfile.GNUTYPE_SPARSE)], "but a sparse file"),
        ([RUN, member("one/a", pax_headers={"GNU.sparse.major": "1"})], "but a sparse file"),
        ([RUN, member("one/a", type=b"Z")], "of an unknown kind"),
        ([RUN, member("one/a", pax_headers={"mtime": "nan"})], "gives 'one/a' the invalid time 'nan'"),
        ([RUN, member("one/a", pax_headers={"mtime": "inf"})], "the invalid time 'inf'"),
        ([RUN, member("one/a", pax_headers={"mtime": "1e300"})], "the invalid time '1e300'"),
        ([RUN, member("one/a", pax_headers={"mtime": "-1"})], "the invalid time '-1'"),
        ([RUN, member("one/a", pax_headers={"mtime": "soon"})], "the invalid time 'soon'"),
        ([RUN, member("one/a", pax_headers={"size": "9" * 5000})], "the invalid size '9"),
        ([RUN, member("one/a", pax_headers={"size": "-1"})], "the invalid size '-1'"),
        ([RUN, member("one/a", pax_headers={"path": "one/a\0b"})], "which is not a name"),
        ([RUN, member("one/a", pax_headers={"comment": "x" * 10_000_000})], "attributes of 10000"),
        ([RUN, ("two/.hidden/run.json", b"{}")], "holds 'two/.hidden/run.json', which is not part of a run"),
    ],
)
def test_invalid_members_are_refused_in_one_sentence(tmp_path, members, message):
    (tmp_path / "runs").mkdir()
    refused(packed(tmp_path / "a.tgz", *members), tmp_path / "runs", message)
    refused(packed(tmp_path / "a.tgz", *members), tmp_path / "new" / "runs", message)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([header(size=b"\x80" + b"\xff" * 11), INFO], "its files are larger than"),
        ([header(size=b"\xff" * 12), INFO], "the invalid size '-1'"),
        ([header(size=b"999999999"), INFO], "a header is invalid"),
        ([header(time=b"\x80" + b"\xff" * 11), INFO], "the invalid time"),
        ([header(time=b"\xff" * 12), INFO], "the invalid time '-1'"),
        ([header(kind=b"x", size=octal(1 << 32)), INFO], "attributes of 4294967296 bytes"),
        ([header(kind=b"L", size=octal(1 << 32)), INFO], "attributes of 4294967296 bytes"),
        ([pax(b"")] * 9 + [INFO], "4 times a file"),
        ([pax(b"999999 path=x\n"), INFO], "attributes that cannot be read"),
        ([pax(b"x" * 100), INFO], "attributes that cannot be read"),
        ([pax(b"0 a=b\n"), INFO], "attributes that cannot be read"),
        ([INFO, pax(record(b"path", b"two"))], "a name without a file"),
        ([INFO, pax(record(b"path", b"")), header()], "which is not a name"),
        ([INFO, header(kind=b"5", size=octal(512)), bytes(512)], "a folder of 512 bytes"),
        ([INFO[:600] + b"x" + INFO[601:], b"x" * 512], "a header is invalid"),
        ([b"x" * 1024], "a header is invalid"),
        ([INFO, END, INFO], "data after its end"),
        ([INFO, bytes(3 << 20)], "data after its end"),
    ],
)
def test_forged_headers_are_refused_in_one_sentence(tmp_path, parts, message):
    refused(raw(tmp_path / "a.tgz", *parts), tmp_path / "runs", message)


def test_names_in_all_tar_formats_are_read(tmp_path):
    for format in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        folder = tmp_path / str(format)
        long = "one/" + "b" * 100 + "/" + "c" * 90
        path = packed(tmp_path / "a.tgz", member("./one", type=b"5"), RUN, (long, b"x"), format=format)
        assert unarchive(path, folder) == [folder / "one"]
        assert (folder / long).read_bytes() == b"x"


def test_absolute_names_are_unpacked_inside_the_folder(tmp_path):
    path = packed(tmp_path / "a.tgz", ("/one/run.json", b"{}"))
    assert unarchive(path, tmp_path / "runs") == [tmp_path / "runs" / "one"]


def test_future_times_and_modes_are_not_restored(tmp_path):
    path = packed(
        tmp_path / "a.tgz", RUN, member("one/a", b"", mtime=2**33, mode=0o7777), member("one/b", mtime=1000.5)
    )
    unarchive(path, tmp_path / "runs")
    found = (tmp_path / "runs" / "one" / "a").stat()
    assert found.st_mtime <= time.time()
    assert found.st_mode & 0o7111 == 0
    assert (tmp_path / "runs" / "one" / "b").stat().st_mtime == 1000.5


def test_locks_and_empty_folders_are_left_out(tmp_path):
    path = packed(tmp_path / "a.tgz", RUN, ("one/lock.json", b"{}"), member("two", type=b"5"), member("x/y", type=b"5"))
    unarchive(path, tmp_path / "runs")
    assert contents(tmp_path / "runs") == {"one/run.json": b"{}"}
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["one"]


def test_truncated_archives_are_refused(tmp_path):
    make(tmp_path / "one")
    archive([tmp_path / "one"], tmp_path / "a.tgz")
    whole = (tmp_path / "a.tgz").read_bytes()
    plain = gzip.decompress(whole)
    short = tmp_path / "s.tgz"
    lengths = {0, 1, 10, len(whole) // 2, *range(len(whole) - 12, len(whole))}
    for length in lengths:
        short.write_bytes(whole[:length])
        refused(short, tmp_path / "runs", "is damaged or not an archive")
    filled = len(plain.rstrip(b"\0"))
    for length in (512, 1024, filled, -(-filled // 512) * 512, -(-filled // 512) * 512 + 512):
        short.write_bytes(gzip.compress(plain[:length]))
        refused(short, tmp_path / "runs", "is damaged or not an archive|is not an archive of runs")


@pytest.mark.parametrize(
    "garbage",
    [b"x", gzip.compress(b"more"), gzip.compress(INFO + END)],
    ids=["a byte", "a stream", "an archive"],  # ids, because compressed bytes contain the time
)
def test_data_after_the_end_is_refused(tmp_path, garbage):
    path = packed(tmp_path / "a.tgz", RUN)
    path.write_bytes(path.read_bytes() + garbage)
    refused(path, tmp_path / "runs", "is damaged or not an archive")


def test_flipped_bit_is_refused(tmp_path):
    make(tmp_path / "one")
    archive([tmp_path / "one"], tmp_path / "a.tgz")
    whole = bytearray((tmp_path / "a.tgz").read_bytes())
    whole[-6] ^= 1  # in the checksum of everything
    (tmp_path / "a.tgz").write_bytes(whole)
    refused(tmp_path / "a.tgz", tmp_path / "runs", "is damaged")


def zeros(path, size):
    """Writes an archive of one run with a file of zeros, in pieces."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        file.write(packer.compress(INFO + header(b"one/zeros", size=octal(size))))
        for _ in range(size >> 20):
            file.write(packer.compress(bytes(1 << 20)))
        file.write(packer.compress(END) + packer.flush())
    return path


def test_decompression_bomb_is_refused_before_it_is_written(tmp_path):
    path = zeros(tmp_path / "a.tgz", 80 << 20)
    assert path.stat().st_size < 1 << 18
    began = time.process_time()
    refused(path, tmp_path / "runs", r"its files are larger than 64000000 bytes.*--max-size")
    assert time.process_time() - began < 1
    assert unarchive(path, tmp_path / "runs", Limits(expansion=None)) == [tmp_path / "runs" / "one"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extensions", "message"),
    [
        (pax(b"6 a=b\n" * 10_900), "more names and attributes than 1 MiB"),
        (pax(b"6 a=b\n" * 10_900) * 4, "more names and attributes than 1 MiB"),
        (header(kind=b"K", size=octal(1 << 16)) + bytes(1 << 16), "more names and attributes than 1 MiB"),
        (header(kind=b"g", size=octal(1 << 16)) + bytes(1 << 16), "more names and attributes than 1 MiB"),
        (pax(b"9" * 60_000 + b" a=b\n"), "attributes that cannot be read"),
        (pax(b"1 " * 30_000), "attributes that cannot be read"),
    ],
)
def test_headers_take_linear_time_and_have_a_budget(tmp_path, extensions, message):
    parts = [extensions + header(b"one/%d" % number) for number in range(1500)]
    path = raw(tmp_path / "a.tgz", INFO, *parts)
    began = time.process_time()
    refused(path, tmp_path / "runs", message)
    assert time.process_time() - began < 2


def test_too_many_files_are_refused(tmp_path):
    members = [header(b"one/%d" % number) for number in range(300)]
    path = raw(tmp_path / "a.tgz", INFO, *members)
    refused(path, tmp_path / "runs", "more than 300 files and folders.*--max-files", limits=Limits(files=300))
    refused(
        raw(tmp_path / "b.tgz", INFO, header(b"one/" + b"a/" * 25)),
        tmp_path / "runs",
        "more than 20 files and",
        limits=Limits(files=20),
    )
    assert unarchive(path, tmp_path / "runs", Limits(files=302))


def test_unpacking_takes_bounded_memory(tmp_path):
    name = b"".join([b"n" * (1 << 20)] * 80)
    raw(tmp_path / "a.tgz", header(kind=b"L", size=octal(len(name))), name, INFO)
    zeros(tmp_path / "b.tgz", 80 << 20)
    code = (
        "import sys, resource; from pathlib import Path; from ganlab_archive import unarchive, Limits\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for name in 'ab':\n"
        "    try: unarchive(Path(name + '.tgz'), Path('runs'), Limits(expansion=None))\n"
        "    except Exception as error: print(type(error).__name__)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    said, used = done.stdout.split()
    assert said == "RunError"
    assert int(used) < 32 << 10  # kilobytes
    assert (tmp_path / "runs" / "one" / "zeros").stat().st_size == 80 << 20


def two(path):
    return packed(path, ("ring/one/run.json", b"{}"), ("digits/two/run.json", b"{}"), ("digits/two/a", b"x"))


def test_failed_move_of_the_second_run_undoes_the_first(tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    rename = Path.rename

    def once(self, target):
        if target.name == "ring":
            raise PermissionError(13, "Permission denied", str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", once)
    refused(two(tmp_path / "a.tgz"), tmp_path / "runs", "ring cannot be written: Permission denied")


def test_run_created_meanwhile_is_kept(tmp_path, monkeypatch):
    check = unpacking.check_free

    def late(target, folder):
        check(target, folder)
        if target.name == "one":
            make(target)

    monkeypatch.setattr(unpacking, "check_free", late)
    with pytest.raises(RunError, match="one already exists"):
        unarchive(two(tmp_path / "a.tgz"), tmp_path / "runs")
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["ring"]
    assert (tmp_path / "runs" / "ring" / "one" / "config.gin").exists()


SLOW = """
import os, sys, time
from ganlab_archive import tarring
data = tarring.TarReader.data
def slow(self, member):
    for piece in data(self, member):
        print("begun", flush=True)
        time.sleep(float(os.environ["SECONDS_EACH"]))
        yield piece
tarring.TarReader.data = slow
sys.argv[0] = "ganlab"
from ganlab.cli import main
main()
"""


def stopped(tmp_path, number, seconds):
    command = [sys.executable, "-c", SLOW, "runs", "unarchive", "a.tgz", "-o", "new/runs"]
    environment = {**os.environ, "SECONDS_EACH": str(seconds)}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.1)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_signal_during_unpacking_leaves_nothing(tmp_path, number, code):
    two(tmp_path / "a.tgz")
    status, said = stopped(tmp_path, number, 0.5)
    assert status == code
    assert "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


def test_leftovers_of_a_killed_process_are_hidden_and_removed_by_the_next_call(tmp_path):
    two(tmp_path / "a.tgz")
    assert stopped(tmp_path, signal.SIGKILL, 60)[0] == -signal.SIGKILL
    left = [path for path in tmp_path.iterdir() if path.name != "a.tgz"]
    assert len(left) == 1
    assert left[0].name.startswith(".unpacking-")
    with unpacking._aside(tmp_path) as living:  # of a process that is still running
        unarchive(tmp_path / "a.tgz", tmp_path / "new" / "runs")
        assert living.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tgz", "new"]
    assert sorted(path.name for path in (tmp_path / "new" / "runs").iterdir()) == ["digits", "ring"]


def test_next_call_completes_the_moves_of_a_killed_process(tmp_path):
    (tmp_path / "runs").mkdir()
    two(tmp_path / "a.tgz")
    packed(tmp_path / "b.tgz", RUN)
    code = (
        "import os, pathlib; from ganlab_archive import unarchive; rename = pathlib.Path.rename\n"
        "pathlib.Path.rename = lambda self, to: os.kill(os.getpid(), 9) if to.name == 'ring' else rename(self, to)\n"
        "unarchive(pathlib.Path('a.tgz'), pathlib.Path('runs'))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == -signal.SIGKILL
    assert sorted(path.name for path in (tmp_path / "runs").iterdir() if path.name[0] != ".") == ["digits"]
    unarchive(tmp_path / "b.tgz", tmp_path / "runs")
    assert sorted(contents(tmp_path / "runs")) == [
        "digits/two/a",
        "digits/two/run.json",
        "one/run.json",
        "ring/one/run.json",
    ]


@pytest.mark.parametrize("planted", [b"", b"{}", b"[1]", b'["2e2e2f78"]', b'["2f746d70"]', b'["zz"]', b"[" * 9000])
def test_planted_hidden_folder_moves_nothing_elsewhere(tmp_path, planted):
    left = tmp_path / "runs" / ".unpacking-0"
    (tmp_path / "runs" / "x").mkdir(parents=True)
    left.mkdir()
    (left / ".moving").write_bytes(planted)
    unarchive(packed(tmp_path / "b.tgz", RUN), tmp_path / "runs")
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["one", "x"]
