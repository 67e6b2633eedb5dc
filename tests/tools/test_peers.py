"""The peers of the benchmarks compute what the loop written by hand does, on the same weights and examples.

PyTorch and JAX live in environments of their own: GANLAB_TORCH and GANLAB_JAX name interpreters that have them.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
SMALL = {"mlp": {"batch": 8, "width": 16}, "dcgan": {"batch": 3, "channels": 4}}
START = f"""
import json, sys
import numpy as np
sys.path.insert(0, {str(TOOLS)!r})
kind, small, given = sys.argv[1], json.loads(sys.argv[2]), np.load(sys.argv[3])
real, fake, mixing, latent = (given[name] for name in ("real", "fake", "mixing", "latent"))
def weights(role):
    return [given[f"{{role}}/{{i}}"] for i in range(sum(name.startswith(role) for name in given))]
from peers import serving
asked = serving.Asked(kind)
"""
KERAS = """
import tensorflow as tf
from peers import tf_loop
real, fake, mixing, latent = (tf.constant(x) for x in (real, fake, mixing, latent))
tf_loop.prepare(asked)
model = tf_loop.MODELS[kind](**small)
model.critic.set_weights(weights("critic")), model.generator.set_weights(weights("generator"))
losses = [tf_loop.critic_loss(model, real, fake, mixing), -model.critic(model.generator(latent)).numpy().mean()]
count = [sum(int(np.prod(w.shape)) for w in n.get_weights()) for n in (model.generator, model.critic)]
"""
JAX = """
from peers import jax_loop as peer
peer.prepare(asked)
model = peer.MODELS[kind](**small)
generator, critic = weights("generator"), weights("critic")
losses = [peer.critic_loss(model, critic, real, fake, mixing), peer.generator_loss(model, generator, critic, latent)]
count = [sum(int(np.prod(s)) for s in shapes) for shapes in model.shapes]
moved, _ = peer.adam([1.0], (0.0, [0.0], [0.0]), [-7.0])
assert abs(moved[0] - 1.0001) < 1e-6, moved  # the first step is the learning rate, against the gradient's sign
assert [w.shape for w in critic] == model.shapes[1], model.shapes
"""
TORCH = """
import torch
from peers import torch_compiled, torch_eager as peer
peer.MODELS[kind], make = lambda: make(**small), peer.MODELS[kind]
model, _, _ = peer.prepare(asked)
peer.load(model.critic, weights("critic"))
if kind == "dcgan":  # see `load`
    real, fake = (x[:, ::-1, ::-1].transpose(0, 3, 1, 2).copy() for x in (real, fake))
    mixing = mixing.transpose(0, 3, 1, 2)
real, fake, mixing, latent = (torch.tensor(x) for x in (real, fake, mixing, latent))
losses = [peer.critic_loss(model, real, fake, mixing)]
found = torch.autograd.grad(losses[0], list(model.critic.parameters()))
named = dict(model.critic.named_parameters())
of = lambda w: torch_compiled.critic_loss(model, w, real, fake, mixing)
with torch.no_grad():
    again, value = torch_compiled.grad_and_value(of)(named)
assert abs(value - losses[0].detach()) < 1e-5
assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, again.values()))
if kind == "mlp":
    peer.load(model.generator, weights("generator"))
    losses.append(-model.critic(model.generator(latent)).mean())
count = [sum(p.numel() for p in n.parameters()) for n in (model.generator, model.critic)]
"""
END = """
print(json.dumps({"losses": [float(loss) for loss in losses], "parameters": count}))
"""
SHAPES = {
    "mlp": (
        [(2, 16), (16,), (16, 16), (16,), (16, 16), (16,), (16, 2), (2,)],
        [(2, 16), (16,), (16, 16), (16,), (16, 16), (16,), (16, 1), (1,)],
    ),
    "dcgan": (
        [(128, 256), (256,), (5, 5, 8, 16), (8,), (5, 5, 4, 8), (4,), (5, 5, 1, 4), (1,)],
        [(5, 5, 1, 4), (4,), (5, 5, 4, 8), (8,), (5, 5, 8, 16), (16,), (256, 1), (1,)],
    ),
}


def python_of(module, variable):
    """An interpreter that has a module, or a skipped test."""
    named = os.environ.get(variable) or (sys.executable if importlib.util.find_spec(module) else "")
    if not named:
        pytest.skip(f"needs {module}: {variable}=PYTHON names an interpreter that has it")
    return named


def said(python, code, kind, given):
    """A peer's losses on the numbers in a file, and its counts of parameters: generator's and critic's."""
    command = [python, "-c", START + code + END, kind, json.dumps(SMALL[kind]), str(given)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module", params=["mlp", "dcgan"])
def reference(request, tmp_path_factory):
    """The model's name, a file of weights and examples, and what the loop written by hand says of them."""
    kind, random = request.param, np.random.default_rng(0)
    batch, shape = SMALL[kind]["batch"], {"mlp": (2,), "dcgan": (28, 28, 1)}[kind]
    arrays = {name: random.uniform(-1, 1, (batch, *shape)) for name in ("real", "fake")}
    arrays["mixing"] = random.uniform(0, 1, (batch, *(1 for _ in shape)))
    arrays["latent"] = random.normal(size=(batch, {"mlp": 2, "dcgan": 128}[kind]))
    for role, shapes in zip(("generator", "critic"), SHAPES[kind], strict=True):
        arrays |= {f"{role}/{i}": random.normal(size=s) * 0.2 for i, s in enumerate(shapes)}
    file = tmp_path_factory.mktemp("peers") / f"{kind}.npz"
    np.savez(file, **{name: value.astype(np.float32) for name, value in arrays.items()})
    return kind, file, said(sys.executable, KERAS, kind, file)


@pytest.mark.slow
@pytest.mark.parametrize(("peer", "script"), [("jax", JAX), ("torch", TORCH)], ids=["jax", "torch"])
def test_a_peer_has_the_same_losses(reference, peer, script):
    kind, file, expected = reference
    found = said(python_of(peer, f"GANLAB_{peer.upper()}"), script, kind, file)
    assert found["parameters"] == expected["parameters"]
    count = None if peer == "jax" else len(found["losses"])
    assert found["losses"] == pytest.approx(expected["losses"][:count], rel=1e-4)


@pytest.mark.slow
def test_a_peer_without_a_gpu_says_so():
    command = [sys.executable, str(TOOLS / "peers" / "tf_loop.py"), "mlp", "--device", "gpu"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"].startswith("TensorFlow sees no GPU. Install the extra")
