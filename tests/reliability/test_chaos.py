"""Runs that are stopped in eight ways and resumed equal an undisturbed run."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from killing.kinds import KINDS

TOOL = Path(__file__).parents[2] / "tools" / "chaos.py"


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not shutil.which("cc"),
    reason="the library of faults is preloaded, which is Linux's way, and needs a C compiler",
)
def test_resumed_runs_equal_the_undisturbed_run(tmp_path):
    others = ("SIGINT", "SIGKILL at a random moment", "checkpoints read-only")
    kinds = [kind.name for kind in KINDS if kind.name not in others]
    command = [sys.executable, str(TOOL), "--kills", str(len(kinds)), "--seed", "53", "--keep", str(tmp_path)]
    command += [word for kind in kinds for word in ("--only", kind)]
    done = subprocess.run(
        [*command, "--json", str(tmp_path / "chaos.json"), "--param", "experiment.steps=300"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "chaos.json").read_text())
    assert sorted(kill["kind"] for kill in report["kills"]) == sorted(kinds)
    for group in ("weights", "optimizers", "average", "constraint state"):
        assert report["variables"][group] > 0
