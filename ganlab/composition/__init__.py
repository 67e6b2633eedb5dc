"""The composed, validated experiment: made from an experiment file and passed to training."""

from ganlab.composition.experiments import Experiment, check_settings, experiment, parameters
from ganlab.composition.making import compose, make, schedules
from ganlab.composition.parts import LISTS, MAPPINGS, OF_GENERATOR, PARTS, UNUSED

__all__ = [
    "LISTS",
    "MAPPINGS",
    "OF_GENERATOR",
    "PARTS",
    "UNUSED",
    "Experiment",
    "check_settings",
    "compose",
    "experiment",
    "make",
    "parameters",
    "schedules",
]
