"""Architectures with labels pass the conformance kit that plugin authors use."""

import pytest

import ganlab
from ganlab.testing import ArchitectureConformance

pytestmark = pytest.mark.conformance


class TestClassifier(ArchitectureConformance):
    sample_shape = (2,)

    def make(self):
        return ganlab.component("architectures", "mlp")(width=8, depth=1, labels="classifier")


class TestProjection(ArchitectureConformance):
    sample_shape = (8, 8, 1)

    def make(self):
        return ganlab.component("architectures", "dcgan")(channels=2, labels="projection")
