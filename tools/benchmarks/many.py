"""Folders of thousands of runs, written without training: whole processes that read them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.pairs import Figure
from ganlab.config import flatten, load
from ganlab.plugins import manager
from ganlab.runs import provenance

_ROWS, _MEGABYTES = 100, 500
_TAGS = ("constraints/gradient_penalty/slope", "critic/penalty", "critic/loss", "critic/wasserstein", "generator/loss")
_TAB = """
import sys
from types import SimpleNamespace
from ganlab_tensorboard.plugin import GanlabTab
from werkzeug.test import Client
tab = GanlabTab(SimpleNamespace(logdir=sys.argv[1], flags=None))
assert Client(tab.get_plugin_apps()["/data/compare"]).get("/").status_code == 200
"""


def many(rounds: int) -> list[Figure]:
    """Whole processes that read thousands of runs: the least processor time and the most memory of the rounds."""
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        all_runs, some = Path(folder, "all"), Path(folder, "all", "sweep-0")
        _write(all_runs)
        page = f"{folder}/page.html"
        for name, bar, words in (
            ("runs list, 10,000", 3, ["-m", "ganlab", "runs", "list", str(all_runs)]),
            ("compare, 2,000", 5, ["-m", "ganlab", "compare", str(some)]),
            ("compare --html, 2,000", 6, ["-m", "ganlab", "compare", str(some), "--html", page]),
            ("the tab's first answer, of 10,000", 2, ["-c", _TAB, str(all_runs)]),
        ):
            used = [_run(words) for _ in range(rounds)]
            figures.append(Figure(f"{name} runs", min(seconds for seconds, _ in used), "s", bar))
            figures.append(Figure(f"{name} runs: memory", max(size for _, size in used), "MB", _MEGABYTES))
    return figures


def _write(folder: Path) -> None:
    """Five sweeps of 400 configurations with 5 seeds each."""
    settings, origin = flatten(load(["quickstart"], [])), provenance([], ["/device:CPU:0"], manager.current().rows)
    for number in range(10_000):
        sweep, one, seed = number // 2000, number % 2000 // 5, number % 5
        path = folder / f"sweep-{sweep}" / f"c{one:03}" / f"s{seed}"
        (path / "checkpoints" / "step-00001000").mkdir(parents=True)
        metrics = {tag: math.sin(number + place) for place, tag in enumerate(_TAGS)}
        figures = {"exact_w1/distance": 2 + math.cos(number), "exact_w1/real_distance": 1.0}
        own = {"optimizers.adam.learning_rate": one % 20 + 1, "constraints.gradient_penalty.weight": one // 20 + 1.0}
        info = {"status": "completed", "step": 1000, "steps": 1000, "seed": seed, "wall_seconds": 40.0, "health": []}
        info |= {"settings": {**settings, **own, "experiment.seed": seed}, "metrics": metrics, "evaluation": figures}
        (path / "run.json").write_text(json.dumps({**info, "provenance": origin}, indent=2))
        logged = {tag: {"reduced": value, "replicas": [value, value]} for tag, value in metrics.items()}
        evaluated = {f"evaluation/{tag}": {"reduced": value, "replicas": []} for tag, value in figures.items()}
        often, last = (json.dumps({"metrics": row})[1:] for row in (logged, logged | evaluated))
        rows = (f'{{"step": {10 * row}, {last if row % 25 == 0 else often}\n' for row in range(1, _ROWS + 1))
        (path / "metrics.jsonl").write_text("".join(rows))


def _run(words: list[str]) -> tuple[float, float]:
    """The processor time of a process, and its largest memory in MB."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    _, code, used = os.wait4(process.pid, 0)
    assert code == 0, words
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
