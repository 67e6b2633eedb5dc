"""The training engine for applications that look inside it: the traced step, its variables, and what it calls.

Imports TensorFlow. What a plugin needs is in `ganlab` itself; these names are for programs such as `ganlab verify`.
"""

from ganlab.composition import compose
from ganlab.training.graph.trainer import Trainer

__all__ = [
    "Trainer",
    "compose",
]
