"""The actions of a session between chunks of iterations: guard, evaluate, diagnose, log, save a checkpoint, profile."""

from ganlab.training.actions.action import Action, Moment
from ganlab.training.actions.best import KeepBest
from ganlab.training.actions.checkpoint import SaveCheckpoint
from ganlab.training.actions.diagnose import Diagnose
from ganlab.training.actions.evaluate import Evaluate, EvaluateBeside
from ganlab.training.actions.guard import Guard
from ganlab.training.actions.log import Log
from ganlab.training.actions.profile import Profile, Span, span

__all__ = [
    "Action",
    "Diagnose",
    "Evaluate",
    "EvaluateBeside",
    "Guard",
    "KeepBest",
    "Log",
    "Moment",
    "Profile",
    "SaveCheckpoint",
    "Span",
    "span",
]
