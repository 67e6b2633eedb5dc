"""Sweeps: many runs of one experiment, each in its own process, that can be stopped and resumed at any time."""

from ganlab_sweep.configurations import Configuration, Configurations, check, check_used
from ganlab_sweep.durations import Duration
from ganlab_sweep.engine import Engine, Screen
from ganlab_sweep.metric_follower import last_value
from ganlab_sweep.request import Proposed, Request
from ganlab_sweep.screen import LiveTable
from ganlab_sweep.search_driver import SearchDriver, plan
from ganlab_sweep.space import parse_seeds, parse_space
from ganlab_sweep.store import Sweep
from ganlab_sweep.sweeping import (
    Plan,
    Swept,
    cores,
    created,
    free_path,
    launcher_of,
    planned_sweep,
    run_trials,
    search_of,
    sweep,
)
from ganlab_sweep.trial import COMPLETED, DIVERGED, ENDED, FAILED, Trial, environment, take_up

__all__ = [
    "COMPLETED",
    "DIVERGED",
    "ENDED",
    "FAILED",
    "Configuration",
    "Configurations",
    "Duration",
    "Engine",
    "LiveTable",
    "Plan",
    "Proposed",
    "Request",
    "Screen",
    "SearchDriver",
    "Sweep",
    "Swept",
    "Trial",
    "check",
    "check_used",
    "cores",
    "created",
    "environment",
    "free_path",
    "last_value",
    "launcher_of",
    "parse_seeds",
    "parse_space",
    "plan",
    "planned_sweep",
    "run_trials",
    "search_of",
    "sweep",
    "take_up",
]
