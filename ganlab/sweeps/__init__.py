"""Sweeps: many runs of one experiment, each in its own process, that can be stopped and resumed at any time."""

from ganlab.config import takes_fractions
from ganlab.sweeps.configurations import Configuration, Configurations, check, check_used
from ganlab.sweeps.engine import Engine, Screen
from ganlab.sweeps.metric_follower import last_value
from ganlab.sweeps.request import Proposed, Request
from ganlab.sweeps.screen import LiveTable
from ganlab.sweeps.search_driver import SearchDriver, plan
from ganlab.sweeps.space import parse_seeds, parse_space
from ganlab.sweeps.store import Sweep
from ganlab.sweeps.sweeping import (
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
from ganlab.sweeps.trial import COMPLETED, DIVERGED, ENDED, FAILED, Trial, environment, take_up

__all__ = [
    "COMPLETED",
    "DIVERGED",
    "ENDED",
    "FAILED",
    "Configuration",
    "Configurations",
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
    "takes_fractions",
]
