import collections
import math

import pytest

import ganlab
from ganlab import Choices, ConfigError, Proposal, Range

SPACE = {"a": Choices(("1", "2")), "b": Choices(("x", "y", "z"))}


def start(name, space, *, budget=None, seed=0, history=()):
    search = ganlab.component("searches", name)()
    search.start(space, budget=budget, seed=seed, direction="minimize", history=[Proposal(each) for each in history])
    return search


def proposals(search):
    return list(iter(search.propose, None))


def test_a_grid_has_every_combination_the_last_setting_changing_fastest():
    found = [(settings["a"], settings["b"]) for settings in proposals(start("grid", SPACE))]
    assert found == [("1", "x"), ("1", "y"), ("1", "z"), ("2", "x"), ("2", "y"), ("2", "z")]
    assert proposals(start("grid", {})) == [{}]


def test_a_resumed_grid_proposes_the_remaining_combinations():
    history = [{"a": "1", "b": "x"}, {"a": "1", "b": "z"}]
    rest = proposals(start("grid", SPACE, history=history))
    assert len(rest) == 4
    assert rest[0] == {"a": "1", "b": "y"}


def test_a_grid_is_all_or_nothing():
    with pytest.raises(ConfigError, match="all 6 combinations, and a budget of 5 does not allow that"):
        start("grid", SPACE, budget=5)
    assert len(proposals(start("grid", SPACE, budget=6))) == 6
    with pytest.raises(ConfigError, match=r"c takes any from 0 to 1\. List its values"):
        start("grid", {**SPACE, "c": Range(0, 1)})


def test_random_needs_a_budget():
    with pytest.raises(ConfigError, match="--budget 20"):
        start("random", SPACE)


def test_random_draws_depend_on_seed_and_number_also_after_a_resume():
    space = {**SPACE, "c": Range(0.0, 1.0)}
    whole = proposals(start("random", space, budget=8, seed=3))
    assert len(whole) == 8
    assert whole == proposals(start("random", space, budget=8, seed=3))
    assert whole[5:] == proposals(start("random", space, budget=8, seed=3, history=whole[:5]))
    assert whole != proposals(start("random", space, budget=8, seed=4))


def test_random_proposes_nothing_twice_and_ends_when_all_is_proposed():
    found = proposals(start("random", {**SPACE, "n": Range(1, 2, integer=True)}, budget=100))
    assert len(found) == len({tuple(settings.items()) for settings in found}) == 12


def drawn(axis, count):
    """Many draws of one setting, beside another one that makes proposals distinct."""
    search = start("random", {"x": axis, "apart": Range(0.0, 1.0)}, budget=count)
    return [settings["x"] for settings in proposals(search)]


@pytest.mark.parametrize(("axis", "values"), [(Choices(tuple("pqrs")), "pqrs"), (Range(1, 4, integer=True), "1234")])
def test_random_draws_values_and_whole_numbers_evenly(axis, values):
    counts = collections.Counter(drawn(axis, 800))
    assert set(counts) == set(values)
    # 200 of each are expected, with a standard deviation of 12.2: five of them either way.
    assert all(139 <= count <= 261 for count in counts.values())


@pytest.mark.parametrize(
    ("axis", "scale"),
    [(Range(10.0, 30.0), lambda x: (x - 10) / 20), (Range(1e-4, 1.0, log=True), lambda x: math.log10(x) / 4 + 1)],
)
def test_random_draws_evenly_from_a_range_or_from_its_logarithms(axis, scale):
    shares = [scale(float(text)) for text in drawn(axis, 400)]
    assert all(0 <= share <= 1 for share in shares)
    # Uniform: mean 1/2 with a standard deviation of sqrt(1/12/400) = 0.0144; a quarter below 1/4, of 0.0217.
    assert abs(sum(shares) / 400 - 0.5) < 5 * 0.0144
    assert abs(sum(share < 0.25 for share in shares) / 400 - 0.25) < 5 * 0.0217


def test_random_draws_whole_numbers_by_factors():
    counts = collections.Counter(int(text) for text in drawn(Range(1, 64, log=True, integer=True), 400))
    assert min(counts) == 1
    assert max(counts) <= 64
    # From 1/2 to 64.5 there are ln(129) = 4.86; up to 8.5, ln(17) of them: 58.3%, with a standard deviation of 2.5%.
    assert (
        abs(sum(count for number, count in counts.items() if number <= 8) / 400 - math.log(17) / math.log(129)) < 0.125
    )


def test_random_writes_numbers_of_six_digits_at_most():
    texts = drawn(Range(1e-5, 1e-2, log=True), 50)
    assert all(float(text) == float(f"{float(text):.6g}") for text in texts)
