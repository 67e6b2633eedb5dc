"""Scales, and the charts that reports draw."""

import math
import re

import numpy as np
import pytest
from ganlab_compare import Curve, scale_of
from ganlab_compare.axes import Scale
from ganlab_compare.charts import chart, look, marker_shape
from ganlab_compare.pages import page


def drawn(*values, low=None, high=None, steps=None, bands=True):
    """The chart of some curves, each with a band of its own values if none is given."""
    curves = {}
    for number, mean in enumerate(values):
        at = tuple(range(len(mean))) if steps is None else steps
        ends = (tuple(mean if end is None else end) for end in (low, high))
        curves[number] = Curve(str(number), at, tuple(mean), *ends, (1,) * len(at))
    return chart(curves, name="c", tag="loss", quantity="mean", bands=bands)


def points(path):
    return [tuple(map(float, pair)) for pair in re.findall(r"(-?[\d.]+),(-?[\d.]+)", path)]


def test_a_linear_scale_puts_the_middle_of_the_range_in_the_middle_of_the_drawing():
    scale = Scale(10.0, 30.0, 100.0, 0.0)

    assert scale.place([10.0, 20.0, 30.0]).tolist() == [100.0, 50.0, 0.0]


def test_a_logarithmic_scale_puts_equal_factors_at_equal_distances_and_nonpositive_values_at_its_low_end():
    scale = Scale(0.01, 100.0, 0.0, 40.0, logarithmic=True)

    np.testing.assert_allclose(scale.place([0.01, 0.1, 1.0, 10.0, 100.0]), [0, 10, 20, 30, 40], atol=1e-9)
    assert scale.place([0.0, -5.0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [([1.0, 99.0], False), ([1.0, 100.0], True), ([1e-4, 1.0, 5.0], True), ([-1.0, 1e3], False), ([0.0, 1e3], False)],
)
def test_an_axis_is_logarithmic_if_positive_values_span_two_decades(values, logarithmic):
    assert scale_of(values, 0.0, 1.0).logarithmic is logarithmic


def test_a_band_that_reaches_zero_neither_makes_an_axis_linear_nor_stretches_it_without_end():
    scale = scale_of([0.1, 50.0], 0.0, 1.0, bands=[0.0, 1e-30, 0.05, 60.0])

    assert scale.logarithmic
    assert 0.03 < scale.low < 0.05
    assert 60.0 < scale.high < 100.0


@pytest.mark.parametrize(
    "values", [[], [math.nan, math.inf], [7.0], [0.0, 0.0], [1e-300], [1e308, -1e308], [5e-324, 1e299]]
)
def test_there_is_a_scale_with_ticks_for_whatever_values(values):
    scale = scale_of(values, 0.0, 1.0)

    assert scale.low < scale.high
    assert np.isfinite([scale.low, scale.high]).all()
    assert 2 <= len(scale.ticks()) <= 8


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-0.31, 0.9, ["0.0", "0.5"]),
        (10, 300, ["100", "200", "300"]),
        (0, 20_000, ["0", "5k", "10k", "15k", "20k"]),
        (0, 3_000_000, ["0", "1M", "2M", "3M"]),
        (0.0, 0.0004, ["0", "0.0001", "0.0002", "0.0003", "0.0004"]),
        (63.9991, 64.0013, ["63.9995", "64.0000", "64.0005", "64.0010"]),
    ],
)
def test_ticks_are_round_numbers_with_distinct_texts(low, high, texts):
    ticks = Scale(low, high, 0.0, 1.0).ticks()

    assert [text for _, text in ticks] == texts
    assert all(low <= value <= high for value, _ in ticks)


def test_ticks_of_a_logarithmic_axis_are_decades():
    assert Scale(0.02, 300.0, 0.0, 1.0, True).ticks() == [(0.1, "0.1"), (1.0, "1"), (10.0, "10"), (100.0, "100")]
    assert [text for _, text in Scale(1e-9, 1.0, 0.0, 1.0, True).ticks()] == ["1e-9", "1e-7", "1e-5", "0.001", "0.1"]


def test_a_line_goes_through_its_points_from_edge_to_edge():
    ((x0, y0), (x1, y1), (x2, y2)) = points(drawn([0.0, 1.0, 0.5], steps=(10, 20, 30)).lines[0].path)

    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert x2 == 400 - 18
    assert y0 - y1 == pytest.approx(2 * (y0 - y2), abs=0.2)  # up is less: half of the way is half of the height


def test_a_single_value_is_seen_as_a_marker():
    assert len(drawn([3.0], steps=(5,)).lines[0].markers) == 1


def test_a_band_runs_along_the_high_edge_and_back_along_the_low_one():
    (line,) = drawn([1.0, 1.0], low=[0.5, 0.0], high=[1.5, 2.0]).lines

    (left, high0), (right, high1), (back, low1), (_, low0) = points(line.band)
    assert left < right == back
    assert high1 < high0 < low0 < low1  # up is less
    (y0, y1) = (y for _, y in points(line.path))
    assert y0 == y1 == pytest.approx((high0 + low0) / 2, abs=0.2)


def test_without_bands_their_edges_do_not_widen_the_axis():
    wide, narrow = (drawn([1.0, 2.0], low=[-90, -90], high=[90, 90], bands=bands) for bands in (True, False))

    assert wide.vertical.high > 90
    assert narrow.vertical.high < 3


def test_nothing_is_drawn_outside_a_chart():
    y = np.exp(np.random.default_rng(0).normal(size=50) * 3)
    for line in drawn(y, y * 1e-5, low=y - 5, high=y * 10).lines:
        for x, height in points(line.path + line.band) + line.markers:
            assert 0 <= x <= 400
            assert 0 <= height <= 250


def test_twenty_series_differ_without_any_colour():
    assert len({(look(number).split()[1], marker_shape(number)) for number in range(20)}) == 20


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """Renders a template that may use the parts of pages, and returns the page's body."""

    def render(template, **values):
        package = tmp_path / tmp_path.name
        (package / "templates").mkdir(parents=True)
        (package / "__init__.py").touch()
        begin = '{% extends "page.html" %}{% from "parts.html" import bar, table %}'
        content = f'{{% set content %}}{template}{{% endset %}}{{% set sections = [("s", "S", content)] %}}'
        (package / "templates" / "t.html").write_text(begin + content)
        monkeypatch.syspath_prepend(tmp_path)
        return page(package.name, "t.html", title="T", **values).partition("<main>")[2]

    return render


def test_an_interval_is_a_bar_and_its_ends_beyond_the_scale_are_arrows(parts):
    template = (
        "{{ bar(5.0, 4.0, 7.0, scale) }}<hr>{{ bar(5.0, none, none, scale) }}<hr>{{ bar(5.0, -1.0, 7.0, scale) }}"
    )
    whole, alone, cut = parts(template, scale=Scale(0.0, 10.0, 10.0, 110.0)).split("<hr>")

    assert re.findall(r"[\d.]+", re.search(r'd="([^"]+)" class="bar"', whole)[1]) == ["50.0", "5", "80.0"]
    assert 'cx="60.0"' in whole
    assert "bar" not in alone
    assert ["beyond" in part for part in (whole, alone, cut)] == [False, False, True]


def test_names_break_behind_separators_and_what_no_page_can_hold_is_replaced(parts):
    body = parts("{{ name|breakable }}|{{ odd }}|", name="a/<modes>_coverage=12", odd="a\x00b\ud800\r\u202e\n\t")

    assert "<span>a/&lt;modes&gt;_<wbr>coverage=12</span>" in body
    assert "|a\ufffdb\ufffd\ufffd\ufffd\n\t|" in body
