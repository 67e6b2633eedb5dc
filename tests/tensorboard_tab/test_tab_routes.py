"""The routes of the tab: the numbers of `ganlab compare --json` and of metrics.jsonl, whatever runs hold."""

import contextlib
import gc
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from ganlab_compare import loaded_runs
from ganlab_compare.loaded_runs import read_run
from ganlab_runs import listing, watching
from ganlab_tensorboard import hosts, logfolder, store
from ganlab_tensorboard.plugin import GanlabTab, static_files
from synthetic import SETTINGS, write_run
from werkzeug.test import Client
from werkzeug.wrappers import Response

from ganlab.cli import cli
from ganlab.runs import RunDirectory, find_runs

STATIC = Path(store.__file__).parent
ATTACK = "</script><img src=x onerror=alert(1)>\u202e\x1b[31m`${1}`\"'&"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


class Server:
    """The plugin's routes, asked without a server."""

    def __init__(self, folder, **flags):
        self.tab = GanlabTab(SimpleNamespace(logdir=str(folder), flags=SimpleNamespace(**flags) if flags else None))
        self.apps = self.tab.get_plugin_apps()

    def raw(self, route, **query):
        return Client(self.apps[route], Response).get(route, query_string=query)

    def get(self, route, **query):
        answer = self.raw(route, **query)
        assert answer.mimetype == "application/json"
        return json.loads(answer.data, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.fixture
def sweep(tmp_path):
    """Two settings with four seeds each, and one run that diverged."""
    for weight in (1.0, 10.0):
        for seed in range(4):
            base = [weight + seed + i / 7 for i in range(6)]
            write_run(
                tmp_path / f"weight={weight}" / f"s{seed}",
                seed=seed,
                settings={**SETTINGS, "constraints.gradient_penalty.weight": weight},
                metrics={"critic/wasserstein": base, "critic/loss": [-value for value in base]},
                evaluation={"mode_coverage/modes": (1.0, weight + seed)},
                spread=0.25,
                status="diverged" if (weight, seed) == (1.0, 3) else "completed",
            )
    return tmp_path


@pytest.mark.parametrize("metric", [None, "critic/loss", "critic/loss:max"])
def test_comparison_equals_the_command(sweep, metric):
    asked = ["--metric", metric] if metric else []
    command = json.loads(CliRunner().invoke(cli, ["compare", str(sweep), "--json", *asked]).stdout)
    route = Server(sweep).get("/data/compare", **({"metric": metric} if metric else {}))
    for key in ("differing", "common", "metrics", "leading", "verdicts", "problems"):
        assert route[key] == command[key]
    assert len(route["configurations"]) == len(command["configurations"]) == 2
    for ours, theirs in zip(route["configurations"], command["configurations"], strict=True):
        for key in ("label", "settings", "last", "best", "improvement", "wall_seconds", "steps_per_second"):
            assert ours[key] == theirs[key]
    if metric is None:
        (row,) = [row for row in route["configurations"] if row["improvement"]]
        assert 0 <= row["improvement"]["evaluation/mode_coverage/modes"]["probability"] <= 1


def test_rows_are_grouped_by_a_setting_or_are_runs(sweep):
    server, weight = Server(sweep), "constraints.gradient_penalty.weight"
    each = server.get("/data/compare", by="*")
    assert [len(row["runs"]) for row in each["configurations"]] == [1] * 8
    assert each["groups"] == [weight]
    assert each["names"][weight] == "weight"
    assert [row["short"] for row in each["configurations"]][:2] == ["weight=1 seed=0", "weight=1 seed=1"]
    pooled = server.get("/data/compare", by="dataset")
    assert [len(row["runs"]) for row in pooled["configurations"]] == [8]
    assert "pool runs that differ in constraints.gradient_penalty.weight" in " ".join(pooled["problems"])
    assert "no setting" in server.raw("/data/compare", by="nothing").data.decode()


def test_curves_of_the_rows_that_are_drawn_alone(sweep):
    server = Server(sweep)
    rows = server.get("/data/compare", by="*")
    ids = [row["id"] for row in rows["configurations"]]
    assert len(set(ids)) == len(rows["curves"]) == 8
    drawn = server.get("/data/compare", by="*", draw=ids[2:4])
    assert {curve["label"] for curve in drawn["curves"]} == {row["label"] for row in rows["configurations"][2:4]}
    assert server.get("/data/compare", draw="none")["curves"] == []


def test_curve_is_the_mean_and_the_range_of_the_rows(sweep):
    data = Server(sweep).get("/data/compare", curve="critic/loss:min")
    assert data["curve"] == "critic/loss"
    assert {"tag": "critic/loss", "direction": "min"} in data["metrics"]
    (curve,) = [one for one in data["curves"] if "10" in one["label"]]
    rows = [
        [json.loads(line)["metrics"]["critic/loss"]["reduced"] for line in (run / "metrics.jsonl").open()]
        for run in sorted((sweep / "weight=10.0").iterdir())
    ]
    assert curve["steps"] == [10, 20, 30, 40, 50, 60]
    for i, values in enumerate(zip(*rows, strict=True)):
        assert curve["mean"][i] == pytest.approx(sum(values) / 4)
        assert (curve["low"][i], curve["high"][i], curve["n"][i]) == (min(values), max(values), 4)


def test_series_equal_the_file(sweep):
    server = Server(sweep)
    run = server.get("/data/overview")["runs"][2]
    answer = server.get("/data/series", run=run["id"], tag=["critic/loss", "critic/wasserstein", "absent"])
    lines = [json.loads(line) for line in (sweep / run["name"] / "metrics.jsonl").open()]
    assert set(answer["series"]) == {"critic/loss", "critic/wasserstein"}
    for tag, found in answer["series"].items():
        assert found["steps"] == [line["step"] for line in lines]
        assert found["values"] == [line["metrics"][tag]["reduced"] for line in lines]
        assert found["replicas"] == [line["metrics"][tag]["replicas"] for line in lines]


def test_rows_appear_while_a_run_trains(sweep):
    server = Server(sweep)
    run = server.get("/data/overview")["runs"][0]
    path = sweep / run["name"] / "metrics.jsonl"
    assert len(server.get("/data/series", run=run["id"], tag="critic/loss")["series"]["critic/loss"]["steps"]) == 6
    with path.open("a") as file:
        file.write('{"step": 70, "metrics": {"critic/loss": {"reduced": "NaN", "replicas": ["NaN", 1.5]}}}\n')
    found = server.get("/data/series", run=run["id"], tag="critic/loss")["series"]["critic/loss"]
    assert (found["steps"][-1], found["values"][-1], found["replicas"][-1]) == (70, "NaN", ["NaN", 1.5])


def test_examples_and_seconds_per_step(tmp_path):
    settings = {**SETTINGS, "experiment.batch_size": 8, "experiment.critic_steps": 5}
    write_run(tmp_path / "run", settings=settings, wall_seconds=4.0)  # forty steps
    (row,) = Server(tmp_path).get("/data/compare")["configurations"]
    assert row["examples_per_step"] == 40
    assert row["seconds_per_step"] == pytest.approx(0.1)


def test_samples_are_served_from_the_run_alone(tmp_path):
    run = tmp_path / "logs" / "run"
    write_run(run)
    (run / "samples").mkdir()
    (run / "samples" / "step-00000010.png").write_bytes(PNG)
    (run / "samples" / "step-00000020.png").write_bytes(b"<svg onload=alert(1)>")
    (tmp_path / "secret.png").write_bytes(PNG)
    (run / "samples" / "step-00000030.png").symlink_to(tmp_path / "secret.png")
    server = Server(tmp_path / "logs")
    (found,) = server.get("/data/overview")["runs"]
    assert server.get("/data/run", run=found["id"])["samples"] == [10, 20, 30]
    good = server.raw("/data/sample", run=found["id"], step=10)
    assert (good.status_code, good.mimetype, good.data) == (200, "image/png", PNG)
    assert server.raw("/data/sample", run=found["id"], step="last").status_code == 404  # the newest leads out
    (run / "samples" / "step-00000030.png").unlink()
    (run / "samples" / "step-00000020.png").unlink()
    assert server.raw("/data/sample", run=found["id"], step="last").data == PNG
    for step in ("20", "30", "40", "../../secret", "-1", ""):
        bad = server.raw("/data/sample", run=found["id"], step=step)
        assert (bad.status_code, bad.mimetype) == (404, "text/plain")


def test_texts_of_runs_are_data_in_every_route(tmp_path):
    settings = {**SETTINGS, f"constraints.{ATTACK}": 1.0, "constraints": ATTACK, "dataset": ATTACK}
    for seed in (0, 1):
        write_run(
            tmp_path / f"x onerror=alert({seed})",
            seed=seed,
            settings={**settings, "architecture": f"{ATTACK}{seed}"},
            metrics={ATTACK: (1.0, 2.0), "critic/wasserstein": (1.0, 2.0)},
            evaluation={f"{ATTACK}/distance": (1.0, 2.0)},
            health=[f"{ATTACK}: {ATTACK}"],
            warnings=[ATTACK],
            status=ATTACK,
            error=ATTACK,
        )
    server = Server(tmp_path)
    runs = server.get("/data/overview")["runs"]
    asked = [
        server.raw("/data/overview"),
        server.raw("/data/compare"),
        server.raw("/data/compare", curve=ATTACK, against=ATTACK),
        server.raw("/data/run", run=runs[0]["id"]),
        server.raw("/data/run", run=ATTACK),
        server.raw("/data/series", run=runs[0]["id"], tag=ATTACK),
        server.raw("/data/sample", run=ATTACK, step=ATTACK),
    ]
    for answer in asked:
        assert answer.mimetype in ("application/json", "text/plain")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert json.loads(asked[5].data)["series"][ATTACK]["values"] == [1.0, 2.0]


@pytest.mark.parametrize(
    "query",
    [{"curve": "no such metric"}, {"metric": "no such metric"}, {"against": "nobody"}, {"metric": "x" * 10_000}],
)
def test_wrong_questions_are_answered_in_a_sentence(sweep, query):
    answer = Server(sweep).raw("/data/compare", **query)
    assert answer.status_code in (200, 400)
    data = json.loads(answer.data)
    assert data.get("error") or data.get("curve_problem") or "metric" in query


@pytest.mark.parametrize("query", [{}, {"metric": "no/such"}])
def test_the_server_collects_again_after_an_answer(sweep, query):
    Server(sweep).get("/data/compare", **query)
    assert gc.isenabled()


def test_empty_folder_and_none(tmp_path):
    for folder in (tmp_path, tmp_path / "missing", ""):
        server = Server(folder)
        assert not server.tab.is_active()
        assert server.get("/data/overview")["runs"] == []
        assert server.get("/data/compare")["configurations"] == []


def test_folders_of_a_specification(sweep):
    server = Server("", logdir_spec=f"a:{sweep / 'weight=1.0'},{sweep / 'weight=10.0'},gs://bucket/x")
    assert len(server.get("/data/overview")["runs"]) == 8


def test_page_is_complete_and_asks_nobody_else():
    names = static_files()
    server = Server("")
    assert {"index.js", "style.css", "vendor/uPlot.js"} <= set(names)
    for name in names:
        answer = server.raw(f"/{name}")
        assert answer.status_code == 200
        text = answer.data.decode()
        if name.startswith("vendor/"):
            continue
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|https?://(?!www\.w3\.org/2000/svg')|setAttribute\(.style",
            text,
        ), name
        for module in re.findall(r"from '\./([^']+)'", text):
            assert module in names


def test_tensorboard_finds_the_tab():
    from tensorboard import default

    assert GanlabTab in default.get_dynamic_plugins()


HOSTS = [
    # host given, bound to all, Host header, whether it is answered
    (None, False, "localhost:6006", True),
    (None, False, "LOCALHOST", True),
    (None, False, "localhost.:16006", True),  # the other end of an SSH tunnel
    (None, False, "127.0.0.1:6006", True),
    (None, False, "127.1.2.3", True),
    (None, False, "[::1]:6006", True),
    ("127.0.0.1", False, "localhost:1", True),
    (None, False, "evil.example:6006", False),
    (None, False, "localhost.evil.example", False),
    (None, False, "127.0.0.1.evil.example", False),
    (None, False, "203.0.113.7:6006", False),
    (None, False, "", False),
    (None, False, ".", False),
    (None, False, "localhost, evil.example", False),
    (None, False, "user@localhost", False),
    (None, False, "proxy.example", True),
    ("gpu7.lan", False, "gpu7.lan:6006", True),
    ("gpu7.lan", False, "evil.example", False),
    ("0.0.0.0", False, "203.0.113.7:6006", True),
    (None, True, "203.0.113.7:80", True),
    (None, True, "[2001:db8::7]:80", True),
    (None, True, "bench", True),
    (None, True, "bench.lab.example:6006", True),
    (None, True, "evil.example", False),
]


@pytest.mark.parametrize(("host", "bind_all", "header", "answered"), HOSTS)
def test_only_requests_to_the_server_itself_are_answered(monkeypatch, host, bind_all, header, answered):
    monkeypatch.setenv(hosts.VARIABLE, "other.example, Proxy.example")
    monkeypatch.setattr(hosts, "_machine_names", lambda: frozenset({"bench", "bench.lab.example"}))
    app = hosts.guarded(Response("page"), SimpleNamespace(host=host, bind_all=bind_all))
    answer = Client(app, Response).get("/", headers={"Host": header})
    assert (answer.status_code, answer.data == b"page") == (200 if answered else 403, answered)
    assert answer.mimetype == "text/plain"


def test_every_route_refuses_requests_to_another_name(sweep):
    for route, app in Server(sweep).apps.items():
        assert Client(app, Response).get(route, headers={"Host": "evil.example"}).status_code == 403


def test_unexpected_error_in_one_run_is_a_row_of_its_own(sweep, monkeypatch):
    def read(path):
        if path.name == "s0":
            raise ZeroDivisionError("unforeseen")
        return read_run(path)

    monkeypatch.setattr(store, "read_run", read)
    monkeypatch.setattr(loaded_runs, "read_run", read)
    answer = Server(sweep).get("/data/overview")
    assert len(answer["runs"]) == 6
    assert len(answer["problems"]) == 2
    assert "weight=1.0/s0 cannot be read (ZeroDivisionError: unforeseen)" in answer["problems"][0]
    compared = CliRunner().invoke(cli, ["compare", str(sweep), "--all"], env={"COLUMNS": "500"})
    assert compared.exit_code == 0
    assert "ZeroDivisionError: unforeseen" in compared.output


def test_unexpected_error_in_one_run_hides_no_other_elsewhere(sweep, monkeypatch):
    def opened(path):
        if Path(path).name == "s0":
            raise ZeroDivisionError("unforeseen")
        return RunDirectory(path)

    def fields_of(path):
        opened(path)
        return read_fields(path)

    read_fields = listing.read_fields
    monkeypatch.setattr(listing, "read_fields", fields_of)
    for module in (watching, logfolder):
        monkeypatch.setattr(module, "RunDirectory", opened)
    listed = CliRunner().invoke(cli, ["runs", "list", str(sweep), "--json"])
    rows = json.loads(listed.stdout)
    assert [row["status"] for row in rows].count("unreadable") == 2
    problems = [row["problem"] for row in rows if row["problem"]]
    assert all("(ZeroDivisionError: unforeseen). Please report this" in problem for problem in problems)
    assert len(rows) == 8
    monkeypatch.setattr(watching, "status_of", lambda path, info, wait: "running")
    assert len(watching.Watcher(sweep, "critic/loss").look()) == 6
    with contextlib.closing(logfolder.LogFolder(lambda: find_runs(sweep))) as shown:
        shown.refresh()
        assert len(shown.names) == 8


NODE = """
const texts = [];
class Node {
  constructor(name) { this.name = name; this.style = {}; this.dataset = {}; this.children = []; }
  append(...children) { this.children.push(...children); }
  addEventListener() {}
  setAttribute() {}
  get text() { return this.data ?? this.children.map((one) => one.text).join(' '); }
}
globalThis.Node = Node;
globalThis.document = {
  createElement: (name) => new Node(name),
  createTextNode: (data) => Object.assign(new Node('text'), { data }),
};
globalThis.fetch = async () => ({ status: 200, text: async () => process.env.ANSWER });
if (process.env.QUERY) {
  const { query } = await import(`${process.env.STATIC}/query.js`);
  for (const text of JSON.parse(process.env.QUERY)) {
    const { accepts, problems } = query(text, ['status', ...Object.keys(JSON.parse(process.env.ANSWER)[0].of)]);
    const rows = JSON.parse(process.env.ANSWER).map((one) => ({ text: one.text, values: (name) => [one.of[name]] }));
    console.log(JSON.stringify([rows.map((row) => Number(accepts(row))).join(''), problems.length]));
  }
  process.exit(0);
}
const { ask } = await import(`${process.env.STATIC}/api.js`);
const { table } = await import(`${process.env.STATIC}/table.js`);
const { data } = await ask('compare');
const rows = data.configurations.map((one) => ({ ...one, colour: 'red', dash: [], shown: true }));
const { metrics } = data;
for (const name of ['', ...data.differing.map((one) => `s:${one}`), ...metrics.map((one) => `m:${one.tag}`)]) {
  const { table: made } = table(data, rows, { sort: name, statistics: true }, new Map(), {});
  console.log(JSON.stringify(made.children[1].children.map((row) => row.text)));
}
"""


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


def in_node(**environment):
    """What the script prints, line by line."""
    done = subprocess.run(
        ["node", "--input-type=module", "-e", NODE],
        env={**os.environ, **environment, "STATIC": (STATIC / "static").as_uri()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return map(json.loads, done.stdout.splitlines())


FILTERS = {
    # Which of four rows are accepted, of learning rates .001, .002, .01 and none, and whether a sentence complains.
    "": ("1111", 0),
    "lr>0.001": ("0110", 0),
    "learning_rate >= 0.002": ("0110", 0),
    "optimizers.adam.learning_rate=1e-2": ("0010", 0),
    "lr!=0.001": ("0110", 0),
    "lr>": ("1111", 0),
    "lr": ("1111", 0),  # on the way to a comparison
    "modes<6 lr<0.005": ("0100", 0),
    "status=fail": ("0001", 0),
    "CLIP": ("1010", 0),
    "-clip": ("0101", 0),
    "clip lr=0.001": ("1000", 0),
    "momentum>1": ("1111", 1),
}


@needs_node
def test_filter_takes_words_and_comparisons():
    rates, modes, states = (0.001, 0.002, 0.01, None), (7, 5, 3, None), ("completed",) * 3 + ("failed",)
    texts = ("weight_clipping", "r1", "weight_clipping", "r1")
    rows = [
        {
            "text": text,
            "of": {"optimizers.adam.learning_rate": rate, "evaluation/mode_coverage/modes": mode, "status": state},
        }
        for text, rate, mode, state in zip(texts, rates, modes, states, strict=True)
    ]
    found = list(in_node(ANSWER=json.dumps(rows), QUERY=json.dumps(list(FILTERS))))
    assert dict(zip(FILTERS, map(tuple, found), strict=True)) == FILTERS


@needs_node
def test_names_of_javascript_are_names_like_others(tmp_path):
    names = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"]
    for name in ["", *names]:
        write_run(
            tmp_path / "logs" / (name or "none"),
            settings={**SETTINGS, **({name: True} if name else {})},
            metrics={"critic/loss": (1.0, 2.0), **({name: (3.0, 4.0)} if name else {})},
        )
    data = Server(tmp_path / "logs").get("/data/compare", metric=[*names, "critic/loss"])
    assert set(data["differing"]) == set(names)
    for rows in in_node(ANSWER=json.dumps(data)):
        assert len(rows) == len(names) + 1
        assert sum(row.count("true") for row in rows) == len(names)  # its own setting alone
        assert sum("4" in row.split() for row in rows) == len(names)  # its own metric alone
        assert not any("native code" in row or "undefined" in row or "NaN" in row for row in rows)


@pytest.mark.parametrize(
    ("pattern", "known"),
    [
        *((p, True) for p in (".*critic/loss", "^constraints/[^/]+/slope$", r"(^a\-b$)|(^replica/\d+/a\-b$)")),
        *((p, False) for p in ("(a+)+$", "a*a*b", "(a|a)*b", "(^a+$)+", "a{9}+", "(a)\\1")),
    ],
)
def test_charts_ask_by_patterns_of_one_repetition_alone(pattern, known, monkeypatch):
    from ganlab_tensorboard import tabs

    asked = lambda self, ctx, run, pattern, experiment: {"tag_to_events": {}, "asked": pattern}  # noqa: E731
    monkeypatch.setattr(tabs.custom_scalars_plugin.CustomScalarsPlugin, "scalars_impl", asked)
    plugin = object.__new__(tabs.MarkedCustomScalars)
    assert plugin.scalars_impl(None, "run", pattern, "")["asked"] == (pattern if known else "(?!)")
