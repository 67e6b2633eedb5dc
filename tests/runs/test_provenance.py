"""Where a run's numbers come from."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import socket
from datetime import UTC, datetime, timedelta

from ganlab.plugins.manager import Plugin
from ganlab.runs import provenance
from ganlab.runs.provenance import versions


def test_provenance_is_json_and_complete(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
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
