"""The command line's process: closed and full streams, and system limits, through the real entry point."""

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ganlab.cli.process import refused

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
COMMANDS = ["runs list", "--version", "--help", "completion bash"]


def command(arguments, tmp_path, redirection="", **options):
    return subprocess.run(
        ["bash", "-c", f'"$0" -m ganlab {arguments} {redirection}', sys.executable],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        **options,
    )


@pytest.fixture
def a_run(tmp_path):
    from ganlab.runs import create_run

    create_run(tmp_path / "runs" / "e" / "one", config="", operative="", info={"status": "completed"})
    return tmp_path


@FULL
@pytest.mark.parametrize("arguments", COMMANDS)
def test_full_disk_behind_standard_output_is_one_sentence(a_run, arguments):
    done = command(arguments, a_run, "> /dev/full")
    assert (done.returncode, done.stderr) == (1, "Error: The output cannot be written: No space left on device.\n")


STREAMS = ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-", pytest.param("2> /dev/full", marks=FULL)]


@pytest.mark.parametrize("streams", STREAMS)
def test_closed_streams_and_a_full_standard_error_keep_the_exit_code(a_run, streams):
    assert command("runs list", a_run, streams).returncode == 0
    assert command("runs show nowhere", a_run, streams).returncode == 2


def test_opened_files_do_not_replace_a_closed_stream(tmp_path):
    code = "import os; from ganlab.cli.process import open_streams; open_streams(); print(os.open('new', os.O_CREAT))"
    script = f'exec "$0" -c "{code}; print(os.readlink(\'/proc/self/fd/2\'))" 0<&- 2>&-'
    done = subprocess.run(["bash", "-c", script, sys.executable], capture_output=True, text=True, cwd=tmp_path)
    number, error = done.stdout.split()
    assert int(number) > 2
    assert error == os.devnull


def test_closed_pipe_prints_no_traceback(a_run):
    done = command("--help", a_run, "| head -c 1")
    assert (done.stdout, done.stderr) == ("U", "")


@pytest.mark.parametrize("mebibytes", [600, 1700])
def test_address_space_limit_is_one_sentence(tmp_path, mebibytes):
    limit = mebibytes << 20
    done = command(
        "run --gin quickstart", tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: There is not enough memory (")
    assert done.stderr.endswith(
        f" This process may use {mebibytes} MiB of address space (ulimit -v): raise that limit.\n"
    )
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "There is not enough memory (MemoryError). Close"),
        (OSError(12, "Cannot allocate memory"), "There is not enough memory ("),
        (ImportError("libx.so: failed to map segment from shared object"), "There is not enough memory (libx.so: f"),
        (ImportError("libx.so.2: cannot open shared object file", name="x"), "x cannot be imported: libx.so.2: cannot"),
        (RuntimeError("can't start new thread"), "The system does not let this process start another thread. Raise"),
        (OSError(24, "Too many open files", "run.json"), "run.json: Too many open files."),
    ],
)
def test_system_refusals_are_one_sentence(error, message):
    assert refused(error).startswith(message)
    assert "\n" not in refused(error)


def test_root_cause_of_a_failed_import_is_found():
    inner = ImportError("liby.so: failed to map segment from shared object")
    wrapped = ImportError(f"Traceback (most recent call last):\n{inner}\n\nFailed to load the runtime.")
    wrapped.__context__ = inner
    assert refused(wrapped).startswith("There is not enough memory (liby.so: failed to map segment")


def test_internal_error_is_not_reworded():
    assert refused(RuntimeError("a bug")) is None


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["0<&- 1>&- 2>&-", "2>&-"])
def test_a_run_with_closed_streams_trains_as_usual(tmp_path, closed):
    done = command("run --gin quickstart --param experiment.steps=2 --name it", tmp_path, closed)
    assert done.returncode == 0
    run = tmp_path / "runs" / "quickstart" / "it"
    assert json.loads((run / "run.json").read_text())["status"] == "completed"
    for line in (run / "metrics.jsonl").read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_full_disk_is_no_lack_of_memory(number):
    class ResourceExhaustedError(Exception):
        """TensorFlow's, by name."""

    said = refused(ResourceExhaustedError(f"a.tfrecord; {os.strerror(number)}\nmore"))
    assert said == f"a.tfrecord; {os.strerror(number)}. Free some space, or write to another disk."
    assert refused(OSError(number, os.strerror(number), "a")) == f"a: {os.strerror(number)}."
    assert "not enough memory" in refused(ResourceExhaustedError("OOM when allocating tensor"))
