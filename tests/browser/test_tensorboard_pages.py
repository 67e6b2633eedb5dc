"""TensorBoard in a headless Chromium: three runs under different constraints, on two replicas each.

The pictures of README.md are these pages after longer runs:

    GANLAB_PICTURES=docs/pictures pytest -m slow tests/browser
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ganlab

PICTURES = os.environ.get("GANLAB_PICTURES")
STEPS = 2000 if PICTURES else 60
FORKING = Path(__file__).parents[1] / "forking.py"
CONSTRAINTS = ("gradient_penalty", "spectral_norm", "weight_clipping")
NAMES = [f"{constraint} s0" for constraint in CONSTRAINTS]

pytestmark = pytest.mark.slow

# TensorBoard's pages are shadow trees in shadow trees, which no CSS selector goes through.
ALL = """
const [selector, root] = arguments, found = [];
const walk = tree => {
  for (const element of tree.querySelectorAll('*')) {
    if (element.matches(selector)) found.push(element);
    if (element.shadowRoot) walk(element.shadowRoot);
  }
};
for (const tree of root ? [root, root.shadowRoot] : [document]) if (tree) walk(tree);
"""


@pytest.fixture(scope="module")
def runs(browser, tmp_path_factory):
    """The runs by name. After `browser`, so that nothing is trained without one."""
    folder = tmp_path_factory.mktemp("browser") / "runs"
    commands = []
    for constraint in CONSTRAINTS:
        params = {
            "experiment.constraints": f"[@constraints.{constraint}()]",
            "experiment.steps": STEPS,
            "experiment.evaluate_every": STEPS // 2,
            "experiment.evaluators": "[@evaluators.sliced_wasserstein()]",
            "experiment.diagnostics": "[@diagnostics.slopes()]",
        }
        arguments = [f"--param={name}={value}" for name, value in params.items()]
        commands.append(["ganlab", "run", "--gin", "quickstart", *arguments, "--runs", str(folder)])
    done = subprocess.run([sys.executable, FORKING, json.dumps(commands)], check=True, capture_output=True, text=True)
    assert all(code == 0 for code, _ in json.loads(done.stdout)), done.stderr
    found = [ganlab.Run(path) for path in (folder / "quickstart").iterdir()]
    return folder, {f"{run.info['settings']['constraints']} s{run.info['seed']}": run for run in found}


@pytest.fixture(scope="module")
def address(serve, runs):
    return serve(runs[0])


@pytest.fixture
def page(browser, address, until, keep):
    """Opens a tab: `page("hparams", height=700)` gives a `Page`."""

    def show(tab, *, height, width=1600):
        browser.set_window_size(width, height)
        browser.get("about:blank")  # another part of the same address would not be a new page
        browser.get(f"{address}#{tab}")
        return Page(browser, until, keep)

    return show


class Page:
    """A tab of TensorBoard."""

    def __init__(self, browser, until, keep):
        self.browser, self.until, self.keep = browser, until, lambda name: keep(f"tensorboard-{name}")

    def all(self, selector, within=None):
        """The elements of a selector, in every shadow tree, in order."""
        return self.browser.execute_script(f"{ALL} return found;", selector, within)

    def of_all(self, selector, expression, within=None):
        """The value of a JavaScript expression for each element `e` of a selector."""
        return self.browser.execute_script(f"{ALL} return found.map(e => {expression});", selector, within)


def visible_rows(page):
    """The cells of the HParams table that are on the page: each row's texts by the title above them."""
    box = "(r => [Math.round(r.x), Math.round(r.y + r.height / 2), r.width, e.innerText.trim()])"
    cells = page.of_all("vaadin-grid-cell-content", f"{box}(e.getBoundingClientRect())")
    shown = [(x, y, text) for x, y, width, text in cells if width and text]
    top = min((y for _, y, _ in shown), default=0)
    titles = {x: text for x, y, text in shown if abs(y - top) < 5}
    heights = sorted({y for x, y, _ in shown if y - top >= 5})
    return [{titles[x]: text for x, y, text in shown if y == height and x in titles} for height in heights]


def test_hparams_lists_every_run_with_its_settings_and_results(page, runs):
    tab = page("hparams", height=560)
    rows = tab.until(lambda: len(visible_rows(tab)) == 3 and visible_rows(tab), "table of three rows")
    tab.keep("hparams")
    assert [row["Trial ID"] for row in rows] == NAMES
    assert [row["constraints"] for row in rows] == list(CONSTRAINTS)
    for row in rows:
        info = runs[1][row["Trial ID"]].info
        for title in ("critic/wasserstein", "critic/loss"):
            assert float(row[title]) == pytest.approx(info["metrics"][title], rel=1e-4)
        figure = "sliced_wasserstein/distance"
        assert float(row[f"evaluation/{figure}"]) == pytest.approx(info["evaluation"][figure], rel=1e-4)
    # No column for what all runs share, nor for the curves of replicas.
    assert not [
        title for title in rows[0] if title.startswith(("replica", "experiment", "architecture", "diagnostics"))
    ]


def test_custom_scalars_draw_replicas_and_reduced_in_one_chart(page):
    tab = page("custom_scalars", height=1360)
    categories = ["losses", "Wasserstein estimate", "penalty", "slopes", "constraints", "evaluation", "diagnostics"]
    categories.append("replicas")
    heading = "tf-category-paginated-view"
    tab.until(lambda: tab.of_all(heading, "e.category.name") == categories, "categories of the layout")
    views = dict(zip(categories, tab.all(heading), strict=True))

    def chart(category, title):
        cards = "tf-custom-scalar-multi-line-chart-card"
        return tab.all(cards, views[category])[tab.of_all(cards, "e.title", views[category]).index(title)]

    def legend(card):
        return sorted(tab.of_all(".match-list-entry", "e.lastChild.textContent.trim()", card))

    def lines(card):
        return set(tab.of_all("path.line", "e.getAttribute('d')", card)) - {None, ""}

    tab.until(lambda: tab.all("path.line", views["Wasserstein estimate"]), "lines")
    compared = chart("Wasserstein estimate", "critic/wasserstein")
    tab.until(lambda: legend(compared) == [f"critic/wasserstein ({name})" for name in NAMES], "a line for each run")
    tab.keep("custom-scalars")

    tab.browser.execute_script("arguments[0].scrollIntoView()", views["replicas"])
    for title in ("critic/wasserstein", "generator/loss"):
        card = chart("replicas", title)
        wanted = [f"{curve}{title} ({name})" for curve in ("", "replica/0/", "replica/1/") for name in NAMES]
        tab.until(lambda card=card, wanted=wanted: legend(card) == sorted(wanted), f"nine lines of {title}")
        # As measured and smoothed; no two of the nine are the same.
        tab.until(lambda card=card: len(lines(card)) == 18, f"nine lines of {title} drawn")
    for button in ("paper-icon-button[icon=fullscreen]", ".toggle-matches-button"):
        tab.browser.execute_script("arguments[0].click()", tab.all(button, card)[0])
    # The legend would scroll; a picture cannot.
    tab.browser.execute_script("arguments[0].style.maxHeight = 'none'", tab.all("#matches-list", card)[0])
    tab.browser.execute_script("arguments[0].scrollIntoView()", card)
    tab.browser.set_window_size(1600, 1000)
    tab.keep("replicas")


def test_images_show_the_samples_of_every_run(page):
    tab = page("images", height=800)
    shown = (
        "[e.getRootNode().host.run, e.getRootNode().host.tag, e.naturalWidth, e.getBoundingClientRect().width > 100]"
    )
    grid = 10 * 66 + 2  # pixels of ten digits side by side
    wanted = [[name, "samples", grid, True] for name in NAMES]

    def pictures():
        return sorted(tab.of_all("img", shown))

    tab.until(lambda: pictures() == wanted, "samples of three runs")
    tab.keep("images")


def test_time_series_are_labelled_by_the_settings_that_differ(page):
    tab = page("timeseries", height=900)
    tab.until(lambda: tab.of_all("runs-data-table", "e.innerText"), "table of runs")
    tab.until(lambda: all(name in tab.of_all("runs-data-table", "e.innerText")[0] for name in NAMES), "three runs")
