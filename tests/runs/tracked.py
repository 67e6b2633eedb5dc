"""A training of six steps on two replicas, for tests of trackers, and what it logs."""

import json

SMALL = {
    "experiment.steps": 6,
    "experiment.batch_size": 16,
    "experiment.log_every": 2,
    "experiment.evaluate_every": 4,
    "experiment.checkpoint_every": 4,
    "architectures.mlp.width": 8,
    "experiment.architecture": "@architectures.mlp()",
    "experiment.evaluators": "[]",
    "experiment.diagnostics": "[]",
    "experiment.constraints": "[]",
    "experiment.critic_steps": 1,
    "experiment.strategy": "@strategies.mirrored()",
    "strategies.mirrored.virtual_replicas": 2,
}


def params(settings=SMALL):
    """The settings as options of `ganlab run`."""
    return [word for name, value in settings.items() for word in ("--param", f"{name}={value}")]


def logged(run):
    """Yields the step, metric, replica ("" for the reduced value) and value of all that metrics.jsonl holds."""
    for line in (run.path / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        for tag, entry in row["metrics"].items():
            yield row["step"], tag, "", entry["reduced"]
            yield from ((row["step"], tag, str(i), value) for i, value in enumerate(entry.get("replicas", ())))
