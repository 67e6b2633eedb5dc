"""Distances between samples of real examples are computed once for the same examples."""

import numpy as np
import pytest
from ganlab_builtin.evaluators.comparing import Compared, OverFeatures


class Distance(OverFeatures):
    features = None


@pytest.fixture
def counted():
    def measure(x, y):
        measure.pairs.append((x[0, 0], y[0, 0]))
        return abs(x.mean() - y.mean())

    measure.pairs = []
    return measure


def points(value):
    return np.full((3, 2), value)


def test_the_same_real_examples_are_measured_once_and_others_anew(counted):
    evaluator = Distance()
    first = Compared(points(5.0), points(1.0), points(2.0))
    assert evaluator.distances(first, counted) == {"distance": 4.0, "real_against_real": 1.0}
    later = Compared(points(3.0), points(1.0), points(2.0))
    assert evaluator.distances(later, counted) == {"distance": 2.0, "real_against_real": 1.0}
    assert counted.pairs == [(2.0, 1.0), (5.0, 1.0), (3.0, 1.0)]
    changed = Compared(points(3.0), points(1.0), points(4.0))
    assert evaluator.distances(changed, counted) == {"distance": 2.0, "real_against_real": 3.0}
