"""Folders of thousands of runs, written without training: whole processes that read them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.pairs import Figure
from ganlab.config import flatten, load
from ganlab.plugins import manager
from ganlab.runs import provenance

_TAB = """import sys, types, werkzeug.test, ganlab_tensorboard.plugin as plugin
tab = plugin.GanlabTab(types.SimpleNamespace(logdir=sys.argv[1], flags=None))
assert werkzeug.test.Client(tab.get_plugin_apps()["/data/compare"]).get("/").status_code == 200"""


def many(rounds: int) -> list[Figure]:
    """Whole processes that read thousands of runs: the least processor time and the most memory of the rounds."""
    figures, common = [], {"status": "completed", "step": 1000, "steps": 1000, "wall_seconds": 40.0, "health": []}
    common["settings"] = flatten(load(["quickstart"], []))
    common["provenance"] = provenance([], ["/device:CPU:0"], manager.current().rows)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(10_000):  # five sweeps of 400 configurations with 5 seeds each
            path = Path(folder, f"sweep-{number // 2000}", f"c{number % 2000 // 5:03}", f"s{number % 5}")
            _write(path, number, common)
        compare = ["-m", "ganlab", "compare", f"{folder}/sweep-0"]
        for name, bar, words in (
            ("runs list, 10,000 runs", 3, ["-m", "ganlab", "runs", "list", folder]),
            ("compare, 2,000 runs", 5, compare),
            ("compare --html, 2,000 runs", 6, [*compare, "--html", f"{folder}/page.html"]),
            ("the tab's first answer, of 10,000 runs", 2, ["-c", _TAB, folder]),
        ):
            ends = []
            for _ in range(rounds):
                process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
                ends.append(os.wait4(process.pid, 0))
            assert not any(code for _, code, _ in ends), words
            figures.append(Figure(name, min(used.ru_utime + used.ru_stime for *_, used in ends), "s", bar))
            figures.append(Figure(f"{name}: memory", max(used.ru_maxrss for *_, used in ends) / 1024, "MB", 500))
    return figures


def _write(path: Path, number: int, common: dict[str, Any]) -> None:
    (path / "checkpoints" / "step-00001000").mkdir(parents=True)
    one, seed, last = number % 2000 // 5, number % 5, {"exact_w1/distance": number % 97 / 10}
    own = {"optimizers.adam.learning_rate": one % 20, "constraints.gradient_penalty.weight": one // 20}
    settings = {**common["settings"], **own, "experiment.seed": seed}
    metrics = dict.fromkeys(("critic/loss", "critic/penalty", "critic/wasserstein", "generator/loss"), number % 89 / 7)
    info = {**common, "settings": settings, "seed": seed, "metrics": metrics, "evaluation": last}
    (path / "run.json").write_text(json.dumps(info, indent=2))
    logged = {tag: {"reduced": value, "replicas": [value, value]} for tag, value in metrics.items()}
    entries = logged | {"evaluation/exact_w1/distance": {"reduced": number % 97 / 10, "replicas": []}}
    often, rare = (json.dumps({"metrics": row})[1:] for row in (logged, entries))
    rows = (f'{{"step": {10 * row}, {often if row % 25 else rare}\n' for row in range(1, 101))
    (path / "metrics.jsonl").write_text("".join(rows))
