"""Reports on memory, files and threads of long runs, and a check that they do not grow in a shorter run."""

import json
import subprocess
import sys
from pathlib import Path

import endurance
import pytest

TOOL = Path(__file__).parents[2] / "tools" / "endurance.py"


def note(step, resident, **more):
    return {"step": step, "resident": resident, "peak": resident + 5.0, "descriptors": 10, "threads": 4, **more}


def test_blocks_have_median_memory_and_maximum_counts():
    notes = [note(100 * i, float(i), descriptors=10 + (i == 2)) for i in range(1, 7)]
    assert endurance.blocked(notes, 2) == [
        {"step": 300, "resident": 2.0, "peak": 8.0, "descriptors": 11, "threads": 4},
        {"step": 600, "resident": 5.0, "peak": 11.0, "descriptors": 10, "threads": 4},
    ]


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (note(300, 101.9), 0),
        (note(300, 102.1), 1),
        (note(300, 100.0, descriptors=11), 1),
        (note(300, 100.0, threads=5), 1),
    ],
    ids=["little", "memory", "files", "threads"],
)
def test_growth_is_an_error(monkeypatch, last, code):
    notes = [note(100, 50.0), note(200, 100.0), last]
    monkeypatch.setattr(endurance, "train", lambda options, folder: notes)
    assert endurance.main(["--iterations", "200", "--warm-up", "100", "--blocks", "2"]) == code


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_and_files_do_not_grow_over_iterations(tmp_path):
    report = tmp_path / "endurance.json"
    command = [sys.executable, str(TOOL), "--iterations", "2000", "--warm-up", "1000", "--blocks", "2"]
    small = ["experiment.batch_size=16", "experiment.critic_steps=1", "architectures.mlp.width=16"]
    params = [part for param in small for part in ("--param", param)]
    subprocess.run([*command, *params, "--json", str(report)], check=True, capture_output=True)
    said = json.loads(report.read_text())
    # Fewer are well: which files are open at a step depends on what a checkpoint has just closed.
    assert said["growth"]["resident"] < 0.02
    assert said["growth"]["descriptors"] <= 0
    assert said["growth"]["threads"] <= 0
