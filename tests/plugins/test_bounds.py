"""Bounds in annotations: which values they refuse, with which words, and that plugins without them work unchanged."""

import math
from types import SimpleNamespace
from typing import Annotated, Literal

import numpy as np
import pytest
from click.testing import CliRunner

from ganlab import bounds
from ganlab.bounds import Ge, Gt, Le, Lt
from ganlab.cli import cli
from ganlab.errors import ConfigError
from ganlab.plugins.recipes import Factory

NONNEGATIVE = Annotated[float, Ge(0)]
COUNT = Annotated[int, Ge(1), Lt(2**31)]
NaN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("hint", "valid", "invalid", "rule"),
    [
        (NONNEGATIVE, [0, 0.0, 1e300, np.float32(2)], [-1e-300, NaN, INF, -INF, True, "1"], "at least 0 and finite"),
        (Annotated[float, Gt(0)], [1e-300, 1], [0, -0.0, NaN, INF], "above 0 and finite"),
        (Annotated[float, Ge(0), Lt(1)], [0, 0.999], [1, 1.0, -0.1, NaN], "at least 0 and below 1"),
        (Annotated[float, Ge(1), Le(INF)], [1, INF], [0.5, NaN, -INF], "at least 1"),
        (Annotated[float, Lt(INF)], [-1e300, 5], [NaN, INF, -INF], "finite"),
        (
            COUNT,
            [1, 2**31 - 1, np.int64(3)],
            [0, 2**31, 1.0, True, "1"],
            "a whole number of at least 1 and below 2**31",
        ),
        (COUNT | None, [None, 1], [0, 0.5, True], "a whole number of at least 1 and below 2**31, or None"),
        (Annotated[float | None, Gt(0)], [None, 1], [0], "above 0 and finite, or None"),
        (NONNEGATIVE | Literal["auto"], ["auto", 0.5], [-1.0], "at least 0 and finite, or 'auto'"),
        (float, [-1.0, INF, "text"], [], ""),
    ],
)
def test_values_out_of_bounds_are_refused_in_words(hint, valid, invalid, rule):
    assert bounds.rule(hint) == rule
    assert [value for value in valid if bounds.violation(value, hint)] == []
    assert [bounds.violation(value, hint) for value in invalid] == [f"must be {rule}."] * len(invalid)


def test_subclasses_of_numbers_are_numbers():
    class Scheduled(float):
        pass

    assert bounds.violation(Scheduled(0.5), NONNEGATIVE) == ""
    assert bounds.violation(Scheduled(-0.5), NONNEGATIVE) == "must be at least 0 and finite."


def test_attributes_of_other_classes_count_as_annotated_types_has_them():
    interval = SimpleNamespace(gt=None, ge=0, lt=1, le=None)
    hint = Annotated[float, interval, "a word that means something else"]
    assert bounds.rule(hint) == "at least 0 and below 1"
    assert [bool(bounds.violation(value, hint)) for value in (-1, 0, 1)] == [True, False, True]


PLUGIN = '''
from typing import Annotated

import ganlab
from ganlab.bounds import Ge


class Bounded(ganlab.Constraint):
    def __init__(self, *, weight: Annotated[float, Ge(0)] = 1.0, every: "Annotated[int, Ge(1)] | None" = None):
        """Bounded."""


class Unbounded(ganlab.Constraint):
    def __init__(self, *, weight: float = 1.0, anything=None):
        """Unbounded."""


@ganlab.hookimpl
def ganlab_constraints():
    return {"bounded": Bounded, "unbounded": Unbounded}
'''


@pytest.fixture
def dry_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ganlab_plugins.py").write_text(PLUGIN)

    def run(*lines):
        (tmp_path / "e.gin").write_text("\n".join(["include 'base/wgan_gp.gin'", *lines]) + "\n")
        return CliRunner().invoke(cli, ["config", "show", "--gin", "e.gin"])

    return run


USED = "experiment.constraints = [@constraints.bounded(), @constraints.unbounded()]"
QUICK = "include 'quickstart.gin'"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["constraints.bounded.weight = -1"],
            "e.gin:4: constraints.bounded.weight = -1 must be at least 0 and finite.",
        ),
        (
            ["W = -2.5", "constraints.bounded.weight = %W"],
            "e.gin:5: constraints.bounded.weight = %W (that is -2.5) must be at least 0 and finite.",
        ),
        (
            ["constraints.bounded.every = 0"],
            "e.gin:4: constraints.bounded.every = 0 must be a whole number of at least 1, or None.",
        ),
    ],
)
def test_mistake_in_a_file_names_setting_value_rule_file_and_line(dry_run, lines, message):
    done = dry_run(QUICK, USED, *lines)
    assert done.exit_code == 2
    assert message in done.stderr


def test_values_within_bounds_and_plugins_without_them_pass(dry_run):
    lines = [
        "constraints.bounded.weight = 0",
        "constraints.unbounded.weight = -1",
        "constraints.unbounded.anything = 'x'",
    ]
    done = dry_run(QUICK, USED, *lines)
    assert done.exit_code == 0, done.stderr
    assert "constraints.unbounded.weight = -1" in done.stdout


def test_factory_refuses_values_out_of_bounds_from_python():
    def make(*, weight: NONNEGATIVE = -1.0, free: float = 0.0) -> tuple[float, float]:
        return weight, free

    factory = Factory("constraints", "mine", make)
    assert factory(weight=0, free=-3.0) == (0, -3.0)
    assert factory(weight=-1.0)[0] == -1.0  # the default is valid whatever the annotation
    with pytest.raises(ConfigError, match=r"^constraints\.mine\.weight = nan must be at least 0 and finite\.$"):
        factory(weight=NaN)
