"""The training engine for applications that look inside it: the traced step, its variables, and what it calls.

Imports TensorFlow. What a plugin needs is in `ganlab` itself; these names are for programs such as `ganlab verify`.
"""

from ganlab.composition import PARTS, compose, given_rows, make, parameters
from ganlab.config import load, overrides
from ganlab.interfaces.loss import has_own
from ganlab.plugins import optional, scheduled
from ganlab.plugins.plugin_errors import sentence
from ganlab.plugins.recipes import described, recipe_of, unique_names
from ganlab.runs.origins import data_changes, data_of
from ganlab.training.checkpoints import Checkpoint, Checkpoints, restore
from ganlab.training.diagnostics.activations import Intermediates
from ganlab.training.diagnostics.schedule import DiagnosticSchedule
from ganlab.training.evaluation import Evaluation, declared_figures, diagnosed, measured
from ganlab.training.graph import noise, op_source
from ganlab.training.graph.arithmetic import set_arithmetic
from ganlab.training.graph.augmenting import Augmentations
from ganlab.training.graph.calls import Calls
from ganlab.training.graph.inputs import OF_GENERATOR, Inputs, specs_of
from ganlab.training.graph.latents import latents_of_samples
from ganlab.training.graph.networks import SCORE, Network, build_networks
from ganlab.training.graph.program import has_kernel
from ganlab.training.graph.replica import Draws, Log, ReplicaView
from ganlab.training.graph.sampling import Sampler, Scorer, examples_of, first_examples, sampler, shown
from ganlab.training.graph.stack import ConstraintStack
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.step import TrainingStep
from ganlab.training.graph.trainer import Trainer
from ganlab.training.graph.update import batch_of
from ganlab.training.graph.variables import read
from ganlab.training.loading import Step, Trained, find_checkpoint, keep_precision, load_trained
from ganlab.training.rewound import Rewound
from ganlab.training.start import train

__all__ = [
    "OF_GENERATOR",
    "PARTS",
    "SCORE",
    "Augmentations",
    "Calls",
    "Checkpoint",
    "Checkpoints",
    "ConstraintStack",
    "DiagnosticSchedule",
    "Draws",
    "Evaluation",
    "Inputs",
    "Intermediates",
    "Log",
    "Network",
    "ReplicaView",
    "Rewound",
    "Sampler",
    "Scorer",
    "Step",
    "Trained",
    "Trainer",
    "TrainingState",
    "TrainingStep",
    "batch_of",
    "build_networks",
    "compose",
    "data_changes",
    "data_of",
    "declared_figures",
    "described",
    "diagnosed",
    "examples_of",
    "find_checkpoint",
    "first_examples",
    "given_rows",
    "has_kernel",
    "has_own",
    "keep_precision",
    "latents_of_samples",
    "load",
    "load_trained",
    "make",
    "measured",
    "noise",
    "op_source",
    "optional",
    "overrides",
    "parameters",
    "read",
    "recipe_of",
    "restore",
    "sampler",
    "scheduled",
    "sentence",
    "set_arithmetic",
    "shown",
    "specs_of",
    "train",
    "unique_names",
]
