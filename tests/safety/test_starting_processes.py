"""Processes import nothing from a stranger's folder and leave no orphans; ruff holds that all start in this way."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ganlab.support.processes import CANNOT_START, python_command, run_process, start_process


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A working directory whose modules have the names of Python's own."""
    (tmp_path / "src").mkdir()
    for name in ("json", "sitecustomize", "usercustomize", "numpy", "src/json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return tmp_path


IMPORTING = "import json, sys, subprocess; subprocess.run([sys.executable, '-c', 'import json'], check=True)"


@pytest.mark.parametrize("path", [None, "", ":", f"{os.pathsep}/nowhere", f"/nowhere{os.pathsep}"])
def test_a_child_imports_nothing_from_its_folder(trap, monkeypatch, path):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if path is not None:
        monkeypatch.setenv("PYTHONPATH", path)
    subprocess.run([sys.executable, "-c", "import json"], check=True)
    assert (trap / "executed").exists()  # otherwise the test would prove nothing
    (trap / "executed").unlink()
    run_process(python_command("-c", IMPORTING), check=True)
    assert not (trap / "executed").exists()


def test_a_relative_python_path_is_that_of_the_parent(trap, monkeypatch):
    monkeypatch.chdir(trap.parent)
    monkeypatch.setenv("PYTHONPATH", "src")
    run_process(python_command("-c", IMPORTING), cwd=trap, check=True)
    assert not (trap / "executed").exists()


def test_a_command_that_is_missing_has_an_exit_status(tmp_path):
    done = run_process(["no-such-command"], capture_output=True, text=True)
    assert done.returncode == CANNOT_START == 127
    assert "no-such-command cannot be started: No such file" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone signals the death of a parent")
@pytest.mark.parametrize("survives", [False, True])
def test_a_child_dies_with_its_parent(survives):
    code = (
        "import os, signal, subprocess\nfrom ganlab.support.processes import start_process\n"
        "null = subprocess.DEVNULL\n"
        f"child = start_process(['sleep', '60'], survives={survives}, stdout=null, stderr=null)\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    parent = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ends(int(parent.stdout), 2 if survives else 20) != survives


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone signals the death of a parent")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_measurement_dies_with_its_benchmark(tmp_path, number):
    measurement = (
        "import os, time; open('process', 'w').write(str(os.getpid())); "
        f"os.kill(os.getppid(), {int(number)}); time.sleep(60)"
    )
    code = (
        "import sys\nfrom ganlab_benchmark import measuring\n"
        f"measuring.python_command = lambda *words: [sys.executable, '-c', {measurement!r}]\n"
        "measuring.measured({}, threads=1, limit=600, stopped=lambda: False)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == -number
    assert ends(int((tmp_path / "process").read_text()), 20)


def ends(process, seconds):
    """Whether a process ends by itself within some seconds; it is killed then."""
    until = time.monotonic() + seconds
    while is_alive(process) and time.monotonic() < until:
        time.sleep(0.05)
    if found := is_alive(process):
        os.kill(process, signal.SIGKILL)
    return not found


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_options_are_passed_on(tmp_path):
    child = start_process(
        ["sh", "-c", "echo $X; pwd"], env={**os.environ, "X": "1"}, cwd=tmp_path, stdout=subprocess.PIPE
    )
    assert child.communicate()[0].decode().split() == ["1", str(tmp_path)]
