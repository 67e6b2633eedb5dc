"""A mirror has the state before a write or after it, whatever fails, and reads of it are checked, bounded and few."""

import contextlib
import json
import os
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from ganlab_remote import cache, manifests, mirroring, opening, snapshots
from ganlab_remote.addresses import Remote
from ganlab_remote.mirroring import Mirror, Mirroring
from ganlab_remote.opening import opened
from resting_runs import contents, make

import ganlab
from ganlab.cli import cli
from ganlab.errors import GanlabError, RunError, TrainingFailedError
from ganlab.files import locked_folder, write_text
from ganlab.runs import size_on_disk

fsspec = pytest.importorskip("fsspec")
PARTS = 100


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a run, an empty store in memory, and parts of 100 bytes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GANLAB_CACHE", str(tmp_path / "cache"))
    for module in (manifests, snapshots):
        monkeypatch.setattr(module, "PART", PARTS)
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    make(tmp_path / "run")
    return tmp_path


def mirror(run, address="memory://b/runs/e/a"):
    made = Mirror(Remote(address), run)
    made.begin()
    return made


def mirrored(run):
    """What a mirror takes of a run."""
    return {name: data for name, data in contents(run).items() if name not in ("lock.json", "mirror.json")}


def read(folder="got", address="memory://b/runs/e/a"):
    """What a machine that has nothing resumes from."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with contextlib.chdir(folder), opened(address, "resume") as (path, _):
        return mirrored(path)


def part_of(file):
    """The name of a file's first part."""
    return manifests.digest(file.read_bytes()[:PARTS])


def written(monkeypatch, change=None):
    """The paths that are written from now on; `change` is called in the place of each write."""
    names, write = [], Remote.write

    def noting(remote, name, data):
        names.append(name)
        (change or (lambda do, number, data: do(data)))(lambda data: write(remote, name, data), len(names), data)

    monkeypatch.setattr(Remote, "write", noting)
    return names


def advance(run):
    """Trains on: a newer checkpoint in the place of the old one, one row more, another run.json."""
    (run / "checkpoints" / "step-00000080").mkdir()
    (run / "checkpoints" / "step-00000080" / "variables.data").write_bytes(bytes(range(250)) * 2)
    (run / "checkpoints" / "step-00000080" / "manifest.json").write_text("{}")
    shutil.rmtree(run / "checkpoints" / "step-00000040")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 80, "metrics": {}}\n')
    info = json.loads((run / "run.json").read_text())
    write_text(run / "run.json", json.dumps({**info, "step": 80}, indent=2))


def test_only_what_is_new_is_sent_and_what_nobody_reads_is_removed(here, monkeypatch):
    sending, names = mirror(here / "run"), written(monkeypatch)
    sending.send()
    assert read() == mirrored(here / "run")
    first = len(names)
    sending.send()
    assert [name.partition("/")[0] for name in names[first:]] == ["mirror"]
    del names[:]
    with (here / "run" / "samples" / "step-00000040.png").open("ab") as file:
        file.write(b"q" * 200)
    sending.send()
    assert [name.partition("/")[0] for name in names] == ["content"] * 3 + ["mirror"]  # 10 + 200 bytes, in parts of 100
    del names[:]
    with (here / "run" / "samples" / "step-00000040.png").open("ab") as file:
        file.write(b"r")
    sending.send()
    assert len(names) == 2  # the last part, and the manifest
    sending.send()
    present = Remote("memory://b/runs/e/a").sizes()
    assert sum(name.startswith("mirror/") for name in present) == 2
    assert {name.removeprefix("content/") for name in present if name.startswith("content/")} == {
        *sending._before.parts()
    }


class KilledError(BaseException):
    """The process ends here."""


def fails(do, data):
    raise RunError("507")


def torn(do, data):
    do(data[: len(data) // 2])
    raise RunError("the connection broke")


def unanswered(do, data):
    do(data)
    raise RunError("no answer")


def killed(do, data):
    do(data[: len(data) // 2])
    raise KilledError


@pytest.mark.parametrize("fault", [fails, torn, unanswered, killed])
def test_a_reader_finds_the_state_before_or_after_whichever_write_fails(here, monkeypatch, fault):
    mirror(here / "run").send()
    stored = dict(fsspec.filesystem("memory").store)
    shutil.copytree(here / "run", here / "first")
    before = mirrored(here / "run")
    advance(here / "run")
    after = mirrored(here / "run")
    with monkeypatch.context() as patch:
        count = len(names := written(patch)) or (mirror(here / "run").send() or len(names))
    assert count > 4
    for broken in range(1, count + 1):
        fsspec.filesystem("memory").store.clear()
        fsspec.filesystem("memory").store.update(stored)
        sending = mirror(here / "run")
        with monkeypatch.context() as patch:
            written(patch, lambda do, number, data, at=broken: fault(do, data) if number == at else do(data))
            with pytest.raises((RunError, KilledError)):
                sending.send()
        assert read() == (after if fault is unanswered and broken == count else before)
        again = mirror(here / "run") if fault is killed else sending  # another process, or the same one
        again.send()
        assert read() == after


def test_a_snapshot_is_not_changed_by_training_and_leaves_nothing(here):
    before = mirrored(here / "run")
    with snapshots.snapshot(here / "run") as held:
        advance(here / "run")
        assert {name: b"".join(file.parts()) for name, file in held.items()} == before
    assert sorted(path.name for path in here.iterdir() if path.name.startswith(".")) == []


def test_a_checkpoint_that_is_removed_while_it_is_held_is_left_out(here, monkeypatch):
    hold = snapshots._hold

    def removing(path, link):
        held = hold(path, link)
        if path.name == "manifest.json":
            shutil.rmtree(path.parent)
        return held

    monkeypatch.setattr(snapshots, "_hold", removing)
    with snapshots.snapshot(here / "run") as held:
        assert sorted(held) == sorted(name for name in mirrored(here / "run") if "checkpoints" not in name)


def test_a_mirror_that_another_process_has_taken_over_is_left_alone(here):
    first = mirror(here / "run")
    first.send()
    mirror(here / "run").send()
    state = read()
    advance(here / "run")
    with pytest.raises(RunError, match="now mirrored by another process"):
        first.send()
    assert read() == state


PART = "0" * 64
HOSTILE = [
    ({"format": 2}, "format = 2 must be 1: update ganlab"),
    ({"files": []}, "files = \\[\\] must be an object"),
    ({"files": {"a": {"size": 1, "sha256": ["../../etc/passwd"]}}}, "must be a SHA-256"),
    ({"files": {"a": {"size": 101, "sha256": [PART]}}}, "1 parts, which does not fit its 101 bytes"),
    ({"files": {"a": {"size": 6600, "sha256": [PART] * 66}}}, "more than 32 copies of each"),
    ({"files": {"a": {"size": 2**62, "sha256": []}}}, "must be below 2"),
    ({"files": {"a": {"size": 0, "sha256": []}, "a/b": {"size": 0, "sha256": []}}}, "'a' is a file and a folder"),
    *[
        ({"files": {name: {"size": 0, "sha256": []}}}, "must be a name that a file can have")
        for name in ("../x", "/x", "a/../../x", "a//b", ".x", "a/.git/config", "a\nb", "", "x/" * 16 + "x", "é" * 200)
    ],
]


@pytest.mark.parametrize(("change", "rule"), HOSTILE, ids=lambda case: str(case)[:30])
def test_hostile_manifests_are_refused_and_nothing_is_written(here, change, rule):
    mirror(here / "run").send()
    data = json.dumps({"format": 1, "part": PARTS, "writer": "", "files": {}, **change}).encode()
    Remote("memory://b/runs/e/a").write(f"mirror/00000009-{manifests.digest(data)}.json", data)
    for use in ("resume", "list"):
        with pytest.raises(RunError, match=rule), opened("memory://b/runs/e/a", use):
            pass
    assert sorted(contents(here / "cache")) == []
    assert not (here / "runs" / "e" / "a").exists()


def test_torn_and_renamed_manifests_and_foreign_files_are_not_read(here):
    mirror(here / "run").send()
    remote = Remote("memory://b/runs/e/a")
    remote.write(f"mirror/00000007-{PART}.json", b'{"format": 1')
    remote.write("mirror/00000008-abc.json", b"{}")
    remote.write("mirror/notes.txt", b"hello")
    Remote("memory://b/runs/.hidden/x").write(f"mirror/00000001-{PART}.json", b"{}")
    assert read() == mirrored(here / "run")
    assert CliRunner().invoke(cli, ["runs", "list", "memory://b/runs"]).stdout.count("completed") == 1


def test_content_that_is_not_what_its_name_says_is_refused_and_older_folders_stay(here):
    mirror(here / "run").send()
    read()
    advance(here / "run")
    mirror(here / "run").send()
    remote = Remote("memory://b/runs/e/a")
    part = next(name for name, size in remote.sizes().items() if name.startswith("content/") and size == PARTS)
    remote.write(part, b"x" * 10_000)
    with contextlib.chdir("got"):
        kept = mirrored(here / "got" / "runs" / "e" / "a")
        with (
            pytest.raises(RunError, match="is missing, or its SHA-256 is not its name"),
            opened(remote.address, "resume"),
        ):
            pass
    assert mirrored(here / "got" / "runs" / "e" / "a") == kept
    assert [path.name for path in (here / "got" / "runs" / "e").iterdir()] == ["a"]


def test_a_mirror_that_is_damaged_or_hostile_or_has_a_pipe_hides_no_other(here, monkeypatch):
    monkeypatch.setenv("GANLAB_CACHE", str(here / "checkpoints" / "me" / "cache"))
    (here / "checkpoints" / "me").mkdir(parents=True)
    (here / "checkpoints" / "me" / "thesis.txt").write_text("mine")
    remote = Remote(f"file://{here}/b/runs")
    for name in "abcd":
        mirror(here / "run", f"{remote.address}/e/{name}").send()
    mirror(here / "run", f"{remote.address}/checkpoints/a").send()
    (here / "b" / "runs" / "checkpoints" / "a" / "content" / part_of(here / "run" / "run.json")).unlink()
    pipe, flipped = (
        here / "b" / "runs" / "e" / name / "content" / part_of(here / "run" / "metrics.jsonl") for name in "ab"
    )
    pipe.unlink()
    os.mkfifo(pipe)
    flipped.write_bytes(flipped.read_bytes()[::-1])
    data = json.dumps({"format": 1, "part": PARTS, "writer": "", "files": {"../x": {"size": 0, "sha256": []}}}).encode()
    remote.write(f"e/c/mirror/00000009-{manifests.digest(data)}.json", data)
    for _ in range(2):
        done = CliRunner().invoke(cli, ["runs", "list", remote.address])
        assert (done.exit_code, done.stdout.count("completed")) == (0, 1)
        assert done.stderr.count("Warning: Left out: ") == 4
    # A run has no run in it: where one has a file, another would need a folder.
    mirror(here / "run", f"{remote.address}/e/d/metrics.jsonl").send()
    done = CliRunner().invoke(cli, ["runs", "list", remote.address])
    assert (done.exit_code, done.stdout.count("completed")) == (0, 1)
    assert (here / "checkpoints" / "me" / "thesis.txt").read_text() == "mine"


def test_a_damaged_checkpoint_is_left_out_and_sent_again_by_whoever_has_it(here, capfd):
    (here / "run" / "checkpoints" / "step-00000060").mkdir()
    (here / "run" / "checkpoints" / "step-00000060" / "variables.data").write_bytes(b"y" * 50)
    mirror(here / "run").send()
    remote = Remote("memory://b/runs/e/a")
    remote.write(manifests.part_path(manifests.digest(b"y" * 50)), b"z" * 50)
    assert not any("step-00000060" in name for name in read())
    assert "Left out: the checkpoint step-00000060. memory://b/runs/e/a/content/" in capfd.readouterr().err
    made, folder = opening._resumed(remote, start=True)
    shutil.copytree(here / "run" / "checkpoints" / "step-00000060", folder / "checkpoints" / "step-00000060")
    made.send()  # what training to that step once more has written
    assert read() == mirrored(here / "run")


def test_a_store_that_fails_for_a_while_takes_nothing_from_the_cache_and_damage_is_read_once(here, monkeypatch):
    for name in "ab":
        mirror(here / "run", f"memory://b/runs/e/{name}").send()
    remote, folder, known, reads = Remote("memory://b/runs"), here / "cached", {}, []

    def refresh(**how):
        return cache._refresh(remote, folder, 10**9, True, known, **how)

    assert refresh(strict=True) == []
    advance(here / "run")
    mirror(here / "run", "memory://b/runs/e/b").send()
    with monkeypatch.context() as failing:
        failing.setattr(fsspec.filesystem("memory"), "cat_ranges", lambda *_, **__: [OSError(503)] * 99)
        with pytest.raises(RunError, match="cannot be read: 503"):
            refresh(strict=False)
    assert (folder / "e" / "b" / "run.json").exists()
    remote.write(
        f"e/b/content/{part_of(here / 'run' / 'checkpoints' / 'step-00000080' / 'variables.data')}", b"x" * PARTS
    )
    with pytest.raises(manifests.DamagedError):
        refresh(strict=True)
    assert [problem[:37] for problem in refresh(strict=False)] == ["Left out: the checkpoint step-0000008"]
    monkeypatch.setattr(
        Remote, "read", lambda remote, files, read=Remote.read: reads.append(files) or read(remote, files)
    )
    assert len(refresh(strict=True)) == 1
    assert not [name for files in reads for name, _ in files if "content/" in name]
    assert not (folder / "e" / "b" / "checkpoints" / "step-00000080").exists()


def test_content_that_goes_while_a_run_trains_is_sent_again(here):
    made = mirror(here / "run")
    made.send()
    for name in made.remote.sizes():
        made.remote.remove([name])
    advance(here / "run")
    made.send(again=False)
    assert read() == mirrored(here / "run")
    made.remote.remove(list(made.remote.sizes()))
    made.send(again=False)  # nothing is new here, and nothing is there
    assert read() == mirrored(here / "run")


def test_lists_and_comparisons_read_no_checkpoint_and_only_what_is_new(here, monkeypatch):
    for name in "ab":
        mirror(here / "run", f"memory://b/runs/e/{name}").send()
    sizes, reads = [], Remote.read
    monkeypatch.setattr(Remote, "read", lambda remote, files: sizes.append(list(files)) or reads(remote, files))
    for words in (["runs", "list"], ["compare", "--metric", "critic/loss"], ["runs", "list"]):
        done = CliRunner().invoke(cli, [*words, "memory://b/runs"])
        assert done.exit_code == 0, done.output
    assert "memory://b/runs is read from" in done.stderr
    here_now = contents(here / "cache" / "remote" / "memory" / "b" / "runs")
    assert {name for name in here_now if "checkpoints" in name} == set()
    assert sum(len(files) for files in sizes if any(name.partition("content/")[1] for name, _ in files)) == sum(
        -(-len(data) // PARTS) for name, data in here_now.items() if ".mirror" not in name
    )  # each part once, in three commands
    assert CliRunner().invoke(cli, ["compare", "memory://b/runs/e/[a]", "--json"]).exit_code == 0
    shown = CliRunner().invoke(cli, ["runs", "show", "memory://b/runs/e/b"])
    assert "checkpoints of step 40" in shown.stdout
    del sizes[:]
    CliRunner().invoke(cli, ["runs", "list", "memory://b/runs"])
    assert sum(map(len, sizes)) == 2  # the manifests: a checkpoint that was read stays
    Remote("memory://b/runs/e/a").remove(list(Remote("memory://b/runs/e/a").sizes()))
    listed = CliRunner().invoke(cli, ["runs", "list", "memory://b/runs", "--json"])
    assert [row["path"].rpartition("/")[2] for row in json.loads(listed.stdout)] == ["b"]


def test_the_cache_is_bounded_and_the_least_recently_used_run_goes_first(here, monkeypatch):
    for name in "abcd":
        mirror(here / "run", f"memory://b/{name}/e/r").send()

    def use(name):
        with opened(f"memory://b/{name}", "read") as (folder, _):
            here_now = sorted(path.parent.parent.name for path in (here / "cache").glob("remote/memory/b/*/e/r"))
            assert mirrored(folder / "e" / "r").keys() >= mirrored(here / "run").keys()
        return "".join(here_now)

    for number, name in enumerate("abca"):
        assert use(name)
        os.utime(here / "cache" / "remote" / "memory" / "b" / name / "e" / "r" / ".mirror.json", (number, number))
    monkeypatch.setenv(cache.LIMIT, str(int(1.1 * size_on_disk(here / "cache"))))  # three, and a bit
    with opened("memory://b/b", "read"):  # in use, so the next oldest goes
        assert use("d") == "abd"
    monkeypatch.setenv(cache.LIMIT, "1kB")
    with pytest.raises(RunError, match=r"the cache may have 1.0 kB\. .*raise the limit: GANLAB_REMOTE_CACHE="):
        use("a")
    monkeypatch.setenv(cache.LIMIT, "much")
    with pytest.raises(GanlabError, match="GANLAB_REMOTE_CACHE = 'much' must be a size, for example 20GB"):
        use("a")


def ours(run):
    """Makes this process the one that trains a run."""
    process = f"process {os.getpid()} on {os.uname().nodename}"
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "process": process}))


def test_training_is_mirrored_at_checkpoints_through_failures_and_at_its_end(here, monkeypatch, capfd):
    monkeypatch.setattr(mirroring, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(mirroring, "_FIRST_WAIT", 0.01)
    ours(here / "run")
    failures = iter([True] * 3)
    names = written(monkeypatch, lambda do, number, data: fails(do, data) if next(failures, False) else do(data))
    following = Mirroring(mirror(here / "run"), here / "run")
    wait = threading.Event().wait
    while not any(name.startswith("mirror/") for name in names):
        wait(0.01)
    advance(here / "run")
    while following._mirror.step != 80:
        wait(0.01)
    (here / "run" / "config.gin").write_text("experiment.steps = 80\n")
    assert following.finish() == "Mirror: memory://b/runs/e/a has step 80."
    assert read() == mirrored(here / "run")
    assert capfd.readouterr().err.count("Warning: Not mirrored: 507 It is tried again, and training goes on.") == 1


@pytest.mark.parametrize("answer", [fails, lambda do, data: threading.Event().wait(60)], ids=["error", "silence"])
def test_a_last_state_that_cannot_be_sent_is_an_error_that_names_the_folder(here, monkeypatch, answer):
    monkeypatch.setattr(mirroring, "_SECONDS", 0.1)
    monkeypatch.setattr(mirroring, "_FIRST_WAIT", 0.05)
    ours(here / "run")
    written(monkeypatch, lambda do, number, data: answer(do, data))
    following = Mirroring(mirror(here / "run"), here / "run")
    with pytest.raises(TrainingFailedError) as failed:
        following.finish()
    assert f"The last state of {here / 'run'} is not in its mirror, which has no checkpoint: " in str(failed.value)
    assert str(failed.value).endswith("send it from here: ganlab run --resume memory://b/runs/e/a")


def test_a_run_whose_mirror_is_taken_over_says_so_at_once_and_at_its_end(here, monkeypatch, capfd):
    monkeypatch.setattr(mirroring, "_LOOK_SECONDS", 0.01)
    ours(here / "run")
    made = mirror(here / "run")
    mirror(here / "run").send()
    following = Mirroring(made, here / "run")
    assert following._done.wait(60)
    said = "memory://b/runs/e/a is now mirrored by another process, so this one leaves it alone."
    assert f"Warning: Mirroring stopped: {said}" in capfd.readouterr().err
    with pytest.raises(TrainingFailedError, match=r"is not in its mirror: memory://.* --resume .*/run$") as failed:
        following.finish()
    assert "--resume memory" not in str(failed.value)


def test_another_process_is_not_mirrored(here):
    following = Mirroring(mirror(here / "run"), here / "run")
    assert following.finish() == ""
    assert Remote("memory://b").sizes() == {}


def test_a_folder_here_is_used_if_it_sent_the_newest_state_and_moved_aside_if_it_is_older(here, capfd):
    folder = here / "runs" / "e" / "a"
    shutil.copytree(here / "run", folder)
    another = "runs/e/a is another run than memory://b/runs/e/a"
    with pytest.raises(RunError, match=another), opened("memory://b/runs/e/a", "resume"):
        pass
    mirror(folder).send()
    advance(folder)  # and stopped before that was sent
    newer = mirrored(folder)
    with opened("memory://b/runs/e/a", "resume") as (path, _):
        assert mirrored(path) == newer
    elsewhere = mirror(here / "run")
    elsewhere.send()
    with opened("memory://b/runs/e/a", "resume") as (path, _):
        assert mirrored(path) == mirrored(here / "run")
    assert "runs/e/a had another state than its mirror, and was renamed to runs/e/.a.before-" in capfd.readouterr().err
    (aside,) = (here / "runs" / "e").glob(".a.before-*")
    assert mirrored(aside) == newer


def test_a_run_that_is_repeated_goes_on_from_its_mirror_or_starts_without_one(here):
    folder = here / "runs" / "e" / "a"
    for fill in (lambda: None, lambda: shutil.copytree(here / "run", folder)):  # ended before anything was sent
        fill()
        with opened("memory://b/runs", "create") as (runs, trained):
            trained(runs / "e" / "a", True)
    mirror(folder).send()
    sent = mirrored(folder)
    shutil.rmtree(here / "runs")
    with opened("memory://b/runs", "create") as (runs, trained):
        with pytest.raises(RunError, match="memory://b/runs/e/a has a run already"):
            trained(runs / "e" / "a", False)
        trained(runs / "e" / "a", True)
        assert mirrored(folder) == sent


def test_python_reads_runs_at_addresses_and_lets_go_of_them(here, monkeypatch):
    mirror(here / "run").send()
    run = ganlab.Run("memory://b/runs/e/a")
    assert mirrored(run.path) == mirrored(here / "run") | {".mirror.json": (run.path / ".mirror.json").read_bytes()}
    with locked_folder(run.path) as free:
        assert not free
    with pytest.raises(GanlabError, match="runs/e is not a run but contains 1"):
        ganlab.Run("memory://b/runs/e")
    (row,) = ganlab.compare("memory://b/runs", metrics="critic/loss").configurations
    assert [one.path for one in row.runs] == [here / "cache/remote/memory/b/runs/e/a"]
    place = run.path
    del run
    with locked_folder(place) as free:
        assert free


def test_a_twin_of_a_run_at_an_address_is_trained_beside_the_run_that_was_taken(here, monkeypatch):
    mirror(here / "run").send()
    twins, names = [], written(monkeypatch)
    monkeypatch.setattr(ganlab.Run, "recipe", lambda run, params: SimpleNamespace(arguments={}))
    monkeypatch.setattr("ganlab_time_travel.fork", lambda run, path, **asked: twins.append((run.path, path)) or run)
    for name in ("first", "second"):  # of a mirror that cannot be written
        done = CliRunner().invoke(cli, ["fork", "memory://b/runs/e/a", "--at", "1", "--name", name])
        assert done.exit_code == 0, done.output
    ganlab.Run("memory://b/runs/e/a").fork(at=1)
    assert twins[:2] == [(Path("runs/e/a"), Path("runs/e", name).absolute()) for name in ("first", "second")]
    assert (twins[2][1].parent, names) == (Path("runs/e"), [])


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("memory://b/none", "memory://b/none has no run. Give the address that 'ganlab run --runs' mirrored to."),
        ("nowhere://b/x", "nowhere://b/x is a URL, and only a path of this machine is taken here"),
        ("memory://b/.x", "memory://b/.x has no run."),
    ],
)
def test_addresses_without_runs_are_refused(here, address, message):
    done = CliRunner().invoke(cli, ["runs", "list", address])
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("missing", ["fsspec", "gcsfs"])
def test_a_missing_package_is_named(here, monkeypatch, missing):
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    done = CliRunner().invoke(cli, ["runs", "list", "gs://b/x"])
    assert done.exit_code == 2
    assert {"fsspec": "pip install -e '.[remote]'", "gcsfs": "install gcsfs"}[missing] in done.stderr
