"""How many starts a comparison of trainings takes."""

import pytest
from ganlab_verify.reference import Reference
from test_comparing import GRADIENTS, scaled, trace


class Bench:
    """A training whose gradient is off by a factor from the starts that are named."""

    def __init__(self, off, factor):
        self.off, self.factor, self.starts = off, factor, []

    def traced(self, iterations, perturbed):
        assert iterations == 3
        self.starts.append(perturbed)
        departs = self.off == "all" or perturbed in self.off
        return trace(at_1={"gradients": scaled(GRADIENTS, self.factor)}) if departs else trace()


def departs(reference, other):
    return any(m.departs for m in reference.against(reference.trained(other))[1])


def test_four_starts_are_enough_where_nothing_departs():
    mine, other = Bench((), 1), Bench((0,), 1.001)
    assert not departs(Reference(mine, 3), other)
    assert mine.starts == other.starts == [None, 0, 1, 2]


def test_a_kink_that_separates_all_of_four_starts_is_not_a_mistake():
    mine, other = Bench((), 1), Bench((None, 0, 1, 2, 5, 6), 1.001)
    reference = Reference(mine, 3)
    assert not departs(reference, other)
    assert mine.starts == other.starts == [None, *range(11)]
    # A second comparison reuses the twelve trainings of the reference.
    assert not departs(reference, Bench((None, 0, 1, 2), 1.001))
    assert len(mine.starts) == 12


def test_a_mistake_departs_from_every_start():
    assert departs(Reference(Bench((), 1), 3), Bench("all", 1.001))


@pytest.mark.parametrize("factor", [2, float("nan")])
def test_what_no_kink_can_do_needs_no_further_starts(factor):
    mine, other = Bench((), 1), Bench("all", factor)
    assert departs(Reference(mine, 3), other)
    assert len(mine.starts) == len(other.starts) == 4
