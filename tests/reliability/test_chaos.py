"""Runs that are stopped in five ways and resumed equal an undisturbed run."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "chaos.py"


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not shutil.which("cc"),
    reason="the library of faults is preloaded, which is Linux's way, and needs a C compiler",
)
def test_resumed_runs_equal_the_undisturbed_run(tmp_path):
    # With this seed, the first five kinds are those below.
    command = [sys.executable, str(TOOL), "--kills", "5", "--seed", "53", "--json", str(tmp_path / "chaos.json")]
    done = subprocess.run(
        [*command, "--keep", str(tmp_path), "--param", "experiment.steps=150"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "chaos.json").read_text())
    assert {kill["kind"] for kill in report["kills"]} == {
        "SIGTERM",
        "SIGKILL while a checkpoint is written",
        "SIGKILL, and the newest checkpoint damaged",
        "disk full",
        "loss of power",
    }
    for group in ("weights", "optimizers", "average", "constraint state"):
        assert report["variables"][group] > 0
    assert "5 of 5 kills" in done.stdout
