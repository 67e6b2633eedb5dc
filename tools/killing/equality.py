"""Compares two runs bit for bit, except for times."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from ganlab.run import Run
from ganlab.training.checkpoints import Checkpoint, Checkpoints

_FIELDS = ("status", "step", "metrics", "evaluation", "diagnostics", "health", "warnings")
# Names of a checkpoint's variables, by group.
GROUPS = {
    "weights": "/weights/",
    "optimizers": "/optimizer/",
    "average": "/average/",
    "constraint state": "/state/",
    "constraint parameters": "/parameters/",
}


def differing_runs(one: Run, other: Run) -> list[str]:
    """Lists the differences between two runs that have ended, each in a few words; empty if they are equal."""
    found = []
    last, others = (Checkpoints(run.path / "checkpoints").latest() for run in (one, other))
    if last is None or others is None or last.step != others.step:
        found.append(f"checkpoints: {last} and {others}")
    else:
        found += differing_checkpoints(last, others)
    if (one.path / "metrics.jsonl").read_bytes() != (other.path / "metrics.jsonl").read_bytes():
        found.append(f"metrics.jsonl: {_first_line(one.path, other.path)}")
    found += [f"{name} in run.json" for name in _FIELDS if one.info.get(name) != other.info.get(name)]
    found += _differing(_pictures(one.path), _pictures(other.path), "")
    (mine, twice), (theirs, twice_there) = _events(one.path), _events(other.path)
    found += [f"event files say twice: {key}" for key in (*twice, *twice_there)]
    return found + _differing(mine, theirs, "event ")


def differing_checkpoints(one: Checkpoint, other: Checkpoint) -> list[str]:
    """Lists the differences between two sound checkpoints of one step."""
    if _files(one) == _files(other):
        return []
    found = _differing(_variables(one), _variables(other), f"step {one.step}: ")
    if one.pending().tobytes() != other.pending().tobytes():
        found.append(f"step {one.step}: pending metrics")
    return found


def counted(checkpoint: Checkpoint) -> dict[str, int]:
    """The number of variables of each group in a checkpoint."""
    names = json.loads((checkpoint.path / "manifest.json").read_text())["variables"]
    return {group: sum(part in f"/{name}/" for name in names) for group, part in GROUPS.items()}


def _files(checkpoint: Checkpoint) -> Any:
    return json.loads((checkpoint.path / "manifest.json").read_text())["files"]


def _variables(checkpoint: Checkpoint) -> dict[str, bytes]:
    reader = tf.train.load_checkpoint(checkpoint.prefix)
    names = [name for name in reader.get_variable_to_shape_map() if "OBJECT_GRAPH" not in name]
    return {name: np.asarray(reader.get_tensor(name)).tobytes() for name in names}


def _differing(one: dict[Any, Any], other: dict[Any, Any], what: str) -> list[str]:
    return [
        f"{what}{key}: {'missing' if key not in other else 'surplus' if key not in one else 'differs'}"
        for key in sorted(one.keys() | other.keys(), key=str)
        if one.get(key) != other.get(key)
    ]


def _pictures(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*.png")}


def _events(run: Path) -> tuple[dict[tuple[int, str], list[bytes]], list[tuple[int, str]]]:
    """Every value of the event files by step and tag, and the scalars that appear more than once."""
    found: dict[tuple[int, str], list[bytes]] = defaultdict(list)
    scalars: Counter[tuple[int, str]] = Counter()
    for path in sorted(run.glob("events.out.tfevents.*")):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                key = (event.step, value.tag)
                plugin = value.metadata.plugin_data.plugin_name
                # The records of a run's beginning and end contain the time.
                found[key].append(b"" if plugin == "hparams" else value.tensor.SerializeToString())
                scalars[key] += plugin == "scalars"
    return found, [key for key, times in scalars.items() if times > 1]


def _first_line(one: Path, other: Path) -> str:
    lines, others = ((path / "metrics.jsonl").read_text().splitlines() for path in (one, other))
    for number, (line, there) in enumerate(zip(lines, others, strict=False), start=1):
        if line != there:
            return f"line {number} differs"
    return f"{len(lines)} and {len(others)} lines"
