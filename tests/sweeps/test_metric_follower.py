import math
import shutil
from types import SimpleNamespace

import pytest
from ganlab_benchmark.statistics import mean_of
from ganlab_sweep.metric_follower import last_value
from ganlab_sweep.search_driver import means
from synthetic import row

from ganlab.runs import create_run


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("critic/loss", 3.0), ("evaluation/modes/count", 8.0), ("diagnostics/d/x", 5.0), ("constraints/c/bound", 7.0)],
)
def test_the_last_value_comes_from_run_json_or_else_from_the_last_row(tmp_path, tag, expected):
    figures = {"evaluation": {"modes/count": 8.0}, "diagnostics": {"d/x": 5.0}}
    create_run(tmp_path / "r", config="", operative="", info={"metrics": {"critic/loss": 3.0}, **figures})
    rows = [row(1, **{"constraints/c/bound": 6.0}), row(2, **{"constraints/c/bound": 7.0}), row(3, x=1.0)]
    (tmp_path / "r" / "metrics.jsonl").write_bytes(b"".join(rows))
    assert last_value(tmp_path / "r", tag) == expected
    assert last_value(tmp_path / "r", "critic/lossy") is None
    shutil.rmtree(tmp_path / "r")
    assert last_value(tmp_path / "r", tag) is None


@pytest.mark.parametrize(
    "values", [(1e308, 1e308), (-1e308, -1.7e308), (math.inf, -math.inf), (math.nan, 1.0), (1e308, 1e308, -1e308)]
)
def test_huge_values_of_two_seeds_are_a_mean_that_is_finite_or_not(values):
    trails = [SimpleNamespace(values={1: value, 2: 0.5}) for value in values]
    (_, huge), (_, small) = means(trails)
    assert small == 0.5
    assert math.isnan(huge) or abs(huge) < 1e308
    assert mean_of([values] if all(map(math.isfinite, values)) else []) is None
