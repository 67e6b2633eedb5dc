"""Every process starts through `ganlab.support.processes`, which keeps a stranger's folder and orphans out."""

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ganlab.support.processes import CANNOT_START, python_command, run_process, start_process

ROOT = Path(__file__).parents[2]
FILES = {
    str(path.relative_to(ROOT)): path
    for folder in ("ganlab", "plugins")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
STARTING = {f"subprocess.{name}" for name in ("Popen", "run", "call", "check_call", "check_output", "getoutput")}
STARTING |= {f"os.{name}" for name in dir(os) if name.startswith(("exec", "fork", "spawn", "posix_spawn", "popen"))}
STARTING |= {"os.system", "pty.spawn", "pty.fork", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"}
MODULES = {"multiprocessing", "pty", "concurrent.futures.process"}

ALLOWED = {
    "ganlab/support/processes.py": {"subprocess.Popen", "subprocess.run"},
    "ganlab/support/with_parent.py": {"os.execvp"},
    # Forks of this process, which start no other program.
    "plugins/ganlab_builtin/launchers/forking.py": {"os.fork"},
    # Ends a trial with its sweep, after a grace period.
    "plugins/ganlab_builtin/launchers/guard.py": {"os.fork", "os.execvp"},
    # The user's own command, from the environment.
    "plugins/ganlab_builtin/trackers/notify_command.py": {"subprocess.Popen"},
}


def starts(source):
    """Yields what starts processes in a module, under the names that it was imported from."""
    tree = ast.parse(source)
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            yield from (name for name in (node.module, *names.values()) if name in MODULES)
            yield from (name for name in names.values() if name.endswith(".ProcessPoolExecutor"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)):
            first, dot, rest = ast.unparse(node).partition(".")
            called = f"{names.get(first, first)}{dot}{rest}"
            if called in STARTING:
                yield called


@pytest.mark.parametrize("name", FILES)
def test_module_starts_processes_by_the_one_function(name):
    found = set(starts(FILES[name].read_text()))
    assert found == ALLOWED.get(name, set()), f"{name}: use ganlab.start_process, or ganlab.support.processes"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import subprocess\nsubprocess.run(['git'])", {"subprocess.run"}),
        ("import subprocess as s\ns.Popen(x)", {"subprocess.Popen"}),
        ("from subprocess import check_output\ncheck_output(x)", {"subprocess.check_output"}),
        ("from subprocess import Popen as P\nstart = P", {"subprocess.Popen"}),
        ("import os\nos.system('x')", {"os.system"}),
        ("import os\nos.execv(a, b)\nos.fork()", {"os.execv", "os.fork"}),
        ("from os import posix_spawn\nposix_spawn(x)", {"os.posix_spawn"}),
        ("import multiprocessing", {"multiprocessing"}),
        ("from multiprocessing import Process", {"multiprocessing"}),
        ("from concurrent.futures import ProcessPoolExecutor", {"concurrent.futures.ProcessPoolExecutor"}),
        ("import subprocess\nsubprocess.PIPE, subprocess.TimeoutExpired", set()),
    ],
)
def test_other_ways_to_start_a_process_are_found(source, found):
    assert set(starts(source)) == found


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
    child = int(parent.stdout)
    try:
        until = time.monotonic() + (2 if survives else 20)
        while is_alive(child) and time.monotonic() < until:
            time.sleep(0.05)
        assert is_alive(child) == survives
    finally:
        if is_alive(child):
            os.kill(child, signal.SIGKILL)


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
