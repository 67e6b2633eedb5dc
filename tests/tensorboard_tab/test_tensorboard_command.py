"""`ganlab tensorboard` labels runs by the settings in which they differ, compares them, and reports clear errors."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from ganlab_tensorboard.command import check_runs, found_runs, launch, tensorboard

from ganlab.errors import RunError
from ganlab.runs import create_run
from ganlab.telemetry import Record
from ganlab.telemetry.tensorboard_writer import TensorBoardWriter

pytestmark = pytest.mark.slow

SHARED = {"dataset": "digits", "experiment.batch_size": 64, "experiment.steps": 2}


def make_run(path: Path, seed: int, constraint: str, **settings):
    """A finished run of two steps on two replicas, written without training."""
    settings = {**SHARED, "constraints": constraint, "experiment.seed": seed, **settings}
    create_run(path, config="", operative="", info={"status": "completed", "settings": settings})
    writer = TensorBoardWriter(path)
    writer.layout(["critic/loss"])
    writer.hparams(settings)
    for step in (1, 2):
        writer.scalars([Record(step, "critic/loss", -step / 4, (-step / 8, -3 * step / 8))])
        writer.scalars([Record(step, "critic/wasserstein", step / 4 + seed, (step / 8, 3 * step / 8))])
        writer.scalars([Record(step, "constraints/c/slope", 1.0, (1.0, 1.0))])
        writer.scalars([Record(step, "diagnostics/slopes/real/mean", 1.0)])
        writer.scalars([Record(step, "evaluation/exact_w1/distance", 1 / step)])
    writer.session_end("completed")
    writer.close()


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    gp = {"constraints.gradient_penalty.weight": 10.0, "constraints.gradient_penalty.target": 1.0}
    make_run(folder / "digits" / "20260801-120000-s0-1f2e", 0, "gradient_penalty", **gp)
    make_run(folder / "digits" / "20260801-120100-s1-aaaa", 1, "gradient_penalty", **gp)
    make_run(folder / "digits" / "20260801-120200-s0-bbbb", 0, "spectral_norm")
    return folder


@contextlib.contextmanager
def serving(*arguments, **environment):
    """Context manager: the process, its address and its output; stopped at the end."""
    # A background shell makes its children ignore SIGINT.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from ganlab.cli import main; main()"
    command = [sys.executable, "-c", code, "tensorboard", *map(str, arguments), "--port", "0", "--host", "127.0.0.1"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment
    )
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        opening = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", opening)
        assert address, opening
        yield process, address[0], opening
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def get(url: str, **post):
    data = json.dumps(post).encode() if post else None
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def wait_for_runs(address: str, names: set[str], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while (shown := set(get(f"{address}data/runs"))) != names:
        assert time.monotonic() < until, f"it shows {shown}, not {names}"
        time.sleep(0.2)


def table(address: str):
    """The HParams tab: the columns of settings and of metrics in order, and each row's values."""
    experiment = get(f"{address}data/plugin/hparams/experiment", includeMetrics=True)
    columns = [info["name"] for info in experiment["hparamInfos"]]
    metrics = [info["name"]["tag"] for info in experiment["metricInfos"]]
    request = {"allowedStatuses": ["STATUS_SUCCESS"], "startIndex": 0, "sliceSize": 100}
    request["colParams"] = [{"hparam": name, "includeInResult": True} for name in columns]
    groups = get(f"{address}data/plugin/hparams/session_groups", **request)["sessionGroups"]
    rows = {
        group["name"]: {**group["hparams"], **{value["name"]["tag"]: value["value"] for value in group["metricValues"]}}
        for group in groups
    }
    return columns, metrics, rows


NAMES = {"gradient_penalty s0", "gradient_penalty s1", "spectral_norm s0"}
LINES = ["critic/loss", "replica/0/critic/loss", "replica/1/critic/loss"]
RESULTS = ["evaluation/exact_w1/distance", "critic/wasserstein", "critic/loss"]


# TensorBoard reads with its own data server, or in Python on machines without one.
@pytest.mark.parametrize(
    "server", ["", pytest.param("/nowhere", marks=pytest.mark.slow)], ids=["fast loader", "python loader"]
)
def test_runs_are_compared_by_differing_settings_including_a_later_run(runs, server):
    environment = {"TENSORBOARD_DATA_SERVER_BINARY": server} if server else {}
    with serving(runs, **environment) as (process, address, message):
        assert message.startswith(f"TensorBoard on {runs}, 3 runs: ")
        assert get(f"{address}data/environment")["window_title"] == f"ganlab: {runs}"
        wait_for_runs(address, NAMES)
        columns, metrics, rows = table(address)
        # Not the settings that all runs share, nor the weight, which has one value, nor curves of replicas.
        assert columns == ["constraints", "experiment.seed"]
        assert metrics == RESULTS
        common = {"critic/loss": -0.5, "evaluation/exact_w1/distance": 0.5}
        assert rows["gradient_penalty s1"] == {
            "constraints": "gradient_penalty",
            "experiment.seed": 1.0,
            "critic/wasserstein": 1.5,
            **common,
        }
        assert rows["spectral_norm s0"] == {
            "constraints": "spectral_norm",
            "experiment.seed": 0.0,
            "critic/wasserstein": 0.5,
            **common,
        }
        assert rows.keys() == NAMES
        for name in NAMES:
            chart = f"data/plugin/custom_scalars/scalars?tag=.*critic/loss&run={urllib.parse.quote(name)}"
            assert list(get(address + chart)["tag_to_events"]) == LINES

        weight = {"constraints.gradient_penalty.weight": 1.0, "constraints.gradient_penalty.target": 1.0}
        make_run(runs / "digits" / "20260801-130000-s0-cccc", 0, "gradient_penalty", **weight)
        later = "gradient_penalty.weight=1 s0"
        wait_for_runs(address, NAMES | {later})
        columns, _, rows = table(address)
        assert columns == ["constraints", "constraints.gradient_penalty.weight", "experiment.seed"]
        weights = {name: row.get("constraints.gradient_penalty.weight") for name, row in rows.items()}
        assert weights == {
            "gradient_penalty s0": 10.0,
            "gradient_penalty s1": 10.0,
            "spectral_norm s0": None,
            later: 1.0,
        }
        process.terminate()
        rest, errors = process.communicate(timeout=30)
        assert (process.returncode, rest) == (0, "Stopped.\n")
        assert errors == ""


def test_requests_to_another_name_are_refused_by_every_tab(runs):
    with serving(runs) as (_, address, _):
        port = address.rsplit(":", 1)[1]
        for route in ("", "data/runs", "data/plugins_listing", "data/plugin/ganlab/data/overview"):
            for host, code in (("evil.example", 403), (f"evil.example:{port}", 403), ("localhost:1", 200)):
                request = urllib.request.Request(f"{address}{route}", headers={"Host": host})
                if code == 200:
                    assert urllib.request.urlopen(request, timeout=30).status == 200
                    continue
                with pytest.raises(urllib.error.HTTPError, match="403") as refused:
                    urllib.request.urlopen(request, timeout=30)
                assert b"GANLAB_TENSORBOARD_HOSTS" in refused.value.read()


def test_ctrl_c_stops_the_server_without_tensorflow_or_leftovers(runs, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with serving(runs, TMPDIR=str(temporary)) as (process, address, _):
        wait_for_runs(address, NAMES)
        table(address)
        maps = Path(f"/proc/{process.pid}/maps")
        assert not maps.exists() or "/tensorflow/" not in maps.read_text()
        assert [path.name.rpartition("-")[0] for path in temporary.glob("ganlab*")] == ["ganlab-tensorboard"]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    assert not list(temporary.glob("ganlab*"))
    assert len(list(found_runs([str(runs)]))) == 3


def test_argument_without_runs_is_an_error(tmp_path):
    with pytest.raises(RunError, match=r"There is no folder .*nowhere\..*ganlab run --gin"):
        check_runs([str(tmp_path / "nowhere")])
    with pytest.raises(RunError, match=r"has no run: no run\.json at or below it"):
        check_runs([str(tmp_path)])
    with pytest.raises(RunError, match=r"No run matches '.*/s\*'.*ganlab runs list"):
        check_runs([f"{tmp_path}/s*"])
    with pytest.raises(RunError, match="has no run"):
        tensorboard.callback((str(tmp_path),), None, None, False)


def test_taken_port_is_an_error(runs):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=rf"cannot serve on 127\.0\.0\.1, port {port}: .*{port}"):
            launch(runs, port, "127.0.0.1", title="runs")
