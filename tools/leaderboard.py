"""Makes a finished benchmark the shipped reference of its suite, and its tables docs/leaderboard.md.

    python tools/leaderboard.py runs/benchmark-quick-20260801-120000

The reference is results.json without single trials, beside the suite in gin/benchmark. The tables are report.md, with a
line on how they were made.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ganlab_benchmark.markdown import markdown

from ganlab.support.atomic import write_text

ROOT = Path(__file__).resolve().parents[1]
HOW = "`ganlab benchmark --suite {name}` made these results, and `python tools/leaderboard.py` this page."


def main() -> None:
    """Writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of a benchmark that has ended")
    given = parser.parse_args()
    results = json.loads((given.folder / "results.json").read_text(encoding="utf-8"))
    name = results["suite"]["name"]
    if not results["complete"]:
        parser.error(f"{given.folder} has not ended: ganlab benchmark --resume {given.folder}")
    write_text(ROOT / "gin" / "benchmark" / f"{name}.json", json.dumps(without_trials(results), indent=1) + "\n")
    title, rest = markdown({**results, "references": []}).split("\n\n", 1)
    write_text(ROOT / "docs" / "leaderboard.md", f"{title}\n\n{HOW.format(name=name)}\n\n{rest}")


def without_trials(results: dict[str, Any]) -> dict[str, Any]:
    """Results with the figures of constraints alone, and without other references."""
    constraints = {}
    for name, each in results["constraints"].items():
        tasks = {
            task: {key: value for key, value in outcome.items() if key != "trials"}
            for task, outcome in each["tasks"].items()
        }
        constraints[name] = {**each, "tasks": tasks}
    return {**results, "constraints": constraints, "references": []}


if __name__ == "__main__":
    main()
