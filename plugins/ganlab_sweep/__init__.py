"""Sweeps: many runs of one experiment, each in its own process, that can be stopped and resumed at any time."""

from ganlab_sweep.configurations import Configuration, Configurations
from ganlab_sweep.durations import Duration
from ganlab_sweep.engine import Screen
from ganlab_sweep.metric_follower import last_value
from ganlab_sweep.request import Proposed, Request
from ganlab_sweep.screen import LiveTable
from ganlab_sweep.store import Sweep
from ganlab_sweep.sweeping import Plan, Swept, cores, created, launcher_of, run_trials, search_of, sweep
from ganlab_sweep.trial import COMPLETED, DIVERGED, ENDED, FAILED, Trial, environment, take_up

__all__ = [
    "COMPLETED",
    "DIVERGED",
    "ENDED",
    "FAILED",
    "Configuration",
    "Configurations",
    "Duration",
    "LiveTable",
    "Plan",
    "Proposed",
    "Request",
    "Screen",
    "Sweep",
    "Swept",
    "Trial",
    "cores",
    "created",
    "environment",
    "last_value",
    "launcher_of",
    "run_trials",
    "search_of",
    "sweep",
    "take_up",
]
