"""The page of a benchmark: whole, offline, and safe whatever names it holds."""

import html
import html.parser
import json
import re
import shutil
import subprocess

import pytest
from ganlab_benchmark.report import report
from small_suites import outcome, results

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


def tags_of(page):
    """The names of all elements, and every address that the page names."""
    tags, addresses = set(), []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            tags.add(tag)
            addresses.extend(value for name, value in attributes if name in ("href", "src", "srcset", "data", "action"))

    Reader().feed(page)
    return tags, addresses


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
    reference = {"file": "quick.json", "date": "2026-08-01", "warnings": ["Other versions."], "versions": {}}
    found["references"] = [{**reference, "constraints": {"flat": results()["constraints"]["flat"]}}]
    return found


def test_the_page_has_every_constraint_figure_and_reason():
    page = report(results())
    for said in (
        "Tiny",
        "steep",
        "flat",
        "0.75 ± 0.05",
        "Of gradients. Higher is better.",
        "needs a critic with noise",
        "0123",
    ):
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
    tags, addresses = tags_of(page)
    assert "script" not in tags
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "&lt;script" in page
    assert not re.findall(r"url\(|@import", page)
    assert "default-src 'none'" in page


def test_every_opened_element_is_closed_and_ids_are_unique():
    page = report(many())
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    for tag in ("section", "table", "tr", "td", "svg", "ul", "dl"):
        assert page.count(f"<{tag}") == page.count(f"</{tag}>")


_FRAME = """<!DOCTYPE html><body><iframe srcdoc="{page}" style="width: {width}px; height: 800px; border: 0"></iframe>
<script>
addEventListener("load", () => {{
  const seen = frames[0].document, root = seen.documentElement, wide = [];
  for (const element of seen.body.querySelectorAll("*")) {{
    const box = element.getBoundingClientRect();
    const beyond = box.width && box.right > root.clientWidth + 0.5;
    if (beyond && !element.closest(".table")) wide.push(element.outerHTML.slice(0, 90));
  }}
  const result = {{
    overflow: root.scrollWidth - root.clientWidth, wide,
    requests: frames[0].performance.getEntriesByType("resource").length,
  }};
  document.body.innerHTML = "<pre id=result></pre>";
  document.getElementById("result").textContent = JSON.stringify(result);
}});
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_fits_a_phone_and_a_screen(tmp_path, width):
    (tmp_path / "frame.html").write_text(_FRAME.format(page=html.escape(report(many())), width=width), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    command = [CHROMIUM, *flags, (tmp_path / "frame.html").as_uri()]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    seen = json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', dumped, re.DOTALL)[1]))
    assert seen == {"overflow": 0, "wide": [], "requests": 0}
