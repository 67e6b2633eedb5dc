"""The roles that plugins implement: what the core asks of each part of an experiment."""

from ganlab.roles.architecture import Architecture
from ganlab.roles.constraint import Batch, Constraint, Critic, Replica
from ganlab.roles.dataset import Dataset
from ganlab.roles.diagnostic import CriticLayer, CriticView, Diagnostic, Findings, LossGradients
from ganlab.roles.evaluator import Evaluator
from ganlab.roles.features import Features
from ganlab.roles.launcher import Job, Launcher
from ganlab.roles.loss import Loss
from ganlab.roles.search import Choices, Proposal, Range, Search, Space

__all__ = [
    "Architecture",
    "Batch",
    "Choices",
    "Constraint",
    "Critic",
    "CriticLayer",
    "CriticView",
    "Dataset",
    "Diagnostic",
    "Evaluator",
    "Features",
    "Findings",
    "Job",
    "Launcher",
    "Loss",
    "LossGradients",
    "Proposal",
    "Range",
    "Replica",
    "Search",
    "Space",
]
