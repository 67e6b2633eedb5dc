# Made by tools/stubs.py.
from ganlab_builtin.evaluators.by_class import ClassFrechetDistance as ClassFrechetDistance
from ganlab_builtin.evaluators.by_class import LabelAccuracy as LabelAccuracy
from ganlab_builtin.evaluators.classifying import ClassifierScore as ClassifierScore
from ganlab_builtin.evaluators.frechet import FrechetDistance as FrechetDistance
from ganlab_builtin.evaluators.given import ConditionAccuracy as ConditionAccuracy
from ganlab_builtin.evaluators.given import CycleError as CycleError
from ganlab_builtin.evaluators.given import Reconstruction as Reconstruction
from ganlab_builtin.evaluators.kernel import KernelDistance as KernelDistance
from ganlab_builtin.evaluators.modes import ModeCoverage as ModeCoverage
from ganlab_builtin.evaluators.neighbours import DensityCoverage as DensityCoverage
from ganlab_builtin.evaluators.neighbours import PrecisionRecall as PrecisionRecall
from ganlab_builtin.evaluators.ngrams import NGrams as NGrams
from ganlab_builtin.evaluators.published_scores import PublishedScores as PublishedScores
from ganlab_builtin.evaluators.stacked import StackedModes as StackedModes
from ganlab_builtin.evaluators.transport import ExactW1 as ExactW1
from ganlab_builtin.evaluators.transport import SlicedWasserstein as SlicedWasserstein
