"""The tab in headless Chromium, in TensorBoard: a small sweep, and runs made to attack the page."""

import json
import subprocess
import sys
import time

import pytest
from synthetic import SETTINGS, add_samples, write_run

from ganlab.runs import find_runs

VIEWS = ("compare", "replicas", "samples", "lipschitz")
DIAGNOSTICS = ("gradient_norms", "slopes", "lipschitz_interval", "weights", "wasserstein_error")
ATTACK = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sweep(browser, tmp_path_factory):
    """Three constraints with three seeds on two replicas. After `browser`, so that nothing is trained without one."""
    folder = tmp_path_factory.mktemp("tab")
    kinds = ", ".join(f"[@constraints.{name}()]" for name in ("gradient_penalty", "weight_clipping", "spectral_norm"))
    params = {
        "experiment.steps": 24,
        "experiment.evaluate_every": 8,
        "experiment.log_every": 2,
        "experiment.batch_size": 32,
        "architectures.mlp.width": 16,
        "experiment.strategy": "@strategies.mirrored()",
        "strategies.mirrored.virtual_replicas": 2,
        "experiment.diagnostics": f"[{', '.join(f'@diagnostics.{name}()' for name in DIAGNOSTICS)}]",
    }
    command = [sys.executable, "-m", "ganlab", "sweep", "--gin", "eight_gaussians", "--seeds", "0..2", "--jobs", "2"]
    command += ["--grid", f"experiment.constraints=[{kinds}]", "--runs", str(folder), "--name", "three"]
    command += [f"--param={name}={value}" for name, value in params.items()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert len(list(find_runs(folder))) == 9, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def attack(tmp_path_factory):
    """Runs with markup in every text."""
    folder = tmp_path_factory.mktemp("attack")
    for seed in (0, 1):
        write_run(
            folder / f"{ATTACK.replace('/', '')}{seed}",
            seed=seed,
            settings={**SETTINGS, "architecture": f"{ATTACK}{seed}", f"constraints.{ATTACK}": float(seed)},
            metrics={ATTACK: (1, 2), "critic/loss": (1, 2), f"diagnostics/gradient_norms/weights/{ATTACK}": (1, 2)},
            evaluation={f"{ATTACK}/distance": (1.0, 2.0)},
            spread=1.0,
            health=[f"{ATTACK}: {ATTACK}"],
            warnings=[ATTACK],
            status=ATTACK,
            error=ATTACK,
        )
    return folder


class Tab:
    """The tab in TensorBoard's page."""

    def __init__(self, browser, address, until, keep):
        self.browser, self.address, self.until, self.keep = browser, address, until, keep

    def open(self, view, width=1300, height=1000, dark=False, **choices):
        """Opens a view and waits until it has drawn."""
        emulate = self.browser.execute_cdp_cmd
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        emulate("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        emulate("Emulation.setEmulatedMedia", {"features": [scheme]})
        state = "".join(f"&p.ganlab.{key}={value}" for key, value in {"view": view, **choices}.items())
        self.browser.switch_to.default_content()
        self.browser.get("about:blank")
        self.browser.get(f"{self.address}#ganlab{state}")
        frames = "return [...document.querySelectorAll('iframe')].find(e => e.src.includes('name=ganlab'))"
        self.browser.switch_to.frame(self.until(lambda: self.run(frames)))
        drawn = ".samples img" if view == "samples" else ".scroll tbody tr" if view == "compare" else "canvas"
        self.until(lambda: self.run(f"return document.querySelectorAll('main {drawn}').length"))
        self.until(lambda: self.run("return document.getElementById('status').className") != "loading")
        assert self.run("return document.getElementById('status').className") == ""

    def run(self, script):
        return self.browser.execute_script(script)

    def requested(self):
        """The addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
        return [request["request"]["url"] for request in sent]


@pytest.fixture(scope="module")
def opened(browser, serve, until, keep):
    """Serves a folder and returns its tab."""
    return lambda folder: Tab(browser, serve(folder), until, keep)


@pytest.fixture(scope="module")
def tab(opened, sweep):
    return opened(sweep)


def test_compare_shows_the_numbers_of_the_command(tab, sweep):
    tab.requested()
    tab.open("compare")
    tab.keep("compare")
    command = [sys.executable, "-m", "ganlab", "compare", str(sweep), "--json"]
    wanted = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    rows = tab.run(
        "return [...document.querySelectorAll('tbody tr')].map(r => [r.cells[0].title, r.cells[1].innerText])"
    )
    modes = {one["label"]: one["last"]["evaluation/mode_coverage/modes"]["mean"] for one in wanted["configurations"]}
    assert {label: float(mean) for label, mean in rows} == pytest.approx(modes, rel=1e-3)
    assert [float(mean) for _, mean in rows] == sorted((float(mean) for _, mean in rows), reverse=True)
    assert "P(better)" not in tab.run("return document.querySelector('thead').textContent")
    assert tab.run("return document.querySelectorAll('.legend li').length") == 3
    urls = tab.requested()
    assert any(url.endswith("/ganlab/index.js") for url in urls)
    assert [url for url in urls if not url.startswith((tab.address, "data:", "blob:", "about:", "chrome:"))] == []


def test_choices_are_in_the_address_and_come_back(tab):
    tab.open("compare")
    tab.run("document.querySelector('input[type=search]').focus()")
    box = tab.browser.switch_to.active_element
    box.send_keys("spectral")
    assert tab.run("return document.querySelectorAll('tbody tr').length") == 1
    assert "p.ganlab.filter=spectral" in tab.run("return parent.location.hash")
    # The figure, which is smaller in runs as short, and not the dataset's setting, which is 8 in all.
    fill = "arguments[0].value = 'modes>=8'; arguments[0].dispatchEvent(new Event('input'));"
    tab.browser.execute_script(fill, box)
    assert tab.run("return document.querySelectorAll('tbody tr').length") == 0
    # A setting that is the same wherever it applies is none of rows without the part.
    tab.browser.execute_script(fill.replace("modes>=8", "gradient_penalty.weight=0.1"), box)
    assert tab.run("return document.querySelectorAll('tbody tr').length") == 1
    tab.open("compare", filter="clipping", log="1", smooth="0.5", x="examples", sort="-label")
    assert tab.run("return document.querySelectorAll('tbody tr').length") == 1
    caption = tab.run("return document.querySelector('.caption').textContent")
    assert "weight 0.5" in caption
    assert "Examples are real examples" in caption


def test_keyboard_moves_between_views_and_sorts(tab):
    from selenium.webdriver.common.keys import Keys

    tab.open("compare")
    tab.run("document.querySelector('thead button').focus()")
    for wanted in ("ascending", "descending"):
        tab.browser.switch_to.active_element.send_keys(Keys.ENTER)
        assert tab.run("return document.querySelector('thead th').getAttribute('aria-sort')") == wanted
    tab.run("document.getElementById('tab-compare').focus()")
    tab.browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    tab.until(lambda: tab.run("return document.querySelector('canvas.heat:not([hidden])') !== null"))
    tab.until(lambda: "replicas" in tab.run("return document.querySelector('.chart .caption').textContent"))
    tab.run("document.querySelector('canvas.heat').focus()")
    tab.browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert "replica 1" in tab.run("return document.querySelector('.readout').textContent")


def test_replicas_samples_and_lipschitz_draw(tab, sweep):
    tab.open("replicas")
    tab.keep("replicas")
    assert "2 replicas" in tab.run("return document.querySelector('.chart .caption').textContent")
    tab.open("samples")
    tab.until(lambda: tab.run("return [...document.images].every(i => i.naturalWidth > 0)"))
    tab.keep("samples")
    assert tab.run("return document.images.length") == 3
    assert tab.run("return document.querySelector('output').textContent") == "step 24"
    tab.open("lipschitz")
    tab.keep("lipschitz")
    shown = "[...document.querySelectorAll('.grid .chart:not([hidden])')]"
    cards = tab.run(f"return {shown}.map((card) => card.querySelector('canvas') !== null)")
    assert cards[0] is False  # health, in words
    assert all(cards[1:])
    assert len(cards) > 5
    assert "constraints.spectral_norm" in tab.run("return document.querySelectorAll('.list')[1].textContent")


def test_lipschitz_shows_what_was_logged_and_no_empty_cards(opened, tmp_path):
    slope = {"constraints/gradient_penalty/slope": (2.0, 1.5, 1.1), "critic/loss": (1.0, 2.0, 3.0)}
    slope |= {"constraints/mine/gap": (1.0, 2.0), "diagnostics/spectrum/top": (1.0, 2.0)}
    slope |= {"constraints/mine/share": (0.1, 0.2), "constraints/mine/count": (2000.0, 3000.0)}
    write_run(tmp_path / "penalty", seed=0, metrics=slope, status="failed", error="The disk is full.")
    tab = opened(tmp_path)
    tab.open("lipschitz")
    tab.keep("lipschitz-penalty")
    titles = (
        "return [...document.querySelectorAll('.grid .chart:not([hidden]) figcaption')].map((one) => one.textContent)"
    )
    others = ["constraints/mine", "constraints/mine: larger values", "diagnostics/spectrum"]
    assert tab.run(titles) == ["Health", "Slopes of the critic", *others]
    assert (
        tab.run("return document.querySelector('.chart:not([hidden]) .legend').textContent") == "gradient_penalty/slope"
    )
    health = tab.run("return [...document.querySelectorAll('.list')[0].children].map((one) => one.textContent)")
    assert health == ["failed The disk is full.", "It failed before the first look."]
    assert "Slopes at data and fakes" in tab.run("return document.querySelectorAll('.list')[1].textContent")


WEIGHTS = [0.001 * 2**number for number in range(25)]


@pytest.fixture(scope="module")
def many(opened, tmp_path_factory):
    """Two hundred rows: 25 weights, 4 widths and 2 architectures."""
    folder = tmp_path_factory.mktemp("many")
    for number, weight in enumerate(WEIGHTS):
        for width in (16, 64, 256, 1024):
            for kind in ("mlp", "dcgan"):
                settings = {**SETTINGS, "architecture": kind, "architectures.mlp.width": width}
                run = write_run(
                    folder / f"{number}-{width}-{kind}",
                    settings={**settings, "constraints.gradient_penalty.weight": weight},
                    evaluation={"mode_coverage/modes": (1.0, number / 4 + width / 1e4 + (kind == "mlp") / 100)},
                )
                add_samples(run)
    return opened(folder)


SEEN = """
const box = document.querySelector('.scroll').getBoundingClientRect();
document.querySelector('.scroll').scrollLeft = arguments[0];
const rows = [...document.querySelectorAll('tbody tr:nth-child(-n+3)')];
return rows.map((row) => [...row.cells].slice(0, 2).map((cell) => {
  const at = cell.getBoundingClientRect();
  const on = document.elementFromPoint(at.left + 30, at.top + 12);
  return at.left >= box.left - 1 && at.right <= box.right + 1 && (on === cell || cell.contains(on));
}));
"""


@pytest.mark.parametrize("width", [1400, 900, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_name_and_chosen_metric_stay_in_view(many, width, dark):
    many.open("compare", width=width, height=844, dark=dark)
    many.keep(f"compare-many-{width}-{'dark' if dark else 'light'}")
    for scrolled in (0, 200, 2000):
        assert many.browser.execute_script(SEEN, scrolled) == [[True, True]] * 3


def test_two_hundred_rows_are_filtered_pinned_hidden_and_coloured(many):
    rows = "return [...document.querySelectorAll('.scroll tbody tr')].map((row) => row.cells[0].title)"
    many.open("compare")
    assert len(many.run(rows)) == 200
    assert many.run("return document.querySelectorAll('.chart .legend li').length") == 20
    press = "document.querySelectorAll('.scroll tbody .pin')[5].click();"
    pinned = many.run(f"const names = {rows.removeprefix('return')}; {press} return names[5]")
    times = many.run(
        "const box = document.querySelector('input[type=search]');"
        "return ['weight>1', 'weight>1 width=64'].map((text) => {"
        "const start = performance.now(); box.value = text; box.dispatchEvent(new Event('input'));"
        "document.body.getBoundingClientRect(); return performance.now() - start; })"
    )
    assert max(times) < 1000  # a tenth of that where nothing else runs
    found = many.run(rows)
    assert found[0] == pinned
    assert len(found) == 1 + 2 * sum(weight > 1 for weight in WEIGHTS)
    assert all("mlp.width=64" in name for name in found[1:])
    many.run("document.querySelector('.scroll tbody input').click()")
    many.open(
        "compare",
        **{
            key: many.run(f"return new URLSearchParams(parent.location.hash).get('p.ganlab.{key}')")
            for key in ("pin", "hidden", "filter")
        },
    )
    assert many.run(rows) == found
    assert many.run("return document.querySelector('.scroll tbody input').checked") is False
    many.open("compare", only="1", hidden=found[1])  # by its label, as older addresses have it
    assert len(many.run(rows)) == 199


@pytest.mark.parametrize(
    ("panel", "shapes"), [("parallel", "polyline"), ("scatter", "circle"), ("samples", ".thumbs img")]
)
def test_panels_draw_the_rows_of_the_table(many, panel, shapes):
    many.open("compare", show=panel, filter="width=64 weight>1", colour="architecture")
    many.keep(f"compare-{panel}")
    count = 2 * sum(weight > 1 for weight in WEIGHTS)
    assert many.run(f"return document.querySelectorAll('.drawn {shapes}').length") == count
    assert many.run("return [...document.querySelectorAll('.legend li')].map((one) => one.textContent)")[:2] == [
        "dcgan",
        "mlp",
    ]
    many.open("compare", show=panel, width=390, dark=True)
    assert many.run("return document.documentElement.scrollWidth") <= 390


def test_killed_and_interrupted_runs_are_not_training(opened, tmp_path):
    for seed, status in enumerate(("running", "interrupted", "completed")):
        write_run(tmp_path / status, seed=seed, status=status, metrics={"critic/loss": (1.0, 2.0)})
    tab = opened(tmp_path)
    tab.open("compare", stats="1")
    assert (
        tab.run("return document.getElementById('status').textContent") == "3 runs, 0 training, 1 killed, 1 interrupted"
    )
    assert "1 killed" in tab.run("return document.querySelector('tbody').textContent")
    assert "range [2, 2] n=3" in tab.run("return document.querySelector('tbody').textContent")


@pytest.mark.parametrize("view", VIEWS)
def test_views_fit_a_phone_and_follow_the_theme(tab, view):
    tab.open(view, width=390, height=1200, dark=True)
    tab.keep(f"{view}-phone-dark")
    assert tab.run("return innerWidth") == 390
    assert tab.run("return document.documentElement.scrollWidth") <= 390
    assert tab.run("return getComputedStyle(document.body).backgroundColor") == "rgb(48, 48, 48)"
    tab.open(view, width=1300)
    assert tab.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_nothing_in_a_run_becomes_markup(opened, attack):
    tab = opened(attack)
    panels = {"compare": ("curves", "parallel", "scatter"), "replicas": ("",), "lipschitz": ("",)}
    for view, panel in ((view, panel) for view, of_view in panels.items() for panel in of_view):
        tab.open(view, show=panel, stats="1", colour="architecture")
        shown = tab.run("return document.body.innerText")
        assert "onerror" in shown, view
        assert tab.run("return document.querySelectorAll('main img, body script:not([type=module])').length") == 0
        assert "owned" not in tab.run("return document.title + parent.document.title")
    tab.run(
        "const image = document.createElement('img'); image.setAttribute('onerror', 'document.title=1');"
        "document.body.append(image); image.src = 'x'"
    )
    time.sleep(0.5)
    assert tab.run("return document.title") != "1"  # the policy stops what would slip through


def test_numbers_of_an_axis_have_the_digits_that_tell_them_apart(opened, attack):
    tab = opened(attack)
    tab.open("compare")
    ticks = (
        "const address = performance.getEntriesByType('resource').map(e => e.name).find(n => n.endsWith('/dom.js'));"
        "return import(address).then(dom => [[0, 0.25, 1], [-1.00001, -1], [1e6, 1050000, 1051000], [1e-7, null]]"
        ".map(dom.ticks))"
    )
    expected = [["0", "0.25", "1"], ["-1.00001", "-1"], ["1e+6", "1.05e+6", "1.051e+6"], ["1e-7", ""]]
    assert tab.run(ticks) == expected


def test_no_errors_on_the_console(tab):
    tab.browser.get_log("browser")
    for view in VIEWS:
        tab.open(view)
    bad = [entry["message"] for entry in tab.browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert [message for message in bad if "favicon" not in message] == []
