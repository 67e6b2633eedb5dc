"""Records where a run's numbers come from: code, packages, plugins, devices, command line."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import socket
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ganlab.plugins.manager import Plugin
from ganlab.version import __version__

# The packages besides ganlab that the numbers depend on; those that are installed are recorded.
PACKAGES = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-tpu",
    "keras",
    "numpy",
    "gin-config",
    "pluggy",
    "tensorboard",
    "protobuf",
    "scikit-learn",
)

_GIT_SECONDS = 10


def provenance(argv: Sequence[str], devices: Sequence[str], plugins: Sequence[Plugin]) -> dict[str, Any]:
    """Collects the `provenance` field of run.json.

    Args:
        argv: The command line, or the notebook's.
        devices: Descriptions of the devices that the run trains on.
        plugins: The plugins of this process, `ganlab.plugins.manager.current().rows`.

    Returns:
        Plain values: `started` (UTC, ISO 8601), `argv`, `git` (`commit` and `dirty`, or None outside a repository),
        `python`, `packages` (name to version), `plugins` (name to distribution, version and status), `devices`,
        `host`, `platform`.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "argv": [str(argument) for argument in argv],
        "git": git_state(Path.cwd()),
        "python": platform.python_version(),
        "packages": {"ganlab": __version__, **versions(PACKAGES)},
        "plugins": {
            row.name: {"distribution": row.distribution, "version": row.version, "status": row.status}
            for row in plugins
        },
        "devices": [str(device) for device in devices],
        "host": socket.gethostname(),
        "platform": platform.platform(),
    }


def versions(packages: Sequence[str]) -> dict[str, str]:
    """The versions of the given distributions, without those that are not installed."""
    found = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def git_state(folder: Path) -> dict[str, Any] | None:
    """The current commit of the repository that a folder is in.

    Args:
        folder: Any folder, in a repository or not.

    Returns:
        `commit`, and `dirty`: whether tracked files differ from it. Untracked files do not count, or the folder of
        runs would make every run dirty. None outside a repository, before its first commit, or if git does not
        answer.
    """
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    if not commit or changes is None:
        return None
    return {"commit": commit, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            # Reading the state must not take the lock that a commit in progress needs.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
