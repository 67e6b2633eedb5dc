"""The critic's estimate beside the exact distance, for critics whose estimate is known."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import ganlab

SHIFT = np.array([3.0, 4.0])
REAL = np.random.default_rng(0).normal(size=(40, 2))


def look(critic, real=REAL + SHIFT, fake=REAL, **arguments):
    """The figures for a critic `(n, 2) -> (n,)` between a cloud and the same cloud moved by 5."""
    asked = []

    def more(n):
        asked.append(n)
        return real[:n].astype(np.float32), fake[:n].astype(np.float32)

    view = SimpleNamespace(more=more, more_labels=lambda n: None, scores=lambda x, labels: critic(x).astype(np.float32))
    figures = ganlab.component("diagnostics", "wasserstein_error")(**arguments).look(view).figures
    assert asked == [arguments.get("points", 512)]
    return figures


def test_the_best_critic_of_a_translation_has_no_error():
    figures = look(lambda x: x @ SHIFT / 5 + 7)
    assert figures["exact"] == pytest.approx(5.0, rel=1e-5)
    assert figures["estimate"] == pytest.approx(5.0, rel=1e-5)
    assert figures["relative_error"] == pytest.approx(0.0, abs=1e-5)


def test_a_steep_critic_exceeds_it_and_one_in_another_direction_falls_short():
    assert look(lambda x: x @ SHIFT / 2)["relative_error"] == pytest.approx(1.5, rel=1e-5)
    assert look(lambda x: x[:, 0])["relative_error"] == pytest.approx(3 / 5 - 1, rel=1e-5)
    assert look(lambda x: -x[:, 0])["estimate"] == pytest.approx(-3.0, rel=1e-5)  # real above fake is positive


def test_fewer_points_are_compared_where_asked():
    found = look(lambda x: x[:, 0], fake=np.zeros((40, 2)), points=10)
    first = REAL[:10] + SHIFT
    assert found["exact"] == pytest.approx(np.mean([math.hypot(*x) for x in first]), rel=1e-5)
    assert found["estimate"] == pytest.approx(first[:, 0].mean(), rel=1e-5)


def test_without_a_distance_there_is_no_relative_error():
    assert look(lambda x: x[:, 0], fake=REAL + SHIFT) == {"estimate": 0.0, "exact": 0.0}
