"""The HTML of `ganlab compare --html`: its figures, its pictures, and its safety against strangers' runs."""

import json
import math
import re

import numpy as np
import pytest
from command_lines import command
from ganlab_compare import compare, to_html
from reports import read
from synthetic import SETTINGS, add_samples, write_run, write_runs

# Attributes that may hold an address, and the only places that a page of one file may point to.
ADDRESSES = ("src", "href", "xlink:href", "srcset", "data", "action", "formaction", "poster", "background", "style")
INSIDE = ("#", "data:image/png;base64,", "data:image/jpeg;base64,")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return write_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def page(runs):
    return read(to_html(compare([runs])))


def section(page, name):
    return page.one("section", id=name)


def ids(page):
    return [element.attributes["id"] for element in page.all() if "id" in element.attributes]


def test_the_page_is_balanced_and_its_sections_are_in_order(page):
    names = [part.attributes["id"] for part in page.all("section")]

    assert names == ["compared", "results", "improvement", "problems", "curves", "replicas", "samples", "origin"]
    first = page.all("table")[0].all("tbody")[0].all("tr")
    assert [row.all("td")[0].attributes["data-label"].replace("\u200b", "") for row in first] == [
        "evaluation/mode_coverage/modes"
    ] * 3
    means = [float(row.all("td")[0].text.split()[0]) for row in first]
    assert means == sorted(means, reverse=True)
    assert len(ids(page)) == len(set(ids(page)))
    assert page.one("html").attributes["lang"] == "en"
    assert page.one("h1").text == page.one("head").one("title").text == "Comparison: 3 configurations, 9 runs"


def test_nothing_in_it_points_outside_and_nothing_in_it_runs(page):
    for element in page.all():
        assert element.tag not in ("script", "link", "iframe", "object", "embed", "base", "form")
        for name, value in element.attributes.items():
            assert not name.startswith("on"), f"<{element.tag} {name}>"
            if name in ADDRESSES:
                assert value.startswith(INSIDE), f"<{element.tag} {name}={value[:60]!r}>"
    style = page.one("style").text
    assert not re.search(r"url\(|@import|image-set|src\s*:", style)
    links = [element.attributes["href"].removeprefix("#") for element in page.all("a")]
    assert set(links) <= set(ids(page))


def test_a_policy_of_the_page_forbids_scripts_and_every_address_outside(page):
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))

    assert rules.pop("style-src").startswith("'sha256-")
    assert rules == {"default-src": "'none'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}


def test_every_figure_is_the_one_of_json_and_printed_to_its_last_digit(runs, tmp_path):
    file = tmp_path / "report.html"
    metrics = ["--metric", "modes", "--metric", "distance", "--metric", "critic/loss:max"]
    printed = command("compare", runs, *metrics, "--json", "--html", file)
    rows = {row["label"]: row for row in json.loads(printed)["configurations"]}

    shown = {}
    for element in read(file.read_text()).all():
        if "data-value" not in element.attributes:
            continue
        attributes = element.attributes
        label, tag, figure = (attributes.get(f"data-{name}") for name in ("configuration", "metric", "figure"))
        row = rows[label]
        if tag is None:
            expected = len(row["runs"]) if figure == "runs" else row[figure]
        else:
            which, name = figure.split(".")
            expected = row[which][tag][name]
        assert float(attributes["data-value"]) == expected, (label, tag, figure)
        if figure != "wall_seconds":
            assert_printed(element.text, expected)
        assert (label, tag, figure) not in shown
        shown[label, tag, figure] = element.text

    for label, row in rows.items():
        for figure in ("runs", "wall_seconds", "steps_per_second"):
            assert (label, None, figure) in shown
        for which, found in [(which, row[which]) for which in ("last", "best", "improvement")]:
            for tag, estimate in found.items():
                for name in set(estimate) & {"mean", "low", "high", "probability"}:
                    assert ((label, tag, f"{which}.{name}") in shown) == (estimate[name] is not None)
    assert {text for (_, _, figure), text in shown.items() if figure == "wall_seconds"} == {"3 min 24 s"}  # 203.7 s


def assert_printed(text, value):
    """The text is the number, rounded to the digits that it has."""
    digits = len(text.split("e")[0].partition(".")[2])
    exponent = int(text.split("e")[1]) if "e" in text else 0
    assert abs(float(text) - value) <= 0.5000001 * 10.0 ** (exponent - digits), (text, value)
    if "." in text and "e" not in text and abs(value) >= 1:
        assert digits >= 1


def test_a_figure_that_some_runs_lack_has_its_number_of_runs(tmp_path):
    write_run(tmp_path / "s0", seed=0, metrics={"critic/wasserstein": (4.0, 1.0)})
    write_run(tmp_path / "s1", seed=1, metrics={"critic/wasserstein": (4.0, 3.0)})
    write_run(tmp_path / "s2", seed=2, metrics={"critic/wasserstein": (4.0, math.nan)}, status="diverged")

    page = read(to_html(compare([tmp_path])))

    assert page.one(data_figure="last.n").text == "2"
    assert page.one(data_figure="runs").text == "3"
    problems = section(page, "problems").all("li")
    assert any("diverged" in problem.text for problem in problems)
    assert "things to know" in section(page, "compared").text or "thing to know" in section(page, "compared").text


def test_interquartile_means_appear_from_eight_runs_on(tmp_path):
    # Without the two smallest and the two largest of 1, 2, .. 7, 100: the mean of 3, 4, 5 and 6.
    for seed, last in enumerate((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 100.0)):
        write_run(tmp_path / f"s{seed}", seed=seed, metrics={"critic/wasserstein": (9.0, last)})

    page = read(to_html(compare([tmp_path])))

    assert float(page.one(data_figure="last.iqm").attributes["data-value"]) == 4.5
    low, high = (float(page.one(data_figure=f"last.iqm_{end}").attributes["data-value"]) for end in ("low", "high"))
    assert low < 4.5 < high


def test_only_the_best_mean_of_each_metric_stands_out(page, runs):
    comparison = compare([runs])
    leading = page.all(class_="leading")

    directed = [metric for metric in comparison.metrics if metric.direction]
    assert [element.attributes["data-metric"] for element in leading] != []
    for metric in directed:
        means = {label: found.mean for (label, tag), found in comparison.estimates.items() if tag == metric.tag}
        best = (max if metric.direction == "max" else min)(means.values())
        marked = [e.attributes for e in leading if e.attributes["data-metric"] == metric.tag]
        assert {attributes["data-configuration"] for attributes in marked} == {
            label for label, mean in means.items() if mean == best
        }


def test_every_table_names_its_rows_and_columns(page):
    assert len(page.all("table")) >= 5
    for table in page.all("table"):
        assert table.one("caption").text
        columns = table.one("thead").all("th", scope="col")
        for row in table.one("tbody").all("tr"):
            assert len(row.all("th", scope="row")) == 1
            labels = [cell.attributes["data-label"].replace("\u200b", "") for cell in row.all("td")]
            assert all(column.text.startswith(label) for column, label in zip(columns[1:], labels, strict=True))


def test_each_configuration_has_an_entry_in_each_legend_and_a_line_of_the_same_look(page, runs):
    labels = [one.label for one in compare([runs]).configurations]
    figures = [*section(page, "curves").all("figure"), *section(page, "replicas").all("figure")]

    assert len(figures) == 3 + 1  # figures of evaluators have no replicas
    for figure in figures:
        assert [entry.text for entry in figure.one("ul", class_="legend").all("label")] == labels
        keys = [key.classes[1:] for key in figure.all("svg", class_="key")]
        lines = [line.classes[2:] for line in figure.all("g", class_="series")]
        assert keys == lines
        assert len({tuple(look) for look in lines}) == len(labels)


def test_a_configuration_without_values_is_marked_in_the_legend(tmp_path):
    write_run(tmp_path / "a", metrics={"critic/loss": (1.0, 2.0)})
    write_run(tmp_path / "b", metrics={"critic/wasserstein": (1.0, 2.0)}, settings={**SETTINGS, "dataset": "other"})

    page = read(to_html(compare([tmp_path], metrics=["critic/loss"])))

    entries = section(page, "curves").one("figure").one("ul", class_="legend").all("label")
    assert sorted(entry.text for entry in entries) == ["digits", "other (no values)"]


def test_lines_bands_and_spreads_are_those_of_the_runs(tmp_path):
    write_run(tmp_path / "s0", seed=0, metrics={"critic/loss": (0.0, 1.0, 2.0)}, spread=0.5)
    write_run(tmp_path / "s1", seed=1, metrics={"critic/loss": (2.0, 3.0, 2.0)}, spread=1.5)

    page = read(to_html(compare([tmp_path], metrics=["critic/loss"])))

    figure = section(page, "curves").one("figure")
    assert figure.one("desc").text.endswith(": 1 at step 10, 2 at step 30.")
    heights = [float(pair.split(",")[1]) for pair in re.split("[ML]", curve(figure, "line"))[1:]]
    edges = [float(pair.split(",")[1]) for pair in re.split("[ML]", curve(figure, "band").rstrip("z"))[1:]]
    # Of means 1, 2, 2 within 0 to 2, 1 to 3 and 2 to 2.
    high, low = edges[:3], edges[:2:-1]
    unit = heights[0] - heights[1]
    assert heights[1] == heights[2]
    np.testing.assert_allclose([h - m for h, m in zip(heights, high, strict=True)], [unit, unit, 0.0], atol=0.11)
    np.testing.assert_allclose([m - h for h, m in zip(heights, low, strict=True)], [unit, unit, 0.0], atol=0.11)
    spread = section(page, "replicas").one("figure").one("desc").text
    assert spread.endswith(": 1 at step 10, 1 at step 30.")


def curve(figure, kind):
    return figure.one("svg", class_="chart").one("path", class_=kind).attributes["d"]


def test_no_replicas_section_for_runs_of_one_replica_and_no_improvement_of_one_configuration(tmp_path):
    write_run(tmp_path / "s0", replicas=1)

    page = read(to_html(compare([tmp_path])))

    assert not {"replicas", "improvement"} & set(ids(page))
    assert not page.all("a", href="#replicas")


def test_many_lines_have_no_bands_and_a_legend_that_folds(tmp_path):
    write_runs(tmp_path, weights=range(1, 14), seeds=2)

    curves = section(read(to_html(compare([tmp_path]))), "curves")

    assert not curves.all("path", class_="band")
    assert "Bands are not drawn" in curves.text
    for figure in curves.all("figure"):
        assert len(figure.one("details").all("label")) == 13


def test_texts_from_a_run_are_never_markup(tmp_path):
    hostile = "</style></title><script>alert('x')</script><img src=x onerror=\"alert(1)\">"
    settings = {**SETTINGS, "dataset": hostile, hostile: hostile}
    add_samples(
        write_run(
            tmp_path / hostile.replace("/", "|"),
            settings=settings,
            metrics={hostile: (1.0, 2.0), "critic/loss": (1.0, math.inf)},
            strategy=hostile,
            provenance={"packages": {hostile: hostile}, "devices": [hostile], "git": {"commit": hostile}},
        )
    )
    write_run(tmp_path / "other", metrics={hostile: (3.0, 4.0)}, status="interrupted", steps=100)
    comparison = compare([tmp_path], metrics=[f"{hostile}:min", "critic/loss"])

    page = read(to_html(comparison))  # balanced, so that nothing of it was taken for markup
    assert not page.all("script")
    assert len(page.all("img")) == 1
    assert "onerror" not in {name for element in page.all() for name in element.attributes}
    assert hostile in section(page, "compared").text
    assert hostile in [heading.text for heading in page.all("h3")]
    assert hostile in section(page, "origin").text
    assert hostile not in page.one("style").text


def test_provenance_is_listed_once_for_runs_that_share_it(tmp_path):
    origin = {"git": {"commit": "abc123", "dirty": True}, "packages": {"ganlab": "0.1.0", "keras": "3.15.1"}}
    for seed in range(3):
        write_run(tmp_path / f"s{seed}", seed=seed, provenance={**origin, "devices": ["GPU:0", "GPU:1"]})
    write_run(tmp_path / "s3", seed=3, provenance=None)

    details = section(read(to_html(compare([tmp_path]))), "origin").all("details")

    assert len(details) == 3
    first, second, runs = (detail.text for detail in details)
    for text in ("3 runs", "0.1.0", "keras 3.15.1", "abc123, with changes", "GPU:0, GPU:1"):
        assert text in first
    assert "s3" in second
    assert len(details[2].one("tbody").all("tr")) == 4
    assert "completed" in runs


def test_metrics_of_unknown_direction_name_the_remedy(tmp_path):
    write_runs(tmp_path, weights=(1.0, 2.0))

    page = read(to_html(compare([tmp_path], metrics=["critic/loss"])))

    assert "--metric 'TAG:min'" in section(page, "improvement").text
    assert not page.all(class_="leading")


def test_runs_without_a_finite_value_still_make_a_report(tmp_path):
    for seed in range(2):
        values = {"critic/wasserstein": (math.nan, math.nan)}
        write_run(tmp_path / f"s{seed}", seed=seed, metrics=values, status="diverged")

    page = read(to_html(compare([tmp_path])))

    assert "2 of 2 runs" in section(page, "problems").text
    assert page.one(data_figure="runs").text == "2"


def test_the_report_is_the_same_each_time(runs):
    assert to_html(compare([runs])) == to_html(compare([runs]))
