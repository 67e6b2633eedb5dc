"""The search by Optuna: it learns, is reproducible, is restored, and gives up bad configurations."""

import itertools
import logging
import math
import sys

import pytest

import ganlab

pytest.importorskip("optuna", reason="Optuna is of the extra [sweep]")

SPACE = {
    "rate": ganlab.Range(1e-5, 1.0, log=True),
    "width": ganlab.Range(1, 64, integer=True),
    "method": ganlab.Choices(("'a'", "'b'", "'c'")),
}


def bowl(settings):
    """Smallest, 0, at rate = 0.001, width = 20 and method b."""
    rate, width, method = float(settings["rate"]), int(settings["width"]), settings["method"]
    return (math.log10(rate) + 3) ** 2 + ((width - 20) / 10) ** 2 + {"'a'": 2, "'b'": 0, "'c'": 1}[method]


def begun(name="optuna", *, seed=0, budget=40, space=SPACE, direction="minimize", history=(), **arguments):
    search = ganlab.component("searches", name)(**arguments)
    search.start(space, budget=budget, seed=seed, direction=direction, history=history)
    return search


def proposals(search, objective, first=0):
    """All remaining proposals, each with its objective, one trial at a time."""
    found = []
    for number in itertools.count(first):
        settings = search.propose()
        if settings is None:
            return found
        found.append(ganlab.Proposal(dict(settings), objective(settings), ended=True))
        search.finish(number, found[-1].value)


def test_it_finds_the_minimum_better_than_random_draws_on_the_same_budget():
    best = {
        name: [min(p.value for p in proposals(begun(name, seed=seed), bowl)) for seed in range(5)]
        for name in ("optuna", "random")
    }
    assert all(learned < drawn for learned, drawn in zip(best["optuna"], best["random"], strict=True)), best
    assert max(best["optuna"]) < 0.2


def test_maximize_finds_large_objectives():
    tried = proposals(begun(direction="maximize"), lambda settings: -bowl(settings))
    assert max(p.value for p in tried) > -0.2


def test_proposals_are_of_the_space_and_as_experiment_files_write_them():
    tried = proposals(begun(), bowl)
    assert len(tried) == 40
    assert all(set(p.settings) == set(SPACE) for p in tried)
    rates = [p.settings["rate"] for p in tried]
    assert all(1e-5 <= float(rate) <= 1 and rate == repr(float(f"{float(rate):.6g}")) for rate in rates)
    assert all(p.settings["width"] in map(str, range(1, 65)) for p in tried)
    assert {p.settings["method"] for p in tried} == {"'a'", "'b'", "'c'"}


def test_one_seed_gives_one_sequence_and_another_another():
    first, again, other = (proposals(begun(seed=seed, budget=15), bowl) for seed in (3, 3, 4))
    assert first == again
    assert first[0] != other[0]


@pytest.mark.parametrize("ended", [4, 13])
def test_resume_after_a_kill_proposes_the_same_configurations(ended):
    whole = proposals(begun(budget=16), bowl)
    # Killed while a configuration was trained: it is resumed, and ends in the new process.
    under_way = ganlab.Proposal(whole[ended].settings)
    search = begun(budget=16, history=[*whole[:ended], under_way])
    search.finish(ended, whole[ended].value)
    assert proposals(search, bowl, first=ended + 1) == whole[ended + 1 :]


def test_every_combination_is_proposed_once():
    space = {"a": ganlab.Choices(("1", "2", "2")), "b": ganlab.Range(0, 4, integer=True)}
    tried = proposals(begun(space=space, startup=2), lambda settings: float(settings["b"]))
    expected = [{"a": a, "b": str(b)} for a in ("1", "2") for b in range(5)]
    assert sorted(map(str, (p.settings for p in tried))) == sorted(map(str, expected))


def test_configurations_in_progress_are_not_proposed_again():
    search = begun(space={"a": ganlab.Choices(("1", "2", "3"))}, startup=0)
    assert sorted(search.propose()["a"] for _ in range(3)) == ["1", "2", "3"]
    assert search.propose() is None


def test_failed_configurations_are_ignored():
    failing = proposals(begun(budget=15), lambda settings: None if settings["method"] == "'a'" else bowl(settings))
    assert len(failing) == 15
    assert len(proposals(begun(budget=15), lambda settings: math.nan)) == 15


STEPS = range(10, 110, 10)


def trained(search, number, value):
    """Reports a configuration whose objective is always this; the step at which it was given up, or None."""
    for step in STEPS:
        if search.report(number, step, value):
            search.finish(number, value)
            return step
    search.finish(number, value)
    return None


@pytest.mark.parametrize(
    ("arguments", "ends"),
    [
        ({"pruner": "median", "pruner_startup": 3}, [None, None, None, 10, None]),
        ({"pruner": "median", "pruner_startup": 4}, [None, None, None, None, None]),
        ({"pruner": "median", "pruner_startup": 3, "warmup_steps": 35}, [None, None, None, 40, None]),
        ({"pruner": "none"}, [None] * 5),
    ],
)
def test_the_median_pruner_gives_up_the_worse_half(arguments, ends):
    search = begun(**arguments)
    values = [1.0, 2.0, 3.0, 9.0, 1.5]
    for number in range(5):
        search.propose()
        assert trained(search, number, values[number]) == ends[number]


def test_maximize_gives_up_small_objectives():
    search = begun(pruner="median", pruner_startup=2, direction="maximize")
    ends = []
    for number, value in enumerate([5.0, 6.0, 1.0, 7.0]):
        search.propose()
        ends.append(trained(search, number, value))
    assert ends == [None, None, 10, None]


def test_a_restored_search_prunes_by_earlier_reports():
    reports = [(step, 1.0) for step in STEPS]
    settings = [{"rate": str(0.1 / n), "width": str(n), "method": "'a'"} for n in (1, 2, 3, 4)]
    history = [ganlab.Proposal(s, 1.0, ended=True, reports=reports) for s in settings[:2]]
    history.append(ganlab.Proposal(settings[2], 9.0, ended=True, given_up=True, reports=[(10, 9.0)]))
    history.append(ganlab.Proposal(settings[3], reports=[(10, 0.5)]))
    search = begun(pruner="median", pruner_startup=2, history=history)
    assert not search.report(3, 20, 0.5)
    search.propose()
    assert search.report(4, 10, 3.0)


@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_a_restored_search_prunes_and_proposes_as_one_that_was_not_stopped(pruner):
    def tried(restarted_at):
        """The proposals, and where each was given up; the search is a new one after that many."""
        options = {"pruner": pruner, "startup": 4, "pruner_startup": 2, "budget": 24}
        search, history = begun(**options), []
        for number in range(24):
            if number == restarted_at:
                search = begun(**options, history=history)
            settings = dict(search.propose())
            end = trained(search, number, bowl(settings))
            reports = [(step, bowl(settings)) for step in STEPS if end is None or step <= end]
            history.append(ganlab.Proposal(settings, bowl(settings), True, end is not None, reports))
        return [(one.settings, one.given_up, len(one.reports)) for one in history]

    undisturbed = tried(None)
    assert 3 < sum(given_up for _, given_up, _ in undisturbed) < 24
    assert tried(12) == undisturbed


def test_hyperband_gives_up_most_of_many_bad_ones_and_never_the_best():
    search = begun(pruner="hyperband", budget=40)
    ends = []
    for number in range(40):
        search.propose()
        ends.append(trained(search, number, 0.0 if number == 39 else 1.0 + number / 100))
    assert sum(end is not None for end in ends) > 10
    assert ends[0] is None
    assert ends[39] is None


def test_optuna_prints_nothing(capfd, recwarn):
    search = begun(pruner="hyperband", budget=3)
    proposals(search, bowl)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list
    assert logging.getLogger("optuna").level != logging.ERROR  # other code may want its own messages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": None}, "searches.optuna needs a budget"),
        ({"startup": -1}, "searches.optuna.startup = -1 must be a whole number of at least 0"),
        ({"pruner": "mean"}, "searches.optuna.pruner = 'mean' must be one of 'none', 'median', 'hyperband'"),
        ({"space": {"x": ganlab.Range(0.0, 1.0, log=True)}}, "searches.optuna cannot search x from 0.0 to 1.0"),
        ({"space": {"x": ganlab.Range(2.0, 1.0)}}, "searches.optuna cannot search x from 2.0 to 1.0"),
    ],
)
def test_invalid_values_are_refused(arguments, message):
    with pytest.raises(ganlab.ConfigError, match=message):
        begun(**arguments)


def test_without_optuna_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ganlab.MissingDependencyError, match=r"pip install -e '\.\[sweep\]'"):
        begun()
