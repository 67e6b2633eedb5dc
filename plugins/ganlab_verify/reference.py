"""A training that others are held against, from as many starts as a verdict needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ganlab_verify.comparing import Measure, compare, may_be_rounding
from ganlab_verify.trace import Trace
from ganlab_verify.trainings import Bench

# Seeds of changes of the initial weights by 1e-7; None for no change. A unit within rounding of its kink is on either
# side by chance: two trainings depart from each of four starts now and then, and hardly ever from each of twelve.
_FIRST: tuple[int | None, ...] = (None, 0, 1, 2)
_MORE: tuple[int | None, ...] = tuple(range(3, 11))

Train = Callable[[Sequence[int | None]], list[Trace]]


class Reference:
    """A training from several starts.

    Attributes:
        traces: Its records, of which the first is from the unchanged initial weights.
    """

    def __init__(self, bench: Bench, iterations: int) -> None:
        """Trains.

        Args:
            bench: The experiment.
            iterations: How many iterations to train.
        """
        self._bench, self._iterations = bench, iterations
        self.traces = self.trained(bench)(_FIRST)

    def trained(self, bench: Bench) -> Train:
        """The same iterations on another bench, from the starts that are asked for."""
        return lambda starts: [bench.traced(self._iterations, perturbed=seed) for seed in starts]

    def against(self, train: Train) -> tuple[list[Trace], list[Measure]]:
        """Compares another training with this one, from further starts if a departure may be a rectifier's.

        Args:
            train: Trains from the starts that it is given.

        Returns:
            The records of the other training, in the order of `traces`, and the comparison.
        """
        others = train(_FIRST)
        measures = compare(self.traces[: len(others)], others)
        if may_be_rounding(measures):
            if len(self.traces) == len(_FIRST):
                self.traces += self.trained(self._bench)(_MORE)
            others += train(_MORE)
            measures = compare(self.traces, others)
        return others, measures
