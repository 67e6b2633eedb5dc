"""Files and folders are written completely or not at all."""

import errno
import os
import signal
import subprocess
import sys
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


WRITERS = {
    "new_file": "with new_file(Path('made')): wait()",
    "new_folder": "with new_folder(Path('deep/made')): wait()",
    "scratch_folder": "with scratch_folder('.made-', '.'): wait()",
    "nested": "with new_folder(Path('made')) as folder, new_file(folder / 'file'): wait()",
    "create_run": "create_run('made', config='', operative='', info={}, fill=wait)",
}


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow), signal.SIGINT])
@pytest.mark.parametrize("writer", WRITERS)
def test_signal_leaves_nothing_half_written(writer, number, tmp_path):
    code = f"""
import time
from pathlib import Path
from ganlab.runs import create_run
from ganlab.support.atomic import new_file, new_folder, scratch_folder

def wait(folder=None):
    print("writing", flush=True)
    time.sleep(60)

{WRITERS[writer]}
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "writing\n"
        assert list(tmp_path.rglob(".*"))
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert list(tmp_path.rglob("*")) == []
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
    else:
        assert (process.returncode, errors) == (128 + number, "")


def test_handlers_of_others_stay(tmp_path):
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        with new_folder(tmp_path / "a"):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert received == [signal.SIGTERM]
    assert (tmp_path / "a").is_dir()


def test_default_handlers_return(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with new_folder(tmp_path / "a"):
        pass
    with pytest.raises(ValueError, match="x"), new_folder(tmp_path / "b"):
        raise ValueError("x")
    assert signal.getsignal(signal.SIGTERM) == before
