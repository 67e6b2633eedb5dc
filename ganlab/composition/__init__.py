"""The composed, validated experiment: made from an experiment file and passed to training."""

from ganlab.composition.defaults import default_of
from ganlab.composition.experiments import Experiment, Rows, check_settings, experiment, given_rows, parameters
from ganlab.composition.making import compose, make, schedules
from ganlab.composition.parts import DEFAULTED, LISTS, MAPPINGS, OF_GENERATOR, OPTIONAL, PARTS, UNUSED
from ganlab.composition.turn import ONE_EACH, Turn

__all__ = [
    "DEFAULTED",
    "LISTS",
    "MAPPINGS",
    "OF_GENERATOR",
    "ONE_EACH",
    "OPTIONAL",
    "PARTS",
    "UNUSED",
    "Experiment",
    "Rows",
    "Turn",
    "check_settings",
    "compose",
    "default_of",
    "experiment",
    "given_rows",
    "make",
    "parameters",
    "schedules",
]
