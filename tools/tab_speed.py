"""Measures ganlab's tab in TensorBoard on many long runs: first picture, refresh, memory.

    python tools/tab_speed.py                        # 200 runs of 10,000 rows, 1.2 GB in a temporary folder
    python tools/tab_speed.py --runs 20 --rows 1000

A run has six metrics of two replicas in each row, and an evaluation at every hundredth. The server is `ganlab
tensorboard`, started anew; the browser is headless Chromium, with an empty cache, driven by selenium. The first picture
is the time from opening the tab to the first curve. The bars are 2 s, 0.3 s and 500 MB; the exit status says whether
they hold.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

FIRST, REFRESH, MEMORY = 2.0, 0.3, 500.0
TAGS = ("critic/loss", "critic/wasserstein", "critic/penalty", "generator/loss", "constraints/r1/slope", "extra/metric")
# Different files of metrics; the others are copies, with settings and seeds of their own.
DISTINCT = 10
SEEDS = 5


def main() -> int:
    """Writes the runs, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--refreshes", type=int, default=10)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tab-speed-") as folder:
        runs = write_runs(Path(folder), chosen.runs, chosen.rows)
        size = sum(path.stat().st_size for path in Path(folder).rglob("metrics.jsonl"))
        print(f"{len(runs)} runs of {chosen.rows} rows, {size / 1e6:.0f} MB of metrics.jsonl")
        server = subprocess.Popen(
            [sys.executable, "-m", "ganlab", "tensorboard", folder, "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+/", server.stdout.readline())
            assert found is not None
            return measure(found[0], server.pid, runs, chosen.refreshes)
        finally:
            server.terminate()
            server.wait(30)


def write_runs(folder: Path, count: int, rows: int) -> list[Path]:
    """Writes runs as `ganlab run` leaves them, `SEEDS` of each setting; returns their directories."""
    originals: list[Path] = []
    runs = []
    for index in range(count):
        seed, weight = index % SEEDS, 0.1 * (1 + index // SEEDS)
        run = folder / f"weight={weight:.4g}" / f"s{seed}"
        run.mkdir(parents=True)
        runs.append(run)
        last = dict.fromkeys(TAGS, 1.0 + index / count)
        settings = {"dataset": "digits", "constraints": "r1", "constraints.r1.weight": weight, "experiment.seed": seed}
        settings |= {"experiment.batch_size": 64, "experiment.critic_steps": 5}
        info = {"status": "completed", "step": rows * 10, "steps": rows * 10, "seed": seed, "settings": settings}
        info |= {"metrics": last, "evaluation": {"fid/distance": 5.0 + index / count}, "wall_seconds": 100.0}
        (run / "run.json").write_text(json.dumps(info))
        if len(originals) < DISTINCT:
            write_rows(run / "metrics.jsonl", rows, index)
            originals.append(run / "metrics.jsonl")
        else:
            shutil.copyfile(originals[index % DISTINCT], run / "metrics.jsonl")
    return runs


def write_rows(path: Path, rows: int, seed: int) -> None:
    """Writes a metrics.jsonl."""
    numbers = np.random.default_rng(seed).normal(size=(rows, len(TAGS), 3)).cumsum(axis=0) / 10
    with path.open("w") as file:
        for i, row in enumerate(numbers.tolist()):
            table = {tag: {"reduced": a, "replicas": [b, c]} for tag, (a, b, c) in zip(TAGS, row, strict=True)}
            if i % 100 == 99:
                table["evaluation/fid/distance"] = {"reduced": abs(row[0][0]), "replicas": []}
            file.write(json.dumps({"step": 10 * (i + 1), "metrics": table}) + "\n")


def measure(address: str, pid: int, runs: list[Path], refreshes: int) -> int:
    """Measures a server; returns the exit status."""
    first = first_picture(f"{address}data/plugin_entry.html?name=ganlab#p.ganlab.metric=critic/wasserstein")
    print(f"first picture: {first:.2f} s (bar {FIRST} s)")
    routes = f"{address}data/plugin/ganlab/data/"
    start = time.monotonic()
    while (
        pending := ask(f"{routes}compare?curve=critic/wasserstein")[1]["pending"]
    ) and time.monotonic() - start < 300:
        time.sleep(0.5)
    print(f"all rows read after {time.monotonic() - start:.0f} s more" if not pending else "still reading after 300 s")
    times, cpu = [], []
    for turn in range(refreshes):
        append(runs, turn)
        time.sleep(1.1)  # so that the list of runs is looked at again
        before = processor_seconds(pid)
        times.append(sum(ask(routes + route)[0] for route in ("compare?curve=critic/wasserstein", "overview")))
        cpu.append(processor_seconds(pid) - before)
    print(f"refresh: median {statistics.median(times):.2f} s, slowest {max(times):.2f} s (bar {REFRESH} s)")
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"of which on a processor: {statistics.median(cpu):.2f} s; {os.cpu_count()} processors, load {load}")
    memory = int(re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[0]) / 1e3
    print(f"memory of the server at most: {memory:.0f} MB (bar {MEMORY:.0f} MB)")
    return int(first > FIRST or statistics.median(times) > REFRESH or memory > MEMORY or bool(pending))


def processor_seconds(pid: int) -> float:
    """Seconds that a process has had a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def append(runs: list[Path], turn: int) -> None:
    """Adds a row to every tenth run, as training does."""
    for run in runs[::10]:
        path = run / "metrics.jsonl"
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - (1 << 14)))
            line = json.loads(file.read().splitlines()[-1])
        line["step"] += 10
        line["metrics"]["critic/wasserstein"]["reduced"] = float(turn)
        with path.open("a") as end:
            end.write(json.dumps(line) + "\n")


def ask(address: str) -> tuple[float, dict]:
    """Seconds and the answer of a route."""
    start = time.monotonic()
    with urllib.request.urlopen(address) as answer:
        data = answer.read()
    return time.monotonic() - start, json.loads(data)


def first_picture(address: str) -> float:
    """Seconds from opening the tab until a curve is drawn."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.set_script_timeout(60)
        start = time.monotonic()
        browser.get(address)
        while not browser.execute_script("return document.querySelectorAll('.plot canvas').length"):
            time.sleep(0.02)
        return time.monotonic() - start
    finally:
        browser.quit()


if __name__ == "__main__":
    sys.exit(main())
