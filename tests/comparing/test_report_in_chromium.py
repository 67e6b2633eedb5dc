"""A report in a real browser, offline: it makes no requests, fits a phone, and follows the reader's theme."""

import functools
import http.server
import re
import threading

import in_chromium
import pytest
from ganlab_compare import compare, to_html
from in_chromium import needs_chromium
from synthetic import SETTINGS, write_run, write_runs

pytestmark = needs_chromium

_MORE = """
  const hidden = () => frames[0].getComputedStyle(seen.querySelector("g.series.c1")).display;
  result.before = hidden();
  const label = seen.querySelector("figcaption label.l1");
  if (label) label.click();
  result.after = hidden();
  result.pictures = [...seen.images].map((image) => image.naturalWidth);
  result.colour = frames[0].getComputedStyle(seen.querySelector("g.series .line")).stroke;
  const texts = [...seen.querySelectorAll(".chart text")];
  result.text = Math.min(...texts.map((text) => text.getBoundingClientRect().height));
"""
look = functools.partial(in_chromium.look, more=_MORE)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    runs = write_runs(tmp_path_factory.mktemp("runs"), weights=(0.001, 1.0, 123456.75), seeds=3)
    return to_html(compare([runs]))


@pytest.fixture
def server():
    """A local server that counts its requests."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}", asked
        serving.shutdown()


def test_on_a_phone_nothing_is_wider_than_the_screen_and_names_in_legends_hide_lines(page, tmp_path):
    seen = look(tmp_path, page)

    assert 340 <= seen["width"] <= 360  # a bar to scroll with may take some
    assert seen["overflow"] == 0
    assert seen["wide"] == []
    assert seen["requests"] == []
    assert len(seen["pictures"]) == 9
    assert all(seen["pictures"])
    assert (seen["before"], seen["after"]) == ("inline", "none")  # the style sheet is let in by the page's own policy
    assert seen["text"] > 9.0


@pytest.mark.slow
def test_long_names_do_not_widen_a_phones_page_either(tmp_path):
    long = "x" * 150
    for number in range(2):
        metrics = {f"constraints/{long}/slope": (1.0, 2.0), "critic/loss": (1e-9, -1.23456e-12)}
        settings = {**SETTINGS, "dataset": long + str(number), long: long + str(number)}
        write_run(tmp_path / "runs" / f"{long}{number}", metrics=metrics, settings=settings)
    metrics = ["slope:min", "critic/loss:max"]

    seen = look(tmp_path, to_html(compare([tmp_path / "runs"], metrics=metrics)))

    assert seen["overflow"] == 0
    assert seen["wide"] == []


def test_the_policy_blocks_external_resources(page, server, tmp_path):
    address, asked = server
    stray = f'<img src="{address}/stray.png"><script src="{address}/stray.js"></script>'

    look(tmp_path, page.replace("<main>", f"<main>{stray}"))
    assert asked == []

    # The test can fail: without the policy both are asked for.
    unguarded = re.sub(r"<meta http-equiv[^>]*>", "", page)
    look(tmp_path, unguarded.replace("<main>", f"<main>{stray}"))
    assert sorted(asked) == ["/stray.js", "/stray.png"]


@pytest.mark.slow
def test_colours_follow_the_readers_theme(page, tmp_path):
    light, dark = (
        look(tmp_path, page, flags=[f"--blink-settings=preferredColorScheme={scheme}"])["colour"] for scheme in (1, 0)
    )

    assert light == "rgb(6, 78, 214)"
    assert dark == "rgb(91, 150, 255)"
