"""The first-party evaluators under the conformance kit for plugin authors."""

import ganlab
from ganlab.testing import EvaluatorConformance


def make(name, **arguments):
    return ganlab.component("evaluators", name)(samples=100, **arguments)


class TestModeCoverage(EvaluatorConformance):
    def make(self):
        return make("mode_coverage")


class TestExactW1(EvaluatorConformance):
    def make(self):
        return make("exact_w1")


class TestSlicedWasserstein(EvaluatorConformance):
    def make(self):
        return make("sliced_wasserstein")


class TestFrechetDistance(EvaluatorConformance):
    def make(self):
        return make("frechet_distance", features=ganlab.component("features", "pixels")())


class TestKid(EvaluatorConformance):
    def make(self):
        return make("kid")


class TestPrecisionRecall(EvaluatorConformance):
    def make(self):
        return make("precision_recall")


class TestDensityCoverage(EvaluatorConformance):
    def make(self):
        return make("density_coverage")
