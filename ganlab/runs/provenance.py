"""Records where a run's numbers come from: code, packages, plugins, devices, command line."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ganlab.plugins.manager import LOCAL_MODULE, Plugin
from ganlab.runs.modules import hash_of_file
from ganlab.runs.repository import git_state
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
)


def provenance(argv: Sequence[str], devices: Sequence[str], plugins: Sequence[Plugin]) -> dict[str, Any]:
    """Collects the `provenance` field of run.json.

    Args:
        argv: The command line, or the notebook's.
        devices: Descriptions of the devices that the run trains on.
        plugins: The plugins of this process, `ganlab.plugins.manager.current().rows`.

    Returns:
        Plain values: `started` (UTC, ISO 8601), `argv`, `git` (`commit` and `dirty`, or None outside a repository),
        `python`, `packages` (name to version), `plugins` (name to distribution, version and status, and for a plugin
        file the hash of its `content`), `devices`, `host`, `platform`.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "argv": [str(argument) for argument in argv],
        "git": git_state(Path.cwd()),
        "python": platform.python_version(),
        "packages": {"ganlab": __version__, **versions(PACKAGES)},
        "plugins": {
            row.name: {"distribution": row.distribution, "version": row.version, "status": row.status}
            | ({"content": hash_of_file(Path(row.distribution))} if row.name == LOCAL_MODULE else {})
            for row in plugins
        },
        "devices": [str(device) for device in devices],
        "host": socket.gethostname(),
        "platform": platform.platform(),
    }


def versions(packages: Sequence[str]) -> dict[str, str]:
    """The versions of the given distributions, without those that are not installed."""
    installed = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed
