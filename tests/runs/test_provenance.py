"""Where a run's numbers come from."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import socket
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from ganlab.plugins.manager import Plugin
from ganlab.runs import provenance
from ganlab.runs.provenance import git_state, versions


@pytest.fixture
def repository(tmp_path, monkeypatch):
    # Neither the user's settings nor a surrounding repository may have an effect.
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def git(folder, *arguments):
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_git_state_reports_commit_and_tracked_changes(repository):
    assert git_state(repository) is None
    git(repository, "init")
    assert git_state(repository) is None  # no commit yet
    (repository / "code.py").write_text("1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-m", "first")
    commit = git(repository, "rev-parse", "HEAD")
    (repository / "runs").mkdir()
    (repository / "runs" / "run.json").write_text("{}")
    assert git_state(repository / "runs") == {"commit": commit, "dirty": False}
    (repository / "code.py").write_text("2\n")
    assert git_state(repository) == {"commit": commit, "dirty": True}


def test_git_state_without_git_is_none(repository, monkeypatch):
    monkeypatch.setenv("PATH", str(repository))
    assert git_state(repository) is None
    assert git_state(repository / "nowhere") is None


def test_provenance_is_json_and_complete(repository, monkeypatch):
    monkeypatch.chdir(repository)
    rows = [Plugin("mine", "my-package", "1.2"), Plugin("bad", "other", "0.1", "broken", "Traceback ...")]
    made = provenance(["ganlab", "run", "--gin", "x.gin"], ["/cpu:0", "/cpu:1"], rows)
    assert json.loads(json.dumps(made)) == made
    assert datetime.now(UTC) - datetime.fromisoformat(made.pop("started")) < timedelta(minutes=1)
    packages = made.pop("packages")
    assert packages["pluggy"] == importlib.metadata.version("pluggy")
    assert packages["ganlab"] == importlib.metadata.version("ganlab-tf")
    assert made == {
        "argv": ["ganlab", "run", "--gin", "x.gin"],
        "git": None,
        "python": platform.python_version(),
        "plugins": {
            "mine": {"distribution": "my-package", "version": "1.2", "status": "loaded"},
            "bad": {"distribution": "other", "version": "0.1", "status": "broken"},
        },
        "devices": ["/cpu:0", "/cpu:1"],
        "host": socket.gethostname(),
        "platform": platform.platform(),
    }


def test_missing_packages_are_left_out():
    assert versions(["pluggy", "surely-not-installed"]) == {"pluggy": importlib.metadata.version("pluggy")}
