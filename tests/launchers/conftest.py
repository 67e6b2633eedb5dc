import os
import sys
import time
from pathlib import Path

import pytest

import ganlab

SCRIPTS = Path(__file__).parent / "slurm"


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A cluster made of scripts and of the folder that this returns; see slurm/sbatch."""
    from submitit.slurm.slurm import SlurmJob

    SlurmJob.watcher.clear()  # it remembers the jobs of other tests, by numbers that are reused
    folder = tmp_path / "cluster"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(folder))
    return folder


@pytest.fixture
def tried(tmp_path):
    """Starts Python code with a launcher: `tried(launcher, "print(1)", VARIABLE="x")` returns the job."""

    def tried(launcher, code, **environment):
        command = [sys.executable, "-c", code]
        return launcher.start(command, environment=environment, folder=tmp_path, log=tmp_path / "log.txt")

    return tried


@pytest.fixture
def wait_for_log(tmp_path):
    """Waits until the log contains some words, and returns the log."""

    def wait_for_log(words):
        log = tmp_path / "log.txt"
        for _ in range(4000):
            if log.exists() and words in log.read_text():
                return log.read_text()
            time.sleep(0.05)
        raise AssertionError(f"no {words!r} in {log.read_text() if log.exists() else 'no log'}")

    return wait_for_log


@pytest.fixture
def ray_launcher():
    """A launcher on a Ray of this machine alone."""
    pytest.importorskip("ray", reason="Ray is of the extra [ray], which is too large for every test environment")
    launcher = ganlab.component("launchers", "ray")(num_cpus=0.5)
    yield launcher
    launcher.close()
