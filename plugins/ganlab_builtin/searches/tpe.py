"""Settings chosen by a black-box optimizer: Optuna."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import require

# How often the sampler is asked for a new configuration before one is drawn at random.
_ATTEMPTS = 10


class Optuna(ganlab.Search):
    """Learns from earlier objectives where good settings are, by Optuna's tree-structured Parzen estimator.

    Needs `pip install -e '.[sweep]'`. Bergstra et al. (2011), "Algorithms for hyper-parameter optimization": settings
    are drawn where the density of good configurations, divided by that of the others, is large. Watanabe (2023),
    "Tree-structured Parzen estimator: understanding its algorithm components", explains each parameter.

    Proposal number n depends on the seed, on n and on the results by then, so a sweep that was killed resumes as if it
    had not been. No configuration is proposed twice.
    """

    needs_objective = True

    def __init__(
        self,
        *,
        startup: Annotated[int, Ge(0)] = 10,
        pruner: Literal["none", "median", "hyperband"] = "none",
        pruner_startup: Annotated[int, Ge(0)] = 5,
        warmup_steps: Annotated[int, Ge(0)] = 0,
    ) -> None:
        """Chooses how to search.

        Args:
            startup: The number of configurations that end before the model takes over from random draws.
            pruner: Gives configurations up early: "median" those whose best so far is worse than the median of the
                others' at the same step, "hyperband" by successive halving, in brackets of different patience
                (Li et al., 2018, "Hyperband: a novel bandit-based approach to hyperparameter optimization").
            pruner_startup: The number of configurations that are trained to the end before "median" gives up any.
            warmup_steps: Objectives before this step are ignored: early ones of GANs mean little.
        """
        self._optuna = require("optuna")
        pruners = {
            "none": self._optuna.pruners.NopPruner,
            "median": lambda: self._optuna.pruners.MedianPruner(n_startup_trials=pruner_startup),
            "hyperband": self._optuna.pruners.HyperbandPruner,
        }
        if pruner not in pruners:
            names = ", ".join(map(repr, pruners))
            raise ganlab.ConfigError(f"searches.optuna.pruner = {pruner!r} must be one of {names}.")
        self._startup, self._warmup_steps, self._pruner = startup, warmup_steps, pruners[pruner]

    def start(
        self,
        space: Mapping[str, ganlab.Choices | ganlab.Range],
        *,
        budget: int | None,
        seed: int,
        direction: Literal["minimize", "maximize"],
        history: Sequence[ganlab.Proposal] = (),
    ) -> None:
        """Takes the space, and passes the known results to Optuna."""
        if budget is None:
            raise ganlab.ConfigError("searches.optuna needs a budget of configurations, for example --budget 30.")
        self._budget, self._seed, self._direction = budget, seed, direction
        self._axes = {name: _axis(name, axis, self._optuna.distributions) for name, axis in space.items()}
        self._combinations = math.prod(axis.size for axis in self._axes.values())
        self._proposed: list[dict[str, str]] = []
        self._trials: list[Any] = []
        self._given_up: set[int] = set()
        with self._quiet():
            # Hyperband takes a trial's bracket from the study's name.
            self._study = self._optuna.create_study(study_name="ganlab", direction=direction, pruner=self._pruner())
            for number, proposal in enumerate(history):
                self._begin(dict(proposal.settings))
                for step, value in proposal.reports:
                    # Hyperband keeps in the study what it sees when it is asked.
                    if self._note(number, step, value):
                        self._trials[number].should_prune()
                if proposal.given_up:
                    self._given_up.add(number)
                if proposal.ended:
                    self.finish(number, proposal.value)

    def propose(self) -> Mapping[str, str] | None:
        """One more configuration; None after the budget, or if every one was proposed."""
        number = len(self._proposed)
        if number >= min(self._budget, self._combinations):
            return None
        with self._quiet():
            settings = self._suggested(number)
            self._begin(settings)
        return settings

    def report(self, number: int, step: int, value: float) -> bool:
        """Passes an intermediate objective to the pruner; True if that gives the configuration up."""
        with self._quiet():
            if self._note(number, step, value) and self._trials[number].should_prune():
                self._given_up.add(number)
        return number in self._given_up

    def finish(self, number: int, value: float | None) -> None:
        """Reports to Optuna how a configuration ended. One that was given up counts by its last report."""
        states = self._optuna.trial.TrialState
        with self._quiet():
            if number in self._given_up:
                self._study.tell(self._trials[number], state=states.PRUNED)
            elif value is None or not math.isfinite(value):
                self._study.tell(self._trials[number], state=states.FAIL)
            else:
                self._study.tell(self._trials[number], value)

    def _note(self, number: int, step: int, value: float) -> bool:
        """Reports an intermediate objective to Optuna, if it counts."""
        counts = step >= self._warmup_steps and math.isfinite(value)
        if counts:
            self._trials[number].report(value, step)
        return counts

    def _begin(self, settings: dict[str, str]) -> None:
        """Makes the trial of a proposal; its number is the proposal's."""
        self._study.enqueue_trial({name: self._axes[name].value(text) for name, text in settings.items()})
        self._trials.append(self._study.ask(self._distributions()))
        self._proposed.append(settings)

    def _suggested(self, number: int) -> dict[str, str]:
        """The model's suggestion, from a copy of the study, because proposals have fewer digits and are new."""
        digest = hashlib.sha256(f"{self._seed} {number}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big")
        # Optuna's sampler has a state that advances with each draw; one per proposal is the same after a restart.
        sampler = self._optuna.samplers.TPESampler(seed=seed, n_startup_trials=self._startup, multivariate=True)
        copy = self._optuna.create_study(direction=self._direction, sampler=sampler)
        copy.add_trials(self._study.get_trials(deepcopy=False))
        attempts = 0
        while True:
            if attempts == _ATTEMPTS:
                copy.sampler = self._optuna.samplers.RandomSampler(seed=seed)
            drawn = copy.ask(self._distributions()).params
            settings = {name: axis.text(drawn[name]) for name, axis in self._axes.items()}
            if settings not in self._proposed:
                return settings
            attempts += 1

    def _distributions(self) -> dict[str, Any]:
        return {name: axis.distribution for name, axis in self._axes.items()}

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Context manager: keeps Optuna's messages on trials out of a sweep's table."""
        logging = self._optuna.logging
        verbosity = logging.get_verbosity()
        logging.set_verbosity(logging.ERROR)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            logging.set_verbosity(verbosity)


@dataclass(frozen=True)
class _Axis:
    """A setting as Optuna represents it: its distribution, the number of its values, and both ways to and from text."""

    distribution: Any
    size: float
    text: Callable[[Any], str]
    value: Callable[[str], Any]


def _axis(name: str, axis: ganlab.Choices | ganlab.Range, distributions: Any) -> _Axis:
    if isinstance(axis, ganlab.Choices):
        choices = tuple(dict.fromkeys(axis.values))
        return _Axis(distributions.CategoricalDistribution(choices), len(choices), str, str)
    try:
        if axis.integer:
            low, high = math.ceil(axis.low), math.floor(axis.high)
            return _Axis(distributions.IntDistribution(low, high, log=axis.log), high - low + 1, str, int)
        distribution = distributions.FloatDistribution(axis.low, axis.high, log=axis.log)
    except ValueError as error:
        raise ganlab.ConfigError(
            f"searches.optuna cannot search {name} from {axis.low} to {axis.high}: {error}"
        ) from None

    def text(value: float) -> str:
        # Six digits are plenty, and short enough for the name of a folder.
        return repr(min(max(float(f"{value:.6g}"), axis.low), axis.high))

    return _Axis(distribution, math.inf, text, float)
