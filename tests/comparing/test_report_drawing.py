"""Scales, charts and the little HTML that reports are made of."""

import math
import re

import numpy as np
import pytest
from reports import read

from ganlab.comparing.axes import Scale, scale_of
from ganlab.comparing.html import breakable, clean, document, element
from ganlab.comparing.svg import Line, chart, interval, series_class


def line(y, *, x=None, low=None, high=None, number=0):
    y = np.asarray(y, float)
    x = np.arange(len(y)) if x is None else x
    low, high = (y if edge is None else edge for edge in (low, high))
    return Line(number, *(np.asarray(part, float) for part in (x, y, low, high)))


def drawn(*lines, **options):
    words = {"name": "c", "title": "t", "description": "d", "across": "steps", "up": "loss"}
    return chart(lines, **{**words, **options})


def paths(svg, name):
    return [part.get("d") for part in svg.iter("path") if name in (part.get("class") or "").split()]


def points(path):
    return [tuple(map(float, pair)) for pair in re.findall(r"(-?[\d.]+),(-?[\d.]+)", path or "")]


def test_a_linear_scale_puts_the_middle_of_the_range_in_the_middle_of_the_drawing():
    scale = Scale(10.0, 30.0, 100.0, 0.0)

    assert scale.place([10.0, 20.0, 30.0]).tolist() == [100.0, 50.0, 0.0]


def test_a_logarithmic_scale_puts_equal_factors_at_equal_distances_and_nonpositive_values_at_its_low_end():
    scale = Scale(0.01, 100.0, 0.0, 40.0, logarithmic=True)

    np.testing.assert_allclose(scale.place([0.01, 0.1, 1.0, 10.0, 100.0]), [0, 10, 20, 30, 40], atol=1e-9)
    assert scale.place([0.0, -5.0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [
        ([1.0, 99.0], False),
        ([1.0, 100.0], True),
        ([1e-4, 1.0, 5.0], True),
        ([-1.0, 1000.0], False),
        ([0.0, 1e3], False),
    ],
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
    svg = drawn(line([0.0, 1.0, 0.5], x=[10, 20, 30]))

    (path,) = paths(svg, "line")
    (x0, y0), (x1, y1), (x2, y2) = points(path)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert x2 == 400 - 18
    assert y0 - y1 == pytest.approx(2 * (y0 - y2), abs=0.2)  # up is less: half of the way is half of the height


def test_a_line_has_a_gap_at_missing_values_which_do_not_affect_the_scale():
    svg = drawn(line([1.0, 1.5, math.nan, math.inf, 1.0, 2.0]))

    (path,) = paths(svg, "line")
    assert [len(points(piece)) for piece in path.split("M")[1:]] == [2, 2]
    assert {"1.0", "1.5", "2.0"} <= {part.text for part in svg.iter("text")}


def test_a_single_value_is_seen_as_a_marker():
    svg = drawn(line([3.0], x=[5]))

    assert len(paths(svg, "marker")) == 1


def test_a_band_runs_along_the_high_edge_and_back_along_the_low_one():
    svg = drawn(line([1.0, 1.0], low=[0.5, 0.0], high=[1.5, 2.0]))

    (band,) = paths(svg, "band")
    (left, high0), (right, high1), (back, low1), (_, low0) = points(band)
    assert left < right == back
    assert high1 < high0 < low0 < low1  # up is less
    (y0, y1) = (y for _, y in points(paths(svg, "line")[0]))
    assert y0 == y1 == pytest.approx((high0 + low0) / 2, abs=0.2)


def test_without_bands_their_edges_do_not_widen_the_axis():
    wide, narrow = (drawn(line([1.0, 2.0], low=[-90, -90], high=[90, 90]), bands=bands) for bands in (True, False))

    assert len(paths(wide, "band")) == 1
    assert not paths(narrow, "band")
    assert "50" in "".join(wide.itertext())
    assert "1.5" in "".join(narrow.itertext())


def test_nothing_is_drawn_outside_a_chart():
    rng = np.random.default_rng(0)
    y = np.exp(rng.normal(size=50) * 3)
    svg = drawn(line(y, low=y - 5, high=y * 10), line(y[:20] * 1e-5, number=1))

    for kind in ("line", "band", "grid"):
        for path in paths(svg, kind):
            for x, height in points(path):
                assert 0 <= x <= 400
                assert 0 <= height <= 250


def test_a_chart_has_a_title_and_a_description_for_screen_readers():
    svg = drawn(line([1.0, 1000.0]), title="critic/loss", description="a: 1 at step 0.")

    assert svg.get("role") == "img"
    named = [part for part in svg if part.get("id") in svg.get("aria-labelledby").split()]
    assert [part.text for part in named] == ["critic/loss", "a: 1 at step 0."]
    assert {"steps", "loss (logarithmic)"} <= {part.text for part in svg.iter("text")}


def test_twenty_series_differ_without_any_colour():
    shapes = set()
    for number in range(20):
        svg = drawn(line([1.0, 2.0], number=number))
        dash = series_class(number).split()[2]
        shapes.add((dash, paths(svg, "marker")[0]))

    assert len(shapes) == 20


def test_the_bar_of_an_interval_is_as_long_as_the_interval():
    svg = interval(5.0, 4.0, 7.0, Scale(0.0, 10.0, 10.0, 110.0))

    (bar,) = paths(svg, "bar")
    assert re.findall(r"[\d.]+", bar) == ["50.0", "5", "80.0"]
    assert float(svg.find("circle").get("cx")) == 60.0
    assert not paths(interval(5.0, math.nan, math.nan, Scale(0.0, 10.0, 10.0, 110.0)), "bar")


def test_text_is_never_markup():
    hostile = "</title><script>alert(1)</script>&amp; \"'"
    page = document(element("html", element("p", hostile, element("b", hostile), hostile, title=hostile)))

    (paragraph,) = read(page).all("p")
    assert paragraph.text == hostile * 3
    assert paragraph.attributes["title"] == hostile
    assert not read(page).all("script")


def test_characters_that_no_page_can_hold_are_replaced():
    assert clean("a\x00b\ud800c\x1b[31m\n") == "a\ufffdb\ufffdc\ufffd[31m\n"
    assert clean("a\r\u2028b\n\t") == "a\ufffd\ufffdb\n\t"  # one line, as it is in the terminal
    document(element("p", "\udcff")).encode()


def test_a_name_may_be_broken_behind_its_separators_and_reads_as_it_is():
    span = breakable("evaluation/mode_coverage/modes=12")

    assert [len(span), "".join(span.itertext())] == [3, "evaluation/mode_coverage/modes=12"]
