"""Files and folders are written completely or not at all."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from ganlab.errors import RunError
from ganlab.support.atomic import new_file, new_folder


def test_new_file_replaces_the_older_one_at_the_end(tmp_path):
    (tmp_path / "a").write_text("older")
    with new_file(tmp_path / "a") as file:
        file.write(b"newer")
        assert (tmp_path / "a").read_text() == "older"
    assert (tmp_path / "a").read_text() == "newer"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def half_a_file(path, error):
    with new_file(path) as file:
        file.write(b"half")
        raise error


def half_a_folder(path, error):
    with new_folder(path) as folder:
        (folder / "half").write_text("")
        raise error


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_interrupted_writes_leave_the_old_state(tmp_path, error):
    (tmp_path / "a").write_text("older")
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    expected = RunError if isinstance(error, OSError) else type(error)
    for write, name in ((half_a_file, "a"), (half_a_folder, "empty"), (half_a_folder, "deep/er/new")):
        with pytest.raises(expected) as raised:
            write(tmp_path / name, error)
        if expected is RunError:
            message = f"{tmp_path / name} cannot be written: No space left on device. Nothing was left behind."
            assert str(raised.value) == message
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "a").read_text() == "older"


def test_new_file_names_an_unreadable_input(tmp_path):
    with pytest.raises(RunError, match=r"a cannot be written: .*other: No such file"), new_file(tmp_path / "a"):
        (tmp_path / "other").read_text()


def test_new_folder_appears_when_complete(tmp_path):
    for name in ("new", "deep/er/new"):
        with new_folder(tmp_path / name) as folder:
            (folder / "file").write_text("x")
            assert not (tmp_path / name).exists()
        assert [path.name for path in (tmp_path / name).iterdir()] == ["file"]
        assert [path for path in (tmp_path / name).parent.iterdir() if path.name.startswith(".")] == []


def test_new_folder_replaces_only_an_empty_folder(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "full", "dangling"):
        with pytest.raises(RunError, match="already"), new_folder(tmp_path / name):
            pytest.fail("entered")


def test_what_a_link_leads_to_is_replaced_and_the_link_stays(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with new_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"real", "link"}


def test_a_link_that_leads_to_itself_is_replaced(tmp_path):
    (tmp_path / "link").symlink_to("link")
    with new_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        with new_file(pipe) as file:
            file.write(b"new")
        assert read.result(10) == b"new"
    assert pipe.is_fifo()
