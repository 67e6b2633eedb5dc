"""A suite of a few seconds, and results made by hand."""

import copy

GIN = """
include 'eight_gaussians'
experiment.constraints = []
experiment.strategy = @strategies.one_device()
experiment.evaluators = []
experiment.batch_size = 32
experiment.critic_steps = 1
experiment.log_every = 10
experiment.checkpoint_every = 0
experiment.evaluate_every = 0
architectures.mlp.width = 8
"""
SUITE = """
title = "Tiny"
about = "For tests."

[tasks.cost]
kind = "cost"
experiment = "tiny.gin"
rounds = 2
seconds = 0.02
figures.ratio = { better = "lower", label = "cost" }

[tasks.w1]
title = "Loss"
experiment = "tiny.gin"
steps = 40
seeds = [0, 1]
figures.loss = { metric = "critic/loss", better = "lower", label = "loss", absolute = true }

[tasks.w1.tune]
figure = "loss"
seeds = [7]
settings = { "datasets.gaussian_ring.modes" = 5 }
grid = { "optimizers.adam.learning_rate" = [1e-3, 1e-4] }
scale = { "constraints.{constraint}.weight" = [0.1, 1.0] }

[[tasks.w1.report]]
name = "Ring"

[tasks.fraction]
kind = "sensitivity"
of = "w1"
figures.fraction = { better = "higher" }

[tasks.bound]
kind = "certificate"
of = "w1"
seconds = 1
rungs = ["products"]
figures.ratio = { better = "lower" }
"""


def write_suite(folder, text=SUITE, gin=GIN):
    """Writes the suite and its experiment; returns the suite's path."""
    (folder / "tiny.gin").write_text(gin)
    (folder / "tiny.toml").write_text(text)
    return folder / "tiny.toml"


def outcome(mean, low=None, high=None, *, n=1, status="completed", reason="", key="cosine"):
    figure = {"mean": mean, "low": low, "high": high, "n": n, "interval": None if low is None else "student"}
    return {"status": status, "reason": reason, "figures": {} if mean is None else {key: figure}}


RESULTS = {
    "format": 1,
    "suite": {"name": "tiny", "title": "Tiny", "about": "For tests.", "hash": "0123"},
    "budget": {"w1": {"steps": 40, "seeds": [0], "reports": ["ring"], "tuning_steps": None, "tuning_seeds": None}},
    "versions": {"ganlab": "0.1.0", "python": "3.12.1", "tensorflow": "2.21.0"},
    "machine": {"platform": "somewhere", "cores": 2, "threads": 1},
    "created": "2026-08-01T12:00:00+00:00",
    "date": "2026-08-01T13:00:00+00:00",
    "complete": True,
    "tasks": {
        "w1": {
            "kind": "training",
            "title": "Known optimal critics",
            "about": "A critic alone.",
            "columns": {"cosine": {"label": "cosine", "about": "Of gradients.", "better": "higher"}},
        }
    },
    "constraints": {
        "steep": {
            "origin": "a 1.0",
            "ratio": 1.5,
            "steps": {"w1": 27},
            "settings": {"w1": {"constraints.steep.weight": "10"}},
            "tasks": {"w1": outcome(0.5, 0.4, 0.6, n=3)},
        },
        "flat": {
            "origin": "a 1.0",
            "ratio": 1.0,
            "steps": {"w1": 40},
            "settings": {},
            "tasks": {"w1": outcome(0.75, 0.7, 0.8, n=3)},
        },
        "odd": {
            "origin": "a 1.0",
            "ratio": None,
            "steps": {},
            "settings": {},
            "tasks": {"w1": outcome(None, status="refused", reason="needs a critic with noise")},
        },
    },
    "references": [],
}


def reference():
    """Reference results of one constraint, with a warning."""
    named = {"file": "quick.json", "date": "2026-08-01", "warnings": ["Other versions."], "versions": {}}
    return {**named, "constraints": {"flat": results()["constraints"]["flat"]}}


def results(**changes):
    return {**copy.deepcopy(RESULTS), **changes}
