"""Sweeps: many runs of one experiment, each in its own process, that can be stopped and resumed at any time."""

from ganlab.sweeps.configurations import Configuration, Configurations, check, check_used
from ganlab.sweeps.engine import Engine
from ganlab.sweeps.request import Request
from ganlab.sweeps.search_driver import SearchDriver, plan
from ganlab.sweeps.space import parse_seeds, parse_space
from ganlab.sweeps.store import Sweep
from ganlab.sweeps.sweeping import (
    Plan,
    Swept,
    created,
    free_path,
    launcher_of,
    planned_sweep,
    run_trials,
    search_of,
    sweep,
)
from ganlab.sweeps.trial import Trial, take_up

__all__ = [
    "Configuration",
    "Configurations",
    "Engine",
    "Plan",
    "Request",
    "SearchDriver",
    "Sweep",
    "Swept",
    "Trial",
    "check",
    "check_used",
    "created",
    "free_path",
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
