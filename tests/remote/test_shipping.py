"""A run that is pushed and pulled samples, certifies and replays as the run that was trained."""

import json
import struct

import numpy as np
import pytest
from click.testing import CliRunner

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
    generator = ganlab.Run(run).generator()
    kept = tensors(tmp_path / "zoo" / "ring" / "generator.safetensors")
    assert {name: value.tobytes() for name, value in kept.items()} == {
        weight.path.partition("/")[2]
        if weight.path.partition("/")[2] in kept
        else weight.path: weight.numpy().tobytes()
        for weight in generator.weights
    }
    for folder in ("from-mem", "from-zoo"):
        pulled = ganlab.Run(tmp_path / folder / "ring" / "one")
        assert np.array_equal(pulled.sample(16, seed=1), ganlab.Run(run).sample(16, seed=1))
        assert pulled.replay(6).differing == []
        assert pulled.certify(rungs="products").upper == ganlab.Run(run).certify(rungs="products").upper


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["pull", "memory://nothing"],
            "memory://nothing has no run.tar.gz. Give an address that 'ganlab push' wrote to.",
        ),
        (["pull", "nowhere://x"], "nowhere://x has a scheme that fsspec does not know."),
        (["push", "none", "memory://x"], "Run none not found"),
    ],
)
def test_what_cannot_be_pushed_or_pulled_is_refused_and_leaves_nothing(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
