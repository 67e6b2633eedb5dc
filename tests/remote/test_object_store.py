"""Runs mirrored to a real S3 server on loopback that fails, hangs and is killed, and trainings that are killed."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

import ganlab

pytest.importorskip("s3fs")
pytest.importorskip("moto.server")
pytestmark = pytest.mark.slow

TOY = """
include 'base/toy.gin'
experiment.dataset = @datasets.gaussian_ring()
experiment.steps = 600
experiment.checkpoint_every = 60
experiment.log_every = 20
experiment.evaluate_every = 0
"""


class Store:
    """An S3 server whose answers a test chooses: `fault` is a status, "hang" or None."""

    def __init__(self):
        from moto.server import DomainDispatcherApplication, create_backend_app

        self.fault, self.refused, self.port, self.server = None, 0, 0, None
        self.app = DomainDispatcherApplication(create_backend_app)
        self.start()

    def __call__(self, environ, respond):
        fault = None if environ.get("HTTP_X_TEST") else self.fault
        if fault == "hang":
            time.sleep(5)
        if fault in (500, 503, 507):
            self.refused += 1
            respond(f"{fault} Refused", [("Content-Type", "application/xml")])
            return [b"<Error><Code>Full</Code><Message>no space left</Message></Error>"]
        return self.app(environ, respond)

    def start(self):
        from werkzeug.serving import make_server

        self.server = make_server("127.0.0.1", self.port, self, threaded=True)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def store(tmp_path, monkeypatch):
    import fsspec
    import s3fs

    monkeypatch.chdir(tmp_path)
    made = Store()
    settings = {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "FSSPEC_S3_ENDPOINT_URL": f"http://127.0.0.1:{made.port}",
        "FSSPEC_S3_CONFIG_KWARGS": json.dumps({"read_timeout": 2, "connect_timeout": 2}),
        "GANLAB_CACHE": str(tmp_path / "cache"),
        "GANLAB_FEATURES": str(tmp_path / "features"),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    fsspec.config.set_conf_env(fsspec.config.conf)
    s3fs.S3FileSystem.clear_instance_cache()
    urllib.request.urlopen(f"http://127.0.0.1:{made.port}/moto-api/reset", b"").close()
    fsspec.filesystem("s3").mkdir("bucket")
    (tmp_path / "toy.gin").write_text(TOY)
    yield made
    with contextlib.suppress(OSError):
        made.stop()
    fsspec.config.conf.pop("s3", None)


def start(folder, *words):
    folder.mkdir(exist_ok=True)
    with (folder / "log").open("ab") as log:
        command = [sys.executable, "-m", "ganlab", "run", *map(str, words)]
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env={**os.environ})


def reported(folder):
    """The step that a run's mirror was last reported to have; -1 for none."""
    with contextlib.suppress(OSError, ValueError):
        step = json.loads((folder / "runs" / "toy" / "a" / "mirror.json").read_text())["step"]
        return -1 if step is None else step
    return -1


def mirrored_steps(place):
    """The checkpoints in the mirror, each read and held against its checksums."""
    from ganlab_remote.opening import opened

    from ganlab.engine import Checkpoints

    place.mkdir()
    with contextlib.chdir(place), opened("s3://bucket/x/toy/a", "resume") as (path, _):
        found = Checkpoints(path / "checkpoints").all()
        assert [checkpoint.damage() for checkpoint in found] == [None] * len(found)
        return [checkpoint.step for checkpoint in found]


def figures(path):
    return [(r.step, r.tag, r.reduced, r.replicas) for r in ganlab.Run(path).metrics()], {
        name: value.tobytes() for name, value in newest(path).values()
    }


def newest(path):
    from ganlab.engine import Checkpoints

    return Checkpoints(path / "checkpoints").latest()


def until(process, holds, seconds=120):
    end = time.monotonic() + seconds
    while not holds() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


def test_killed_and_stopped_on_many_machines_equals_never_stopped_and_loses_no_reported_step(store, tmp_path):
    assert start(tmp_path / "quiet", "../toy.gin", "--name", "a").wait(300) == 0
    drawn = random.Random(7)
    repeated = ["../toy.gin", "--runs", "s3://bucket/x", "--resume-or-start", "a"]
    for number, sent in enumerate([signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, None]):
        machine = tmp_path / f"machine-{number}"
        process = start(machine, *(["--resume", "s3://bucket/x/toy/a"] if number % 2 else repeated))
        if sent is not None:
            goal = 60 + max(reported(tmp_path / f"machine-{number - 1}"), 0)
            until(process, lambda at=machine, goal=goal: reported(at) >= goal)
            time.sleep(drawn.random() / 2)
            process.send_signal(sent)
        code = process.wait(300)
        assert code == {signal.SIGKILL: -9, signal.SIGTERM: 143, None: 0}[sent], (machine / "log").read_text()
        if code == 143:
            assert "Resume it: ganlab run --resume s3://bucket/x/toy/a\n" in (machine / "log").read_text()
        assert max(mirrored_steps(tmp_path / f"reader-{number}")) >= reported(machine) > 0
    assert start(tmp_path / "once-more", *repeated).wait(300) == 0
    assert "Mirror: s3://bucket/x/toy/a has step 600." in (machine / "log").read_text()
    assert figures(machine / "runs" / "toy" / "a") == figures(tmp_path / "quiet" / "runs" / "toy" / "a")


@pytest.mark.parametrize("fault", [500, 507, "hang", "dead"])
def test_training_goes_on_while_the_store_fails_and_is_mirrored_when_it_answers(store, tmp_path, fault):
    process = start(tmp_path / "m", "../toy.gin", "--runs", "s3://bucket/x", "--name", "a")
    until(process, lambda: reported(tmp_path / "m") >= 60)
    if fault == "dead":
        store.stop()
    store.fault = fault
    time.sleep(6)
    before = reported(tmp_path / "m")
    store.fault = None
    if fault == "dead":
        store.start()
    assert max(mirrored_steps(tmp_path / "reader")) >= before
    log = tmp_path / "m" / "log"
    assert process.wait(300) == 0, log.read_text()
    assert "Mirror: s3://bucket/x/toy/a has step 600." in log.read_text()
    if fault != "hang":  # a request that is answered late is repeated
        assert log.read_text().count("Warning: Not mirrored: s3://bucket/x/toy/a cannot be") >= (before < 600)
    assert mirrored_steps(tmp_path / "last")[-1] == 600


def test_a_store_that_stays_full_ends_with_1_and_keeps_the_folder_from_which_it_is_sent_later(store, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import ganlab_remote.mirroring as m\nm._SECONDS = 3.0\n")
    os.environ["PYTHONPATH"] = str(site)
    try:
        process = start(tmp_path / "m", "../toy.gin", "--runs", "s3://bucket/x", "--name", "a")
        until(process, lambda: reported(tmp_path / "m") >= 60)
        store.fault = 507
        assert process.wait(300) == 1
    finally:
        del os.environ["PYTHONPATH"]
    said = (tmp_path / "m" / "log").read_text()
    step = reported(tmp_path / "m")
    assert f"Error: The last state of runs/toy/a is not in its mirror, which has step {step}: s3://bucket" in said
    store.fault = None
    assert mirrored_steps(tmp_path / "reader")[-1] == step
    assert start(tmp_path / "m", "--resume", "s3://bucket/x/toy/a").wait(300) == 2  # completed, and sent
    assert mirrored_steps(tmp_path / "last")[-1] == 600
