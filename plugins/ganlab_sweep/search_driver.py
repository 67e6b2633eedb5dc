"""Passes proposals from a search to its sweep, and results back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ganlab import Proposal, Search
from ganlab.commands import plugin_code, selector_of
from ganlab.errors import ConfigError, ContractError, GanlabError, RunError, nearest
from ganlab.runs import RunDirectory
from ganlab_sweep.configurations import Configuration, Configurations
from ganlab_sweep.metric_follower import MetricFollower, known_values, mean
from ganlab_sweep.request import Proposed, Request
from ganlab_sweep.space import Space
from ganlab_sweep.store import Sweep
from ganlab_sweep.trial import COMPLETED, ENDED, Trial

# After this many proposals in a row for configurations that already exist, a search counts as exhausted.
_REPEATS = 100
# The limit for a search without an objective and without a budget, which must end by itself.
_MOST = 10_000


class SearchDriver:
    """Asks a search for configurations during a sweep, and reports their results to it.

    Every proposal is recorded in sweep.json with the name of its configuration; several may share one.
    """

    def __init__(
        self,
        sweep: Sweep,
        search: Search | None = None,
        space: Space | None = None,
        configurations: Configurations | None = None,
    ) -> None:
        """Starts the search, with its proposals from earlier processes of the sweep.

        Args:
            sweep: The sweep.
            search: The search; None if all proposals are known, and nothing is asked or reported.
            space: The settings that a search may vary.
            configurations: Turns its proposals into configurations.

        Raises:
            GanlabError: The search does not accept this space or these options.
        """
        self._sweep, self._search, self._configurations = sweep, search, configurations
        self._proposals = sweep.proposals
        self._exhausted = search is None
        self._reported: dict[str, int] = {}
        if search is not None and space is not None:
            start(search, space, sweep.request, [self._known(proposal) for proposal in self._proposals])

    def next(self) -> Configuration | None:
        """The next configuration that the sweep does not have yet; None if there are no more.

        Raises:
            GanlabError: The search failed.
        """
        for _ in range(_REPEATS):
            settings = self._proposed()
            if settings is None:
                break
            configuration = self._new(settings)
            if configuration is not None:
                return configuration
        self._exhausted = True
        return None

    def _new(self, settings: Mapping[str, str]) -> Configuration | None:
        """Records a proposal; returns its configuration if that is new and valid."""
        assert self._configurations is not None
        proposal = Proposed(settings)
        number, twins = len(self._proposals), []
        self._proposals.append(proposal)
        try:
            configuration = self._configurations.of(settings)
        except ConfigError as error:  # a combination that was not among those tried before the sweep began
            proposal.error = str(error)
            self._end(number, None)
        else:
            proposal.configuration = configuration.name
            if configuration.name not in self._sweep.info["configurations"]:
                self._sweep.add(configuration)
                self._sweep.save()
                return configuration
            twins = [twin for twin in self._proposals if twin.configuration == configuration.name and twin.ended]
        for twin in twins[:1]:
            proposal.given_up, proposal.last_step = twin.given_up, twin.last_step
            self._end(number, twin.value)
        self._sweep.save()
        return None

    def report(self, trials: Sequence[Trial]) -> bool:
        """Reports new values of a configuration to the search, until it gives the configuration up.

        Args:
            trials: All trials of the configuration.

        Returns:
            Whether the search has given the configuration up by one of these values.
        """
        name = trials[0].configuration
        proposals = {number: self._proposals[number] for number in self._of(name)}
        # How much a run still writes before it ends is chance, and must not decide what is proposed next.
        if self._search is None or any(proposal.given_up for proposal in proposals.values()):
            return False
        for trial in trials:
            if trial.status in ENDED and not trial.trail.values:  # an earlier process of the sweep trained it
                trial.trail.follow()
        begun = [trial.trail for trial in trials if trial.trail.values]
        if not begun or any(trial.job and not trial.trail.values for trial in trials):
            return False
        for step, value in self._series(begun):
            if step <= self._reported.get(name, -1):
                continue
            self._reported[name] = step
            answers = [self._gives_up(number, step, value) for number in proposals]
            if any(answers):
                for proposal in proposals.values():
                    proposal.value, proposal.given_up, proposal.last_step = value, True, step
                return True
        return False

    def ended(self, trials: Sequence[Trial]) -> None:
        """Reports to the search that a configuration has ended, if all of its trials have.

        Args:
            trials: All trials of the configuration.

        Raises:
            RunError: The configuration is completed and lacks the objective, which none has had so far.
        """
        name, value = trials[0].configuration, None
        numbers = self._of(name)
        if not numbers or not all(trial.status in ENDED for trial in trials):
            return
        if all(trial.status == COMPLETED for trial in trials) and self._sweep.request.objective:
            value = self._mean(trials)
        for number in numbers:
            proposal = self._proposals[number]
            self._end(number, proposal.value if proposal.given_up else value)
        self._sweep.save()

    def _proposed(self) -> dict[str, str] | None:
        budget = self._sweep.request.budget
        if self._exhausted or self._search is None or (budget is not None and len(self._proposals) >= budget):
            return None
        return propose(self._search)

    def _gives_up(self, number: int, step: int, value: float) -> bool:
        assert self._search is not None
        with plugin_code(selector_of(self._search), "report"):
            return bool(self._search.report(number, step, value))

    def _end(self, number: int, value: float | None) -> None:
        proposal = self._proposals[number]
        proposal.value, proposal.ended = value, True
        if self._search is not None:
            with plugin_code(selector_of(self._search), "finish"):
                self._search.finish(number, value)

    def _of(self, configuration: str) -> list[int]:
        """The numbers of a configuration's proposals that have not ended."""
        return [
            number
            for number, proposal in enumerate(self._proposals)
            if proposal.configuration == configuration and not proposal.ended
        ]

    def _known(self, proposal: Proposed) -> Proposal:
        reports = self._reports(proposal) if proposal.ended or proposal.given_up else []
        return Proposal(dict(proposal.settings), proposal.value, proposal.ended, proposal.given_up, reports)

    def _reports(self, proposal: Proposed) -> list[tuple[int, float]]:
        """The steps and values that the search was given for a proposal."""
        objective, name = self._sweep.request.objective, proposal.configuration
        silent = getattr(type(self._search), "report", None) is Search.report
        if name is None or objective is None or silent:
            return []
        trails = [MetricFollower(self._sweep.run(name, seed), objective) for seed in self._sweep.request.seeds]
        for trail in trails:
            trail.follow()
        last = math.inf if proposal.last_step is None else proposal.last_step
        return [(step, value) for step, value in self._series([t for t in trails if t.values]) if step <= last]

    def _series(self, trails: Sequence[MetricFollower]) -> list[tuple[int, float]]:
        """The reports that runs of a configuration give: at each step a mean.

        Of runs that train one after another, the first decides at the steps that it reaches: the others come later.
        """
        if self._sweep.request.jobs > 1:
            return means(trails)
        series: list[tuple[int, float]] = []
        for count in range(1, len(trails) + 1):
            last = series[-1][0] if series else -1
            series += [(step, value) for step, value in means(trails[:count]) if step > last]
        return series

    def _mean(self, trials: Sequence[Trial]) -> float | None:
        values = [trial.value for trial in trials if trial.value is not None]
        if len(values) < len(trials):
            if self._search is None or any(proposal.value is not None for proposal in self._proposals):
                return None
            raise _without(next(trial for trial in trials if trial.value is None))
        return value if math.isfinite(value := mean(values)) else None


def _without(trial: Trial) -> RunError:
    known = known_values(RunDirectory(trial.run).info)
    return RunError(
        f"{trial.name} is completed and has no metric {trial.tag!r}.{nearest(trial.tag, known)} It has: "
        f"{', '.join(sorted(known))}. Start a new sweep with one of them as --objective."
    )


def start(search: Search, space: Space, request: Request, history: Sequence[Proposal]) -> None:
    """Starts a search.

    Args:
        search: The search.
        space: The settings that it may vary.
        request: Its budget, seed and direction.
        history: Its earlier proposals.

    Raises:
        GanlabError: The search does not accept this space or these options.
    """
    with plugin_code(selector_of(search), "start"):
        search.start(
            space, budget=request.budget, seed=request.search_seed, direction=request.direction, history=history
        )


def propose(search: Search) -> dict[str, str] | None:
    """One proposal of a search.

    Raises:
        ContractError: It is not a mapping from names to texts.
        PluginError: The search failed.
    """
    with plugin_code(selector_of(search), "propose"):
        proposed = search.propose()
    if proposed is None:
        return None
    if not isinstance(proposed, Mapping) or not all(isinstance(one, str) for pair in proposed.items() for one in pair):
        raise ContractError(
            f"{selector_of(search)} returned {proposed!r} from propose; it must be a mapping from the names of "
            "settings to their values as texts, or None when nothing is left to propose."
        )
    return dict(proposed)


def plan(search: Search, space: Space, request: Request, configurations: Configurations) -> list[Proposed]:
    """All proposals of a search that needs no objective, each with its configuration.

    Returns:
        The proposals; their configurations are then in `configurations`.

    Raises:
        GanlabError: The search does not accept this space or these options, or an experiment is invalid.
    """
    start(search, space, request, ())
    proposals: list[Proposed] = []
    while request.budget is None or len(proposals) < request.budget:
        settings = propose(search)
        if settings is None:
            break
        if len(proposals) == _MOST:
            raise GanlabError(f"{selector_of(search)} has more than {_MOST} configurations: limit them with --budget.")
        name = configurations.of(settings).name
        proposals.append(Proposed(settings, name))
    return proposals


def means(trails: Sequence[MetricFollower]) -> list[tuple[int, float]]:
    """The steps that all the trails have, in order, each with the mean of the values there."""
    if not trails:
        return []
    steps = sorted(set.intersection(*(set(trail.values) for trail in trails)))
    return [(step, mean([trail.values[step] for trail in trails])) for step in steps]
