"""The tasks on MNIST's files, from files to figures, with noise for digits and few updates."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from command_lines import command
from ganlab_benchmark.suite import shipped_suites

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
from idxfiles import write


@pytest.mark.slow
def test_the_tasks_of_the_suite_mnist_end_with_their_figures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GANLAB_CACHE", str(tmp_path))
    Path("mnist").mkdir()
    for part in ("train", "t10k"):
        pixels = np.random.default_rng(0).integers(0, 256, (400, 28, 28))
        write(Path(f"mnist/{part}-images-idx3-ubyte.gz"), pixels, packed=True)
        write(Path(f"mnist/{part}-labels-idx1-ubyte.gz"), np.arange(400) % 10, packed=True)
    for name in ("mnist", "stacked_mnist"):
        Path(f"{name}.gin").write_text(f"include 'benchmark/{name}'\nfeatures.classifier.updates = 3\n")
    text = shipped_suites()["mnist"].read_text()
    small = {"0, 1, 2": "0", "rounds = 5": "rounds = 1", "5000": "300"}
    for before, after in {r"(?m)^steps = .*": "steps = 2", **small}.items():
        text = re.sub(before, after, text)
    Path("small.toml").write_text(text)
    chosen = ["--suite", "small.toml", "--name", "b", "--constraint", "spectral_norm"]
    command("benchmark", *chosen)
    tasks = json.loads(Path("runs/b/results.json").read_text())["constraints"]["spectral_norm"]["tasks"]
    assert {name: list(task["figures"]) for name, task in tasks.items()} == {
        "cost": ["ratio"],
        "mnist": ["frechet", "score", "coverage"],
        "stacked_mnist": ["modes", "divergence"],
    }, tasks
