"""The page of a benchmark: whole, offline, and safe whatever names it holds."""

import json
import re

import pytest
from ganlab_benchmark.report import report
from in_chromium import look, needs_chromium
from reports import read
from small_suites import outcome, reference, results


def many(count=12):
    """Results with long names, several tasks, a reference and a warning."""
    found = results()
    columns = {f"figure {n}": {"label": f"figure {n}", "about": "A figure.", "better": "lower"} for n in range(5)}
    found["tasks"]["depth"] = {"kind": "training", "title": "Depth", "about": "Deep critics.", "columns": columns}
    for number in range(count):
        name = f"a_constraint_with_a_rather_long_name_{number}"
        figures = {
            key: outcome(1.0 + number * n, number * n, 2.0 + number * n)["figures"]["cosine"]
            for n, key in enumerate(columns)
        }
        tasks = {"w1": outcome(0.1 * number), "depth": {"status": "completed", "reason": "", "figures": figures}}
        settings = {"w1": {"constraints.a_constraint_with_a_rather_long_name.weight_of_the_penalty": "0.0001"}}
        found["constraints"][name] = {**found["constraints"]["flat"], "settings": settings, "tasks": tasks}
    return {**found, "references": [reference()]}


def test_the_page_has_every_constraint_figure_and_reason():
    page = report(results())
    for said in ("Tiny", "steep", "flat", "0.75 ± 0.05", "Of gradients. Higher is better.", "needs a critic", "0123"):
        assert said in page
    assert page.index(">flat<") < page.index(">steep<")  # the best first
    assert "This benchmark has not ended" not in page
    assert "This benchmark has not ended" in report(results(complete=False))


def test_references_are_marked_and_warnings_printed():
    page = report(many())
    assert page.count(">reference<") >= 3
    assert "Other versions." in page


def test_names_are_escaped_and_nothing_outside_is_named():
    evil = '<script src="https://evil.example/x.js">alert(1)</script>\u202e\x1b[31m"\'&'
    found = results()
    hostile = json.loads(json.dumps(found["constraints"]["flat"]))
    hostile["origin"] = evil
    hostile["settings"] = {evil: {evil: evil}}
    hostile["tasks"]["w1"]["reason"] = evil
    found["constraints"][evil] = hostile
    found["suite"]["title"] = found["suite"]["about"] = evil
    found["references"] = [
        {"file": evil, "date": evil, "warnings": [evil], "versions": {}, "constraints": {evil: hostile}}
    ]
    page = report(found)
    elements = read(page).all()
    assert "script" not in {element.tag for element in elements}
    named = ("href", "src", "srcset", "data", "action")
    addresses = [element.attributes[name] for element in elements for name in named if name in element.attributes]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "&lt;script" in page
    assert not re.findall(r"url\(|@import", page)
    assert "default-src 'none'" in page


def test_every_opened_element_is_closed_and_ids_are_unique():
    elements = read(report(many())).all()
    ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    assert {element.attributes["href"] for element in elements if "href" in element.attributes} <= {
        f"#{i}" for i in ids
    }


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_fits_a_phone_and_a_screen(tmp_path, width):
    seen = look(tmp_path, report(many()), width=width, scrolled=".table")
    assert (seen["overflow"], seen["wide"], seen["requests"]) == (0, [], [])
