"""The faults that `tools/chaos.py` injects are as described."""

import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from killing.faults import Fault, Preload, build
from killing.power import lose_power

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not shutil.which("cc"),
    reason="the library of faults is preloaded, which is Linux's way, and needs a C compiler",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("library"))


@pytest.fixture
def script(library, tmp_path):
    """Runs Python code in a run's folder under a fault."""
    run = tmp_path / "run"
    run.mkdir()
    preload = Preload(library, tmp_path / "log", tmp_path / "shadow")

    def under(code, fault, *, logged=False):
        environment = preload.environment(fault, run, logged=logged)
        return subprocess.run(
            [sys.executable, "-S", "-c", f"import os\n{code}"], cwd=run, env=environment, capture_output=True, text=True
        )

    under.run, under.preload = run, preload
    return under


def test_fault_kills_in_the_middle_of_a_write(script):
    code = "file = open('a', 'wb', buffering=0)\nfor i in range(5): file.write(b'x' * 1000)"
    # Opening is the first operation, the third write the fourth.
    done = script(code, Fault("kill", at=4, part=0.25))
    assert done.returncode == -signal.SIGKILL
    assert (script.run / "a").stat().st_size == 2250


@pytest.mark.parametrize(("part", "left"), [(0.2, "old"), (0.8, "new")])
def test_fault_kills_before_or_after_a_rename(script, part, left):
    (script.run / "a").write_text("old")
    (script.run / "b").write_text("new")
    assert script("os.replace('b', 'a')", Fault("kill", at=1, part=part)).returncode == -signal.SIGKILL
    assert (script.run / "a").read_text() == left


def test_fault_counts_only_matching_files(script, tmp_path):
    names = [f"{tmp_path}/outside", "a", "kept/b", "kept/c"]
    code = f"for name in {names}:\n    if 'b' in name: os.mkdir('kept')\n    open(name, 'w')"
    script(code, Fault("kill", match="/kept", at=2, part=0.9))
    assert sorted(path.name for path in script.run.rglob("*")) == ["a", "b", "kept"]
    shutil.rmtree(script.run / "kept")
    (script.run / "a").unlink()
    script(code, Fault("kill", match="!/kept", at=1, part=0.9))
    assert [path.name for path in script.run.rglob("*")] == ["a"]


TRYING = """
for what in (lambda: {}, lambda: {}, lambda: {}, lambda: {}):
    try:
        what()
    except OSError as error:
        print(error.strerror)
"""


def test_fault_fills_the_disk_from_an_operation(script):
    (script.run / "old").write_text("old")
    code = "file = open('a', 'wb', buffering=0)\nprint(file.write(b'x' * 1000), file.write(b'x' * 1000))"
    code += TRYING.format("file.write(b'x')", "os.mkdir('b')", "open('c', 'w')", "os.unlink('old') or print('done')")
    done = script(code, Fault("enospc", at=3, part=0.25))
    full = "No space left on device"
    assert done.stdout.splitlines() == ["1000 250", full, full, full, "done"]


def test_fault_makes_the_disk_read_only_from_an_operation(script):
    (script.run / "old").write_text("old")
    code = TRYING.format("print(open('old').read())", "open('old', 'w')", "os.rename('old', 'new')", "os.unlink('old')")
    said = script(code, Fault("erofs", at=1)).stdout.splitlines()
    assert said == ["old", *["Read-only file system"] * 3]


def test_fault_lets_the_clock_jump_at_each_operation(script):
    code = "for name in 'ab': open(name, 'w'); print(int(time.time() - os.stat(name).st_mtime))"
    first, second = map(int, script("import time\n" + code, Fault("jump", at=3)).stdout.split())
    assert first != second
    assert 3 < max(abs(first), abs(second)) < 86402


def test_power_loss_discards_only_what_was_not_synced(script):
    code = """
def put(name, text, sync):
    with open(name, 'w') as file:
        file.write(text)
        if sync:
            file.flush()
            os.fsync(file.fileno())
put('safe', 's' * 1000, True)
os.fsync(os.open('.', os.O_RDONLY))
put('lost', 'l' * 1000, False)
put('part', 'new', True)
os.replace('part', 'replaced')
os.unlink('removed')
os.mkdir('folder')
put('folder/inside', 'i', True)
"""
    run, seen = script.run, {"lost": set(), "replaced": set(), "removed": set(), "folder": set()}
    for seed in range(60):
        for path in run.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (run / "replaced").write_text("old")
        (run / "removed").write_text("old")
        assert script(code, Fault(), logged=True).returncode == 0
        lose_power(run, script.preload, np.random.default_rng(seed))

        assert (run / "safe").read_text() == "s" * 1000
        # Its text was synced before the rename, so it is one or the other.
        seen["replaced"].add((run / "replaced").read_text())
        lost = (run / "lost").read_bytes() if (run / "lost").exists() else None
        seen["lost"].add(None if lost is None else "zeros" if b"\0" in lost else "cut" if len(lost) < 1000 else "whole")
        seen["removed"].add((run / "removed").exists())
        seen["folder"].add((run / "folder").exists())
    assert seen["replaced"] == {"old", "new"}
    assert {None, "zeros", "cut"} <= seen["lost"]
    assert seen["removed"] == {True, False}
    assert seen["folder"] == {True, False}
