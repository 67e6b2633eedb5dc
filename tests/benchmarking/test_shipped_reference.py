"""The reference results that ganlab ships: of the suite as it is, and the tables of docs/leaderboard.md."""

from pathlib import Path

import leaderboard
import pytest
from ganlab_benchmark.against import read_reference, reference_files
from ganlab_benchmark.markdown import markdown
from ganlab_benchmark.plan import budget, fingerprint
from ganlab_benchmark.suite import find_suite, read_suite
from small_suites import results

PAGE = Path(__file__).parents[2] / "docs" / "leaderboard.md"


@pytest.fixture(scope="module")
def shipped():
    """The shipped results of the quick suite."""
    (path,) = reference_files([], "quick")
    return read_reference(path)


def test_the_reference_was_made_with_the_shipped_suite_and_budget(shipped):
    suite = read_suite(find_suite("quick"))
    assert shipped["suite"]["hash"] == fingerprint(suite)
    assert shipped["budget"] == budget(suite)
    assert shipped["complete"]


def test_the_leaderboard_has_the_tables_of_the_reference(shipped):
    title, how, rest = PAGE.read_text(encoding="utf-8").split("\n\n", 2)
    assert "ganlab benchmark --suite quick" in how
    assert f"{title}\n\n{rest}" == markdown(shipped)


def test_a_reference_has_figures_but_no_single_trials():
    found = results()
    found["constraints"]["flat"]["tasks"]["w1"]["trials"] = [{"seed": 0}]
    kept = leaderboard.without_trials(found)
    assert "trials" not in kept["constraints"]["flat"]["tasks"]["w1"]
    assert (
        kept["constraints"]["flat"]["tasks"]["w1"]["figures"] == found["constraints"]["flat"]["tasks"]["w1"]["figures"]
    )
