import pytest
from ganlab_sweep.space import parse_seeds, parse_space

from ganlab import Choices, ConfigError, Range


def values(text):
    (choices,) = parse_space([text], []).values()
    return list(choices.values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b=[0.1, 1, 10]", ["0.1", "1", "10"]),
        ("a.b = [ 1e-3 ,2 , ]", ["1e-3", "2"]),
        ("a.b=[[1, 2], (3,), {'x': [4, 5]}]", ["[1, 2]", "(3,)", "{'x': [4, 5]}"]),
        ("a.b=['one, two', \"it's]\", 'don\\'t']", ["'one, two'", '"it\'s]"', "'don\\'t'"]),
        ("a.b=[@s/k.n(), %macro, None, -1]", ["@s/k.n()", "%macro", "None", "-1"]),
        ("a.b=[off, on]", ["off", "on"]),
    ],
)
def test_the_values_of_a_grid_are_texts_between_commas_at_the_top(text, expected):
    assert values(text) == expected


def test_a_list_setting_also_takes_a_single_part():
    found = values("experiment.constraints=[@r1(), [@r1(), @spectral_norm()], [], %mine]")
    assert found == ["[@r1()]", "[@r1(), @spectral_norm()]", "[]", "%mine"]
    assert values("experiment.loss=[@hinge(), @wasserstein()]") == ["@hinge()", "@wasserstein()"]


def test_settings_keep_the_order_of_the_command_line_and_ranges_follow():
    space = parse_space(["b=[1]", "a=[2]"], ["constraints.gradient_penalty.weight=0.1..10"])
    assert list(space) == ["b", "a", "constraints.gradient_penalty.weight"]
    assert space["b"] == Choices(("1",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("constraints.gradient_penalty.weight=0.1..10", Range(0.1, 10.0)),
        # An int as an end does not make a float's range whole.
        ("constraints.gradient_penalty.weight=1..10:log", Range(1.0, 10.0, log=True)),
        ("gradient_penalty.weight=1e-4..1e-1:log", Range(1e-4, 0.1, log=True)),
        ("a/optimizers.adam.learning_rate=1..2", Range(1.0, 2.0)),
        ("experiment.critic_steps=1..5", Range(1, 5, integer=True)),
        ("constraints.gradient_penalty.weight=-.5...5", Range(-0.5, 0.5)),
        # Without a type, the text decides.
        ("macro=1..5", Range(1, 5, integer=True)),
        ("macro=1.0..5", Range(1, 5)),
    ],
)
def test_a_range_is_of_the_type_of_its_setting(text, expected):
    (found,) = parse_space([], [text]).values()
    assert found == expected


@pytest.mark.parametrize(
    ("grids", "ranges", "message"),
    [
        (["a.b"], [], "--grid 'a.b': must have the form 'NAME=[VALUE, VALUE]'."),
        (["a.b=1"], [], "--grid 'a.b=1': must be a list of values, for example [0.1, 1, 10]."),
        (["a.b=[]"], [], "--grid 'a.b=[]': must be a list of values, for example [0.1, 1, 10]."),
        (["a.b=[1,,2]"], [], "--grid 'a.b=[1,,2]': must be a list of values, for example [0.1, 1, 10]."),
        (["a.b=[1], [2]"], [], "--grid 'a.b=[1], [2]': must be a list of values, for example [0.1, 1, 10]."),
        (["a.b=[(1, 2]"], [], "--grid 'a.b=[(1, 2]': a bracket or a quote is not closed."),
        (["a.b=[1, 2, 1]"], [], "--grid 'a.b=[1, 2, 1]': 1 appears twice."),
        (["a.b=[1, 2, 1.0]"], [], "--grid 'a.b=[1, 2, 1.0]': 1 and 1.0 are the same value."),
        (["a.b=[.5, 5e-1]"], [], "--grid 'a.b=[.5, 5e-1]': .5 and 5e-1 are the same value."),
        (["a.b=[1]", "a.b=[2]"], [], "--grid 'a.b=[2]': a.b is varied twice. Give all of its values at once."),
        (
            ["experiment.seed=[1, 2]"],
            [],
            "--grid 'experiment.seed=[1, 2]': seeds are not varied as a setting. Give them with --seeds.",
        ),
        ([], ["a.b=[1, 2]"], "must have the form 'NAME=LOW..HIGH' or 'NAME=LOW..HIGH:log', with two numbers."),
        ([], ["a.b=1..x"], "must have the form 'NAME=LOW..HIGH' or 'NAME=LOW..HIGH:log', with two numbers."),
        ([], ["a.b=2..1"], "--range 'a.b=2..1': the first number must be below the second, and both finite."),
        ([], ["a.b=0..inf"], "the first number must be below the second, and both finite."),
        ([], ["a.b=0..1:log"], "--range 'a.b=0..1:log': on a log scale both numbers must be above 0. Raise 0."),
        ([], ["experiment.steps=1..2.5"], "experiment.steps takes only whole numbers."),
        ([], ["constraints.gradient_penalty.wieght=1..2"], "has no parameter 'wieght'. Did you mean 'weight'?"),
    ],
)
def test_a_mistake_in_grid_or_range_is_one_sentence(grids, ranges, message):
    with pytest.raises(ConfigError) as raised:
        parse_space(grids, ranges)
    assert str(raised.value).endswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0..4", [0, 1, 2, 3, 4]), ("0,3,7", [0, 3, 7]), ("5", [5]), (" 1..2 , 9", [1, 2, 9]), ("3..3", [3])],
)
def test_seeds(text, expected):
    assert parse_seeds(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--seeds '': must be whole numbers, for example 0..4 or 0,3,7."),
        ("-1", "--seeds '-1': must be whole numbers, for example 0..4 or 0,3,7."),
        ("4..0", "--seeds '4..0': 4..0 is empty. Write 0..4."),
        ("0..30000000", "--seeds '0..30000000': there may be at most 100,000."),
        ("1,0..2", "--seeds '1,0..2': a seed appears twice, and would give the same run."),
        ("2147483648", "--seeds '2147483648': a seed must be below 2147483648."),
    ],
)
def test_invalid_seeds_are_refused(text, message):
    with pytest.raises(ConfigError) as raised:
        parse_seeds(text)
    assert str(raised.value) == message
