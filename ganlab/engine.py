"""The training engine for applications that look inside it: the traced step, its variables, and what it calls.

Imports TensorFlow. What a plugin needs is in `ganlab` itself; these names are for programs such as `ganlab verify`.
"""

from ganlab.composition import compose
from ganlab.plugins.recipes import Recipe
from ganlab.training.graph.arithmetic import set_arithmetic
from ganlab.training.graph.inputs import Inputs, specs_of
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.step import TrainingStep
from ganlab.training.graph.trainer import Trainer

__all__ = [
    "Inputs",
    "Recipe",
    "Trainer",
    "TrainingState",
    "TrainingStep",
    "compose",
    "set_arithmetic",
    "specs_of",
]
