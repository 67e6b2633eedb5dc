"""Experiment files and plugins, as commands take them."""

from ganlab.runs.experiment_source import read_experiment, use_plugins

__all__ = ["read_experiment", "use_plugins"]
