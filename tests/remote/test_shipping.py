"""A run that is pushed and pulled samples, certifies and replays as the run that was trained."""

import base64
import json
import os
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from click.testing import CliRunner
from ganlab_remote.shipping import card

import ganlab
from ganlab.cli import cli

pytest.importorskip("fsspec")

TOY = """
include 'base/toy.gin'
experiment.dataset = @datasets.gaussian_ring()
experiment.steps = 6
experiment.checkpoint_every = 3
experiment.log_every = 1
experiment.evaluate_every = 0
experiment.constraints = [@constraints.spectral_norm()]
experiment.generator_constraints = [@constraints.spectral_norm()]
"""


def call(*words):
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def tensors(path):
    """The arrays of a safetensors file, read by its definition."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(body[slice(*row["data_offsets"])], np.float32).reshape(row["shape"])
        for name, row in header.items()
    }


@pytest.mark.slow
def test_a_pulled_run_samples_certifies_and_replays_its_last_step(trained, tmp_path, monkeypatch):
    run = trained(TOY)
    monkeypatch.chdir(tmp_path)
    for address in ("memory://zoo/ring", "zoo/ring"):
        call("push", run, address, "--certify")
        assert call("pull", address, "-o", f"from-{address[:3]}").strip() == f"from-{address[:3]}/ring/one"
    card = (tmp_path / "zoo" / "ring" / "README.md").read_text()
    assert "| critic's Lipschitz constant | at most " in card
    assert "the checkpoints of step 3, 6" in card
    assert "`critic.safetensors`, `generator.safetensors`: the networks' weights" in card
    for name in ("generator", "critic"):
        kept = tensors(tmp_path / "zoo" / "ring" / f"{name}.safetensors")
        weights = {weight.path: weight.numpy() for weight in ganlab.Run(run).network(name).weights}
        assert kept.keys() == weights.keys()
        assert all(np.array_equal(kept[path], weights[path]) for path in kept)
        largest = [np.linalg.svd(kernel)[1][0] for kernel in kept.values() if kernel.ndim == 2]
        assert largest == pytest.approx([1.0] * len(largest), abs=0.2)  # as constrained, by few power iterations
    for folder in ("from-mem", "from-zoo"):
        pulled = ganlab.Run(tmp_path / folder / "ring" / "one")
        assert np.array_equal(pulled.sample(16, seed=1), ganlab.Run(run).sample(16, seed=1))
        assert pulled.replay(6).differing == []
        assert pulled.certify(rungs="products").upper == ganlab.Run(run).certify(rungs="products").upper


def test_a_card_has_no_link_and_no_mark_of_a_strangers_run():
    text = "![t](https://evil.example) **Verified** www.evil.example"
    info = {"settings": {"dataset": text}, "provenance": {"git": {"commit": text}}, "evaluation": {text: 1.0}}
    shown = card(info, 1, "memory://zoo/ring", [], None, []).partition("| data |")[2]
    assert not any(found in shown.replace("\\]", "") for found in ("![", "](", " **", "https://", "www."))


class Hub(BaseHTTPRequestHandler):
    """The part of the Hub's interface that its client uses for a small repository, whose files are `files`."""

    files, commit = {}, "0" * 40

    def log_message(self, *words):
        pass

    def answer(self, data, status=200):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        here = f"http://{self.headers['Host']}/me/ring"
        if "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(sent)["files"]]
            regular = {"uploadMode": "regular", "shouldIgnore": False}
            return self.answer({"files": [{"path": name, **regular} for name in names]})
        for line in sent.splitlines() if "/commit/" in self.path else ():
            row = json.loads(line)
            if row["key"] == "file":
                self.files[row["value"]["path"]] = base64.b64decode(row["value"]["content"])
        at = f"{here}/commit/{self.commit}"
        self.answer({"url": here, "commitUrl": at, "commitOid": self.commit, "errors": [], "warnings": []})

    def do_GET(self):
        if "/tree/" in self.path:
            files = self.files.items()
            return self.answer([{"type": "file", "path": n, "size": len(d), "oid": self.commit} for n, d in files])
        if "/resolve/" in self.path:
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            return self.answer(self.files[self.path.rpartition("/")[2]][first : last + 1], 206)
        self.answer({"id": "me/ring", "sha": self.commit, "siblings": [], "private": False, "tags": []})


@pytest.mark.slow
def test_the_client_of_the_hub_pushes_and_pulls(trained, tmp_path):
    pytest.importorskip("huggingface_hub")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_TOKEN": "hf_x", "HF_HOME": str(tmp_path)}
    run = trained(TOY)
    for words in (["push", run, "hf://me/ring"], ["pull", "hf://me/ring"]):
        command = [sys.executable, "-m", "ganlab", *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **endpoint}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    server.shutdown()
    assert {"README.md", "generator.safetensors", "critic.safetensors", "run.tar.gz"} <= Hub.files.keys()
    for name in ("metrics.jsonl", "checkpoints/step-00000006/variables.data-00000-of-00001"):
        assert (tmp_path / "runs" / "ring" / "one" / name).read_bytes() == (run / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pull", "memory://b/.."], "does not end in a name"),
        (
            ["pull", "memory://nothing"],
            "memory://nothing has no run.tar.gz. Give an address that 'ganlab push' wrote to.",
        ),
        (["pull", "nowhere://x"], "nowhere://x has a scheme that fsspec does not know."),
        (["push", "none", "memory://x"], "Run none not found"),
        (["pull", "-"], "- is standard input or output"),
        (["run", "--resume", ".", "--runs", "memory://b"], "An address of --runs is for a new run: with --resume,"),
    ],
)
def test_what_cannot_be_pushed_pulled_or_mirrored_is_refused_and_leaves_nothing(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
