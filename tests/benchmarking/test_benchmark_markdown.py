"""The tables of a benchmark in Markdown: complete, in order, and safe whatever names they hold."""

import json

from ganlab_benchmark.markdown import escaped, markdown
from small_suites import outcome, reference, results


def test_tables_have_every_constraint_figure_and_reason_the_best_first():
    page = markdown(results())
    rows = [row for row in page.splitlines() if row.startswith("| 1 |") or row.startswith("| 2 |")]
    assert rows == ["| 1 | `flat` | 0.75 ± 0.05 |", "| 2 | `steep` | 0.5 ± 0.1 |"]
    assert "- cosine: Of gradients. Higher is better." in page
    assert "- `odd`: all tasks: refused. needs a critic with noise" in page
    assert "| `steep` | 1.5 | w1: constraints.steep.weight = 10 |" in page
    assert "not ended" not in page
    assert "not ended" in markdown(results(complete=False))


def test_references_are_marked_and_warnings_printed():
    page = markdown(results(references=[reference()]))
    assert "`flat` (reference)" in page
    assert "Other versions." in page


def test_tables_have_as_many_cells_in_every_row_whatever_names_hold():
    evil = "a|b\n\n# `x` <script>alert(1)</script> [y](z) \u202e"
    found = results()
    hostile = json.loads(json.dumps(found["constraints"]["flat"]))
    hostile["settings"] = {evil: {evil: evil}}
    hostile["tasks"]["w1"] = outcome(0.9, status="partial", reason=evil)
    found["constraints"][evil] = hostile
    found["suite"]["title"] = found["suite"]["about"] = evil
    page = markdown(found)
    assert "<script" not in page.replace("\\<script", "")
    assert "\u202e" not in page
    assert [row for row in page.splitlines() if row.startswith("# ")] == [page.splitlines()[0]]
    for table in page.split("\n\n"):
        if table.startswith("|"):
            assert len({row.replace("\\|", "").count("|") for row in table.splitlines()}) == 1


def test_markup_is_escaped_once():
    assert escaped("a_b|c*d") == "a\\_b\\|c\\*d"
