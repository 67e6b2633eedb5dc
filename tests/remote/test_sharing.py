"""Readers share what the cache has, one process fills it at a time, and a push replaces only what a push wrote."""

import errno
import shutil
import threading

import pytest
from click.testing import CliRunner
from ganlab_remote import cache, shipping
from ganlab_remote.addresses import Remote
from ganlab_remote.mirroring import Mirror
from resting_runs import make

from ganlab.cli import cli
from ganlab.errors import RunError
from ganlab.files import locked_folder

fsspec = pytest.importorskip("fsspec")
ADDRESS = "memory://shared/runs/e/a b"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory, and a run at an address."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GANLAB_CACHE", str(tmp_path / "cache"))
    fsspec.filesystem("memory").store.clear()
    make(tmp_path / "run")
    made = Mirror(Remote(ADDRESS), tmp_path / "run")
    made.begin()
    made.send()
    return tmp_path


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Returns a function that writes what is pushed, and an empty working directory."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    fsspec.filesystem("memory").store.clear()

    def make(*names):
        folder = tmp_path / "-".join(names)
        folder.mkdir()
        for name in (*names, "run.tar.gz", "README.md", "config.gin", "run.json"):
            (folder / name).write_text(f"{name} of {folder.name}")
        return folder

    return make


def contents(address):
    remote = Remote(address if "://" in address else f"file://{address}")
    return {name: next(remote.read([(name, size)])).decode() for name, size in remote.sizes().items()}


def test_a_run_at_an_address_is_archived(here):
    done = CliRunner().invoke(cli, ["runs", "archive", ADDRESS, "-o", "run.tar.gz"])
    assert done.exit_code == 0, done.output
    assert (here / "run.tar.gz").is_file()


def test_readers_share_a_cached_run_and_nobody_else_has_it(here):
    with cache.cached(ADDRESS, checkpoints=True) as folder, cache.cached(ADDRESS, checkpoints=True) as again:
        assert folder == again
        with locked_folder(folder) as alone, locked_folder(folder, shared=True) as shared:
            assert (alone, shared) == (False, True)


def test_the_cache_is_filled_by_one_process_at_a_time(here):
    filled = threading.Event()

    def fill():
        with cache.cached(ADDRESS, checkpoints=True):
            filled.set()

    with cache.waiting_for(cache.place()):
        thread = threading.Thread(target=fill)
        thread.start()
        assert not filled.wait(1)
    thread.join()
    assert filled.is_set()


def test_figures_are_not_added_to_a_run_at_an_address(here):
    done = CliRunner().invoke(cli, ["evaluate", ADDRESS, "--save"])
    assert done.exit_code == 2
    assert "--save adds to a run in a folder of this machine, not to one at an address" in done.stderr


@pytest.mark.parametrize("address", ["memory://zoo/a", "zoo/a"])
def test_a_push_replaces_what_was_pushed_and_nothing_else(made, address):
    first, second = made("critic.safetensors", "generator.safetensors"), made("generator.safetensors")
    for folder in (first, second):
        shipping._send(folder, address)
        assert contents(address) == {path.name: path.read_text() for path in folder.iterdir()}
    assert not list(second.parent.joinpath("here").glob("zoo/.*"))
    Remote(address if "://" in address else f"file://{address}").write("mine.txt", b"mine")
    before = contents(address)
    with pytest.raises(RunError, match=rf"{address} has other files: mine.txt. Name a new or an empty folder"):
        shipping._check_replaceable(address)
    assert contents(address) == before


def test_a_folder_with_a_readme_of_its_own_is_not_pushed_to(made, tmp_path):
    (tmp_path / "here" / "README.md").write_text("mine")
    with pytest.raises(RunError, match=r"\. has other files: README.md\."):
        shipping._check_replaceable(".")


def test_a_push_that_fails_leaves_the_older_one_in_a_folder(made, monkeypatch):
    older, newer = made("critic.safetensors"), made("generator.safetensors")
    shipping._send(older, "zoo/a")

    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device", target.name)

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(RunError, match=r"zoo/a cannot be written: No space .* is what was pushed before"):
        shipping._send(newer, "zoo/a")
    assert contents("zoo/a") == {path.name: path.read_text() for path in older.iterdir()}


def test_a_push_that_fails_at_an_address_leaves_it_without_a_card(made, monkeypatch):
    folder, write = made("critic.safetensors"), Remote.write
    shipping._send(folder, "memory://zoo/a")

    def broken(remote, name, data):
        if name == "run.json":
            raise RunError("memory://zoo/a cannot be written: the line is dead.")
        write(remote, name, data)

    monkeypatch.setattr(Remote, "write", broken)
    with pytest.raises(RunError, match=r"the line is dead\. What is there is not whole: push the run again"):
        shipping._send(folder, "memory://zoo/a")
    assert "README.md" not in contents("memory://zoo/a")
    monkeypatch.undo()
    shipping._send(folder, "memory://zoo/a")
    assert "README.md" in contents("memory://zoo/a")
