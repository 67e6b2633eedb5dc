"""The roles that plugins implement: the interface of each part of an experiment."""

from ganlab.interfaces.architecture import Architecture
from ganlab.interfaces.augmentation import Augmentation
from ganlab.interfaces.constraint import Batch, Constraint, Critic, Generator, Network, Replica
from ganlab.interfaces.dataset import Dataset
from ganlab.interfaces.diagnostic import CriticLayer, CriticView, Diagnostic, Findings, LossGradients
from ganlab.interfaces.evaluator import Direction, Evaluator
from ganlab.interfaces.features import Features
from ganlab.interfaces.launcher import Job, Launcher
from ganlab.interfaces.loss import Loss
from ganlab.interfaces.schedule import Schedule
from ganlab.interfaces.search import Choices, Proposal, Range, Search, Space

__all__ = [
    "Architecture",
    "Augmentation",
    "Batch",
    "Choices",
    "Constraint",
    "Critic",
    "CriticLayer",
    "CriticView",
    "Dataset",
    "Diagnostic",
    "Direction",
    "Evaluator",
    "Features",
    "Findings",
    "Generator",
    "Job",
    "Launcher",
    "Loss",
    "LossGradients",
    "Network",
    "Proposal",
    "Range",
    "Replica",
    "Schedule",
    "Search",
    "Space",
]
