"""`ganlab tensorboard` serves a folder of runs, and says clearly why it cannot."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest

from ganlab.cli.tensorboard import check_runs, launch, tensorboard
from ganlab.errors import RunError
from ganlab.runs import create_run


@pytest.fixture
def runs(tmp_path):
    create_run(tmp_path / "runs" / "quickstart" / "base", config="", operative="", info={"status": "completed"})
    return tmp_path / "runs"


def test_a_folder_without_runs_is_an_error(tmp_path):
    with pytest.raises(RunError, match=r"There is no folder .*nowhere of runs.*ganlab run --gin"):
        check_runs(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"holds no run: no run\.json at or below it"):
        check_runs(tmp_path)
    with pytest.raises(RunError, match="holds no run"):
        tensorboard.callback(tmp_path, None, None, False)


def test_a_port_that_is_taken_is_an_error(runs):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=rf"cannot serve on 127\.0\.0\.1, port {port}: .*{port}"):
            launch(runs, port, "127.0.0.1")


def test_it_serves_and_stops_at_ctrl_c(runs):
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from ganlab.cli.tensorboard import tensorboard; tensorboard()"
    command = [sys.executable, "-c", code, str(runs), "--port", "0", "--host", "127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        match = re.fullmatch(r"TensorBoard on .*runs: (http://127\.0\.0\.1:\d+/) \(Ctrl-C to stop\)\n", said)
        assert match
        with urllib.request.urlopen(f"{match[1]}data/environment", timeout=30) as answer:
            assert b'"window_title": "ganlab: ' in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert process.stdout.read() == "Stopped.\n"
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
