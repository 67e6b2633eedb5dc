"""First-party evaluators, registered through this package's entry point like any plugin's."""

from __future__ import annotations

import ganlab
from ganlab_builtin.evaluators.by_class import ClassFrechetDistance, LabelAccuracy
from ganlab_builtin.evaluators.classifying import ClassifierScore
from ganlab_builtin.evaluators.copying import Copying, FeatureLikelihood
from ganlab_builtin.evaluators.frechet import FrechetDistance, FrechetInfinity
from ganlab_builtin.evaluators.given import ConditionAccuracy, CycleError, Reconstruction
from ganlab_builtin.evaluators.kernel import KernelDistance, VendiScore
from ganlab_builtin.evaluators.modes import ModeCoverage
from ganlab_builtin.evaluators.neighbours import DensityCoverage, PrecisionRecall
from ganlab_builtin.evaluators.ngrams import NGrams
from ganlab_builtin.evaluators.published_scores import PublishedScores
from ganlab_builtin.evaluators.stacked import StackedModes
from ganlab_builtin.evaluators.transport import ExactW1, MongeInceptionDistance, SlicedWasserstein

GANLAB_KNOWN_AS = {
    "evaluators.frechet_distance": ["fid", "frechet_inception_distance"],
    "evaluators.classifier_score": ["inception_score"],
    "evaluators.kid": ["kernel_inception_distance", "mmd", "cmmd"],
    "evaluators.mind": ["monge_inception_distance"],
    "evaluators.frechet_infinity": ["fid_infinity", "fd_infinity"],
    "evaluators.copying": ["authpct", "c_t", "ct_test"],
    "evaluators.fld": ["feature_likelihood_divergence"],
    "evaluators.vendi_score": ["vendi"],
    "evaluators.density_coverage": ["prdc"],
    "evaluators.exact_w1": ["w1", "wasserstein", "emd"],
    "evaluators.sliced_wasserstein": ["swd"],
}


@ganlab.hookimpl
def ganlab_evaluators() -> dict[str, type[ganlab.Evaluator]]:
    """The evaluators of this package."""
    return {
        "class_frechet_distance": ClassFrechetDistance,
        "classifier_score": ClassifierScore,
        "condition_accuracy": ConditionAccuracy,
        "copying": Copying,
        "cycle_error": CycleError,
        "density_coverage": DensityCoverage,
        "exact_w1": ExactW1,
        "fld": FeatureLikelihood,
        "frechet_distance": FrechetDistance,
        "frechet_infinity": FrechetInfinity,
        "kid": KernelDistance,
        "label_accuracy": LabelAccuracy,
        "mind": MongeInceptionDistance,
        "mode_coverage": ModeCoverage,
        "ngrams": NGrams,
        "precision_recall": PrecisionRecall,
        "published_scores": PublishedScores,
        "reconstruction": Reconstruction,
        "sliced_wasserstein": SlicedWasserstein,
        "stacked_modes": StackedModes,
        "vendi_score": VendiScore,
    }
