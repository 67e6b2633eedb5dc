"""Helpers that write runs by hand, as training would leave them."""

import json

from ganlab.runs import create_run

INFO = {
    "status": "completed",
    "step": 40,
    "steps": 40,
    "seed": 3,
    "replicas": 2,
    "strategy": "MirroredStrategy",
    "settings": {"dataset": "digits", "constraints": "gradient_penalty, r1", "experiment.seed": 3},
    "metrics": {"critic/loss": -1.5, "critic/wasserstein": float("inf")},
    "evaluation": {"kid/distance": 0.25},
    "health": [],
    "wall_seconds": 125.0,
    "provenance": {
        "started": "2026-08-01T12:00:00+00:00",
        "argv": ["ganlab", "run"],
        "git": {"commit": "abc123", "dirty": True},
        "python": "3.11.7",
        "host": "h",
        "platform": "Linux",
        "packages": {"ganlab": "0.1.0"},
        "plugins": {
            "ganlab_losses": {"distribution": "ganlab", "version": "0.1.0", "status": "loaded"},
            "mine": {"distribution": "soft-slope", "version": "2.0", "status": "loaded"},
        },
        "devices": ["/device:CPU:0"],
    },
}


def make(path, **info):
    """Makes a run with a checkpoint of 1000 bytes and an image of 10."""
    run = create_run(path, config="experiment.steps = 40\n", operative="", info={**INFO, **info})
    (path / "metrics.jsonl").write_text(json.dumps({"step": 40, "metrics": {"critic/loss": {"reduced": -1.5}}}) + "\n")
    (path / "checkpoints" / "step-00000040").mkdir(parents=True)
    (path / "checkpoints" / "step-00000040" / "variables.data").write_bytes(b"w" * 998)
    (path / "checkpoints" / "step-00000040" / "manifest.json").write_text("{}")
    (path / "samples").mkdir()
    (path / "samples" / "step-00000040.png").write_bytes(b"p" * 10)
    return run


def contents(folder):
    """The bytes of every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
