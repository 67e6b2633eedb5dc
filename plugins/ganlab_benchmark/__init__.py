"""Benchmarks: every constraint on a suite of tasks, with equal time, tuned on other data than it is reported on."""

from ganlab_benchmark.benchmarking import (
    Benchmarked,
    benchmark,
    created,
    free_path,
    planned_benchmark,
    reopened,
    run_benchmark,
)
from ganlab_benchmark.plan import Plan
from ganlab_benchmark.store import Folder
from ganlab_benchmark.suite import Suite, read_suite

__all__ = [
    "Benchmarked",
    "Folder",
    "Plan",
    "Suite",
    "benchmark",
    "created",
    "free_path",
    "planned_benchmark",
    "read_suite",
    "reopened",
    "run_benchmark",
]
