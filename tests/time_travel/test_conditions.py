"""Conditions on metrics: what is read, and what is refused."""

import math

import pytest
from ganlab_time_travel.conditions import parse_condition

import ganlab


@pytest.mark.parametrize(
    ("text", "metric", "how", "number"),
    [
        ("constraints/gradient_penalty/slope > 5", "constraints/gradient_penalty/slope", ">", 5.0),
        ("a>=-1e-3", "a", ">=", -1e-3),
        ("  a  !=  0 ", "a", "!=", 0.0),
        ("a < inf", "a", "<", math.inf),
    ],
)
def test_comparisons_are_read(text, metric, how, number):
    found = parse_condition(text)
    assert (found.metric, found.how, found.number) == (metric, how, number)


@pytest.mark.parametrize("text", ["critic/loss nonfinite", "critic/loss is nonfinite"])
def test_nonfinite_holds_for_what_is_no_number(text):
    found = parse_condition(text)
    assert [found.holds(value) for value in (1.0, math.nan, math.inf)] == [False, True, True]


def test_a_value_that_is_no_number_is_neither_more_nor_less():
    assert not parse_condition("a > 1").holds(math.nan)
    assert not parse_condition("a < 1").holds(math.nan)


@pytest.mark.parametrize("text", ["critic/loss > nan", "critic/loss==NaN", "critic/loss != -nan"])
def test_comparisons_with_nan_are_refused(text):
    with pytest.raises(ganlab.ConfigError, match=r"no value compares with nan\. Write 'critic/loss nonfinite'"):
        parse_condition(text)


@pytest.mark.parametrize(
    "text", ["", "a", "a >", "> 5", "a > b", "a = 5", "__import__('os').system('true')", "a > 1 or 1"]
)
def test_anything_else_is_refused(text):
    with pytest.raises(ganlab.ConfigError, match="is not a condition"):
        parse_condition(text)
