"""Penalties written in PyTorch, JAX and Keras: wrong ones are named by their convention, right ones pass.

The programs are those of docs/passport.md with another penalty in the place of theirs.
"""

import contextlib
import functools
import io
import re
import sys
from pathlib import Path

import pytest
from ganlab_passport import checking, passport, subjects, tensors
from ganlab_verify import maker

from ganlab.commands import plugins

PAGE = (Path(__file__).parents[2] / "docs" / "passport.md").read_text()
PROGRAMS = dict(re.findall(r"```python passport_(\w+)\.py\n(.*?)```", PAGE, re.S))
CASES = ("vectors-3", "images-3", "labels-3", "replicas-6", "flat-3")

# The beginnings that most penalties share, by framework: points between real and fake examples, and the gradient there.
TORCH = """
    real, fake = given["real"], given["fake"]
    n, a = len(real), {a}
    x = ({x}).detach().requires_grad_()
    (g,) = torch.autograd.grad({y}, x, create_graph=True)
    s = {s}
    return {cost}
"""
JAX = """
    real, fake = given["real"], given["fake"]
    n, a = len(real), {a}
    x = {x}
    g = jax.grad(lambda x: ({y}))(x)
    s = {s}
    return {cost}
"""
KERAS = """
    real, fake = given["real"], given["fake"]
    n, a = len(real), {a}
    x = {x}
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = {y}
    g = tape.gradient(y, x)
    s = {s}
    return {cost}
"""
ONES = "*[1] * (len(real.shape) - 1)"
BETWEEN = "a * real + (1 - a) * fake"
FRAMEWORKS = {
    "torch": (
        "def penalty(critic, given):" + TORCH,
        {"y": "critic(x).sum()", "s": "g.flatten(1).norm(dim=1)", "cost": "10 * ((s - 1) ** 2).mean()"},
    ),
    "jax": (
        "def penalty(critic, weights, given):" + JAX,
        {
            "y": "critic(weights, x).sum()",
            "s": "jnp.sqrt((g.reshape(n, -1) ** 2).sum(1) + 1e-12)",
            "cost": "10 * ((s - 1) ** 2).mean()",
        },
    ),
    "keras": (
        "def penalty(critic, given):" + KERAS,
        {
            "y": "critic(x)",
            "s": "tf.sqrt(tf.reduce_sum(tf.reshape(g, [n, -1]) ** 2, 1) + 1e-12)",
            "cost": "10 * keras.ops.mean((s - 1) ** 2)",
        },
    ),
}
ALPHA = {
    "torch": f'given["random/0"].reshape(-1, {ONES})',
    "jax": f'given["random/0"].reshape(-1, {ONES})',
    "keras": f'tf.reshape(given["random/0"], [-1, {ONES}])',
}
GP, R1, ONE_SIDED, ZERO = (
    f"constraints.{name}" for name in ("gradient_penalty", "r1", "lipschitz_penalty", "zero_centered_penalty")
)
REAL = {"x": "real", "a": "0"}

# The framework, what the penalty is checked against, what it has in the place of the right one's, what the check names.
WRONG = [
    # pytorch-wgan 40, caogang/wgan-gp 25, 47 and 56: images that were not flattened, with the channels second
    ("torch", GP, {"s": "g.norm(2, dim=1)"}, "norm over the channels alone"),
    ("torch", GP, {"cost": "10 * ((s ** 2 - 1) ** 2).mean()"}, "squared norm in the norm's place"),
    ("torch", GP, {"cost": "10 * ((s.detach() - 1) ** 2).mean() + 0 * critic(x).sum()"}, checking._NO_SECOND),
    # PyTorch-GAN 5
    ("torch", GP, {"a": 'given["other/uniform"]'}, "epsilon of one number for each coordinate"),
    ("torch", ONE_SIDED, {"cost": "10 * ((s - 1) ** 2).mean()"}, "two-sided"),
    # keras-io 910: the root of zero
    ("jax", GP, {"s": "jnp.sqrt((g.reshape(n, -1) ** 2).sum(1))"}, checking._NO_EPSILON),
    # ksim 451: the gradient by the model, as its review proposes
    (
        "jax",
        R1,
        {
            **REAL,
            "s": "sum((v ** 2).sum() for v in jax.grad(lambda w: critic(w, x).sum())(weights).values())",
            "cost": "5 * s",
        },
        "gradient by the critic's weights for that by its input",
    ),
    ("jax", GP, {"cost": "10 * ((s - 1) ** 2).sum()"}, "sum over the examples for their mean"),
    # keras-contrib 75
    ("jax", GP, {"y": "critic(weights, x).mean()"}, "gradient of the mean score: the slope divided by the batch"),
    # a mean on each of two replicas, which were summed
    (
        "jax",
        GP,
        {"cost": "10 * sum(((part - 1) ** 2).mean() for part in (jnp.split(s, 2) if n == 6 else [s]))"},
        "summed over replicas",
    ),
    # keras-contrib 232
    ("keras", GP, {"s": "tf.sqrt(tf.reduce_sum(g ** 2) + 1e-12)"}, "one norm over the whole batch"),
    # keras-io 143 and 415
    ("keras", GP, {"a": f'tf.reshape(given["other/normal"], [-1, {ONES}])'}, "epsilon from a normal distribution"),
    # tensorflow-generative-model-collections 14
    ("keras", GP, {"y": "tf.sigmoid(critic(x))"}, "gradient of a sigmoid's output for that of the logit"),
    ("keras", R1, {**REAL, "cost": "10 * keras.ops.mean(s ** 2)"}, "twice the weight"),
    ("keras", R1, {"x": "fake", "a": "0", "cost": "5 * keras.ops.mean(s ** 2)"}, "penalty at fake examples"),
    ("keras", GP, {"s": "tf.norm(g, axis=-1)", "cost": "10 * keras.ops.mean(tf.nn.relu(s - 1) ** 2)"}, "two at a time"),
]
COSTS = {
    GP: {},
    R1: {**REAL, "cost": "5 * (s ** 2).{mean}"},
    ONE_SIDED: {"cost": "10 * ({relu}(s - 1) ** 2).{mean}"},
    ZERO: {"cost": "10 * (s ** 2).{mean}"},
}
RELU = {"torch": "torch.relu", "jax": "jax.nn.relu", "keras": "tf.nn.relu"}
RIGHT = [
    (framework, selector, {part: text.replace("{relu}", RELU[framework]) for part, text in parts.items()})
    for framework in FRAMEWORKS
    for selector, parts in COSTS.items()
]


@functools.cache
def made(selector):
    component = plugins.discover().component(*selector.split("."))
    subject = subjects.Subject(selector, maker(component, {}), ())
    return passport.make(subject, [case for case in subject.cases() if case.name in CASES])


def program(framework, parts):
    """The page's program of a framework with a penalty of these parts."""
    body, own = FRAMEWORKS[framework]
    chosen = {"a": ALPHA[framework], "x": BETWEEN, **own, **parts}
    text = body.format(**chosen).replace(".{mean}", ".mean()")
    if framework == "keras":
        text = re.sub(r"(\d+ \* )\((.*)\)\.mean\(\)", r"\1keras.ops.mean(\2)", text)
    return re.sub(r"def penalty\(.*?\n\n\n", lambda _: text + "\n\n", PROGRAMS[framework], flags=re.S)


def answered(framework, of, parts, monkeypatch):
    """The answers of such a program, run in this process."""
    pytest.importorskip(framework, reason=f"{framework} is not installed: its programs are not checked")
    output = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO(of.given(".json").decode()))
    with contextlib.redirect_stdout(output):
        exec(compile(program(framework, parts), f"passport_{framework}.py", "exec"), {"__name__": "passport"})
    return tensors.decode(output.getvalue().encode(), framework)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "selector", "parts", "named"), WRONG)
def test_a_wrong_penalty_is_named(framework, selector, parts, named, monkeypatch):
    of = made(selector)
    verdict = checking.check(of, answered(framework, of, parts, monkeypatch))
    assert verdict.status == "failed"
    if named == "two at a time":
        assert "norm over the channels alone; one-sided" in verdict.conventions[0]
    else:
        assert list(verdict.conventions) == [named]


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "selector", "parts"), RIGHT)
def test_a_right_penalty_passes(framework, selector, parts, monkeypatch):
    of = made(selector)
    verdict = checking.check(of, answered(framework, of, parts, monkeypatch))
    assert (verdict.status, verdict.conventions, verdict.unanswered) == ("passed", [], []), verdict
    assert verdict.error < 1e-5
