"""Archives that `ganlab runs archive` writes are unpacked to the same files, and what cannot be is refused at once."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from ganlab_archive import Limits, archive, unarchive
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from resting_runs import contents, make

from ganlab.cli import cli
from ganlab.errors import RunError
from ganlab.runs import lock

COMMON = st.sampled_from(["a", "A", "é", "e\u0301", "ﬁ", "fi", "ß", "SS", " ", "run.json", "lock.json", "x" * 255])
ANY = st.binary(min_size=1, max_size=40).map(lambda name: os.fsdecode(name.translate(None, b"/\0")))
NAMES = st.one_of(COMMON, ANY, st.text(max_size=60)).filter(
    lambda name: name not in ("", ".", "..") and not set("/\0") & set(name) and is_name(name)
)


def is_name(name):
    try:
        return len(os.fsencode(name)) <= 255
    except UnicodeEncodeError:
        return False


def left(folder):
    """What an archive takes of a run: no hidden files, no links, no lock."""
    return {
        name: data
        for name, data in contents(folder).items()
        if not any(part.startswith(".") for part in Path(name).parts) and name != "lock.json"
    }


@settings(max_examples=100, deadline=None, database=None)
@given(
    runs=st.lists(st.lists(NAMES, min_size=1, max_size=2), min_size=1, max_size=3),
    files=st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=6),
    started=st.sampled_from(
        ["2026-08-01T12:00:00+00:00", "1601-01-01T00:00:00+00:00", "9999-12-31T23:59:59-10:00", ""]
    ),
    age=st.sampled_from([-1e10, 0.0, 1e9, 1e11]),
)
@example(runs=[["a"]], files=[["lock.json", "a"]], started="2026-08-01T12:00:00+00:00", age=0.0)
def test_archive_is_refused_or_unpacked_to_the_same_files(runs, files, started, age):
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of them take a minute
        patch.setattr(lock, "_STILL_SECONDS", 0.0)
        top = Path(place)
        paths = []
        for parts in runs:
            try:
                make(top.joinpath("runs", *parts), provenance={"started": started})
            except (RunError, OSError):  # the place is taken
                continue
            paths.append(top.joinpath("runs", *parts))
            os.utime(paths[-1] / "run.json", (age, age))
        assume(paths)
        for parts in files:
            path = paths[0].joinpath(*parts)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.open("xb").write("/".join(parts).encode("utf-8", "surrogateescape"))
            except OSError:  # there is something else
                continue
        check_round_trip(paths, top)


def check_round_trip(paths, top):
    packed = top / "a.tar.gz"
    try:
        done = archive(paths, packed)
    except RunError:
        assert not packed.exists()
        assert [path.name for path in top.iterdir()] == ["runs"]
        return
    found = unarchive(packed, top / "new")
    assert sorted(os.path.relpath(path, top / "new") for path in found) == sorted(done.names)
    for path, name in zip(paths, done.names, strict=True):
        assert contents(top / "new" / name) == left(path)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("a\nb", "'one/a\\\\nb' has control characters"),
        ("/".join("d" * 40), "lies more than 32 folders deep"),
        ("/".join(["n" * 200] * 6), "is longer than 1024 bytes"),
    ],
)
def test_names_that_would_be_refused_are_refused_at_once(name, rule, tmp_path):
    run = make(tmp_path / "one").path
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text("")
    with pytest.raises(RunError, match=rf"a\.tgz is not written, because it could not be unpacked: .*{rule}"):
        archive([run], tmp_path / "a.tgz")
    assert not (tmp_path / "a.tgz").exists()


def test_names_that_other_file_systems_take_for_one_are_refused(tmp_path):
    run = make(tmp_path / "one").path
    (run / "A").write_text("")
    (run / "a").write_text("")
    with pytest.raises(RunError, match=r"holds 'one/a' twice \(as 'one/A'\)"):
        archive([run], tmp_path / "a.tgz")


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        ([".hidden"], r"\.hidden cannot be archived: hidden folders are not searched for runs"),
        (["two", ".old/one"], r"cannot be archived: hidden folders .* Rename \.old"),
        (["one", "one/below/two"], "two is part of the run .*one. Archive only that"),
    ],
)
def test_runs_that_would_not_be_found_again_are_refused(names, rule, tmp_path):
    with pytest.raises(RunError, match=rule):
        archive([make(tmp_path / name).path for name in names], tmp_path / "a.tgz")


def test_run_whose_run_json_is_a_link_is_refused(tmp_path):
    run = make(tmp_path / "one").path
    (run / "run.json").rename(run / "info.json")
    (run / "run.json").symlink_to("info.json")
    with pytest.raises(RunError, match=r"one/run\.json is a link, and links are left out"):
        archive([run], tmp_path / "a.tgz")


def test_files_of_zeros_are_unpacked_again(tmp_path):
    run = make(tmp_path / "one").path
    with (run / "zeros").open("wb") as file:
        file.truncate(1 << 20)
    limits = Limits(least=1 << 16)
    archive([run], tmp_path / "a.tgz", limits=limits)
    assert (run / "zeros").stat().st_size < 100 * (tmp_path / "a.tgz").stat().st_size
    (found,) = unarchive(tmp_path / "a.tgz", tmp_path / "new", limits)
    assert contents(found) == contents(run)


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        (("--max-files", "5"), "holds more than 5 files and folders. If you trust it, raise the limit: --max-files"),
        (("--max-size", "1kB"), "its files are larger than 1000 bytes. If you trust it, raise the limit: --max-size"),
    ],
)
def test_archive_refuses_what_unarchive_refuses_with_the_same_options(option, rule, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "runs" / "one")
    made = CliRunner().invoke(cli, ["runs", "archive", "runs/one", "-o", "a.tgz", *option])
    assert (made.exit_code, rule in made.output) == (2, True)
    assert not (tmp_path / "a.tgz").exists()
    assert CliRunner().invoke(cli, ["runs", "archive", "runs/one", "-o", "a.tgz"]).exit_code == 0
    unpacked = CliRunner().invoke(cli, ["runs", "unarchive", "a.tgz", "-o", "new", *option])
    assert (unpacked.exit_code, rule in unpacked.output) == (2, True)


def test_hard_links_sparse_files_and_modes_are_archived_as_plain_files(tmp_path):
    run = make(tmp_path / ".hidden" / "one").path  # a folder that is no part of the archive
    os.link(run / "metrics.jsonl", run / "same.jsonl")
    with (run / "sparse").open("wb") as file:
        file.seek(100_000)
        file.write(b"end")
    (run / "empty" / "er").mkdir(parents=True)
    (run / "samples").chmod(0o2755)
    (run / "config.gin").chmod(0o4711)
    archive([run], tmp_path / "a.tgz")
    (found,) = unarchive(tmp_path / "a.tgz", tmp_path / "new")
    assert contents(found) == contents(run)
    assert (found / "empty" / "er").is_dir()


@pytest.mark.parametrize("seconds", [-1e9, 1e12, 5e17])
def test_times_before_1970_and_after_9999_are_taken(seconds, tmp_path):
    run = make(tmp_path / "one", provenance={}).path
    try:
        os.utime(run / "run.json", (seconds, seconds))
    except (OSError, OverflowError):
        pytest.skip("the file system has no such time")
    archive([run], tmp_path / "a.tgz")
    (found,) = unarchive(tmp_path / "a.tgz", tmp_path / "new")
    assert json.loads((found / "run.json").read_text()) == json.loads((run / "run.json").read_text())
    shutil.rmtree(tmp_path / "new")
    listed = CliRunner().invoke(cli, ["runs", "list", str(tmp_path)])
    assert listed.exit_code == 0, listed.output
