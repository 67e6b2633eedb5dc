"""Measures which layers and functions of PyTorch, JAX, TensorFlow and Keras have right second derivatives.

    python atlas.py torch|jax|tensorflow|keras [--only TEXT] [--case "POINT: CALL"] [--json FILE]

Needs numpy, the library, and atlas.txt beside it. For each call y(x, weights), in float64, the gradients of the penalty
mean((|ds/dx| - 1)**2) by x and by each weight, and v'Hv, are held against differences of the library's own ds/dx, and
ds/dx against differences of s. Here s = sum(c (y + y y / 4) + a x), H = d2s/dx2; a, c, v and weights are random.
"""

import argparse
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np

STEPS = 10.0 ** -np.arange(2, 8)  # of the differences
RIGHT, WRONG = (
    1e-5,
    1e-2,
)  # relative errors; one between them is printed as "to 1e-04" (kernels that compute in float32)


def torch(names, compiler):
    """PyTorch: autograd twice, the critic or the whole step compiled, and torch.func."""
    import torch

    def compiled(step):
        torch.compiler.reset()
        if hasattr(torch._dynamo.config, "trace_autograd_ops"):  # else the step is cut at each torch.autograd.grad
            torch._dynamo.config.trace_autograd_ops = True
        return torch.compile(step, backend=compiler, fullgraph=True)

    def layer(layer, x):
        keys, weights = [name for name, _ in layer.named_parameters()], [w.detach().numpy() for w in layer.parameters()]
        call = torch.func.functional_call
        return lambda x, *w: first_of(call(layer, dict(zip(keys, w)), x)), weights  # noqa: B905

    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    names |= {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    return SimpleNamespace(
        title=f"PyTorch {torch.__version__}", total=torch.sum, tensor=torch.as_tensor, layer=layer,
        compiled=compiled, first=lambda f: f,
        grad=lambda f, of: torch.autograd.grad(f(*of), of, create_graph=True, allow_unused=True),
        inner=lambda f, of: torch.func.grad(f)(*of), jvp=lambda f, x, v: torch.func.jvp(f, (x,), (v,))[1],
        input=lambda x: torch.tensor(x, requires_grad=True), array=lambda y: y.detach().numpy(),
    )  # fmt: skip


def jax(names, compiler):
    """JAX: grad of grad, with and without jit, and jvp."""
    import jax

    jax.config.update("jax_enable_x64", True)
    names |= {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "nn": jax.nn, "special": jax.scipy.special}
    return SimpleNamespace(
        title=f"JAX {jax.__version__}", total=jax.numpy.sum, tensor=jax.numpy.asarray, input=jax.numpy.asarray,
        compiled=jax.jit, first=jax.jit, array=np.asarray,
        grad=lambda f, of: jax.grad(f, tuple(range(len(of))))(*of), inner=lambda f, of: jax.grad(f)(*of),
        jvp=lambda f, x, v: jax.jvp(f, (x,), (v,))[1],
    )  # fmt: skip


def tensorflow(names, compiler):
    """TensorFlow: tapes, with and without XLA, and forward accumulators."""
    import tensorflow as tf

    def grad(f, of):
        with tf.GradientTape() as tape:
            tape.watch(of)
            y = f(*of)
        return tape.gradient(y, of)

    def jvp(f, x, v):
        with tf.autodiff.ForwardAccumulator(x, v) as forward:
            y = f(x)
        return forward.jvp(y)

    names |= {"tf": tf}
    return SimpleNamespace(
        title=f"TensorFlow {tf.__version__}", total=tf.reduce_sum, tensor=tf.constant, input=tf.constant,
        compiled=lambda step: tf.function(step, jit_compile=True), first=lambda f: f,
        grad=grad, inner=lambda f, of: grad(f, of)[0], jvp=jvp, array=lambda y: tf.convert_to_tensor(y).numpy(),
    )  # fmt: skip


def keras(names, compiler):
    """Keras on its backend, with the weights of a layer as arguments."""
    library = globals()[os.environ.get("KERAS_BACKEND", "tensorflow")](names, compiler)
    import keras

    def layer(layer, x):
        layer(x)

        def call(x, *w):
            with keras.StatelessScope(list(zip(layer.trainable_variables, w))):  # noqa: B905
                return first_of(layer(x))

        return call, [keras.ops.convert_to_numpy(w) for w in layer.trainable_variables]

    keras.config.set_floatx("float64")
    keras.utils.set_random_seed(0)
    names |= {"keras": keras, "L": keras.layers, "ops": keras.ops}
    library.layer, library.title = layer, f"Keras {keras.__version__} on {library.title}"
    return library


def calls(text):
    """Pairs of a point and a call from lines POINT: CALL; CALL; ... where {a,b} in a call stands for each of these."""
    for line in text.splitlines():
        point, _, rest = line.partition(": ")
        for call in filter(None, (call.strip() for call in rest.split(";"))):
            before, *pieces = re.split(r"\{(.*?)\}", call)
            yield from ((point, one.join([before, *pieces[1:]])) for one in (pieces[0].split(",") if pieces else [""]))


def differences(f, of, k, d):
    """Slopes of f along d in the k-th array, by each step at which those of both sides and of the middle agree."""
    for h in STEPS:
        a, b, c, e = (f([x + t * h * d if i == k else x for i, x in enumerate(of)]) for t in (-2, -1, 1, 2))
        slopes = np.array([c - b, 2 * (e - c), 2 * (b - a)]) / (2 * h)
        if np.ptp(slopes) <= 0.02 * np.abs(slopes).max() + 1e-8 * (1 + abs(c)):
            yield slopes[0], 1e-8 * (1 + abs(c))


def verdict(claim, slopes):
    """How a claimed slope compares with differences: a rank, the higher the worse, and a word."""
    if claim is not None and not np.isfinite(claim):
        return (4, "NaN") if slopes else (2, "kink, NaN")
    if not slopes:
        return 1, "kink"
    value = claim or 0.0
    error = min((abs(value - s) - floor) / max(abs(value), abs(s), floor) for s, floor in slopes)
    if error > WRONG:
        return 3, {None: "None", 0.0: "zero"}.get(claim, f"wrong by {error:.0%}")
    return (0, "right") if error <= RIGHT else (1, f"to {error:.0e}")


def first_of(y):
    """The first of several outputs."""
    return y[0] if isinstance(y, (tuple, list)) else y


def convert(y, one):
    """A result with arrays in place of tensors."""
    return None if y is None else [convert(part, one) for part in y] if isinstance(y, (list, tuple)) else one(y)


def measured(library, names, point, text):
    """The verdict on each way to differentiate a call twice, by the way's name."""
    rng, total, made = np.random.default_rng(0), library.total, []
    draw = names["n"] = lambda *shape: rng.normal(size=shape)
    x = np.asarray(eval(point, names))

    def new(*shape):
        made.append(draw(*shape) / 2)
        return library.tensor(made[-1])

    def out(x, *w):
        left = iter(w)
        return first_of(call(x, (lambda *shape: next(left)) if w else new))

    if re.search(r"\bx\b", text) and "lambda x" not in text:
        call = eval(f"lambda x, w: {text}", names)
    elif hasattr(one := eval(text, names), "parameters") or hasattr(one, "trainable_variables"):
        out, made = library.layer(one, library.tensor(x))
    else:
        out = one
    c = library.tensor(draw(*out(library.tensor(x)).shape))
    a, direction, of = library.tensor(draw(*x.shape)), draw(*x.shape), [x, *made]
    v, along = library.tensor(direction), [draw(*array.shape) for array in of]

    def s(*of):
        y = out(*of)
        return total(c * (y + y * y / 4)) + total(a * of[0])

    def penalty(slope, total=np.sum):
        return total((total(slope * slope, tuple(range(1, x.ndim))) ** 0.5 - 1) ** 2) / len(x)

    def reverse(*of):
        curve = library.grad(lambda *of: total(library.grad(s, of)[0] * v), of)[0]
        gradients = library.grad(lambda *of: penalty(library.grad(s, of)[0], total), of)
        return gradients, None if curve is None else total(curve * v)

    def mixed(x, *w):
        return (), library.jvp(lambda x: total(library.inner(s, (x, *w)) * v), x, v)

    def forward(x, *w):
        return (), library.jvp(lambda x: library.jvp(lambda x: s(x, *w), x, v), x, v)

    def arrays(f):
        return lambda of: convert(f(*map(library.input, of)), library.array)

    first = arrays(library.first(lambda *of: (s(*of), library.grad(s, of)[0])))
    ways = {"reverse": reverse, "compiled": library.compiled(reverse)}
    ways |= {"mixed": library.first(mixed), "forward": library.first(forward)}
    slopes = [[*differences(lambda of: penalty(first(of)[1]), of, k, d)] for k, d in enumerate(along)]
    slopes.append([*differences(lambda of: (first(of)[1] * direction).sum(), of, 0, direction)])
    value = verdict((first(of)[1] * direction).sum(), [*differences(lambda of: first(of)[0], of, 0, direction)])
    places, words = ["x", *(f"w{k}" for k in range(len(made))), "v'Hv"], {"first": value[1]}
    for name, way in ways.items():
        try:
            gradients, curve = arrays(way)(of)
        except Exception as error:
            words[name] = refusal(error)
            continue
        claims = [None if g is None else (g * d).sum() for g, d in zip(gradients, along)]  # noqa: B905
        claims += [None if curve is None else float(curve)]
        of_all = zip(claims[::-1], slopes[::-1], places[::-1])  # noqa: B905
        rank, word, place = max((*verdict(claim, truth), place) for claim, truth, place in of_all)
        words[name] = word if rank < 2 else f"{word} ({place})"
    return words


def refusal(error):
    """The first line of an error."""
    return f"refuses: {type(error).__name__}: {error}".splitlines()[0][:120]


def table(rows):
    """A Markdown table of the calls that are not right in every way; messages of refusals are left out."""
    ways = list({way: None for words in rows.values() for way in words})
    lines = [f"| at | call | {' | '.join(ways)} |", "|---" * (len(ways) + 2) + "|"]
    for row, words in rows.items():
        if not {*words.values()} <= {"right", "kink"}:
            point, call = row.split(": ", 1)
            cells = [words.get(way, "").partition(":")[0] for way in ways]
            lines.append(f"| `{point}` | `{call}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    """Measures, prints each call's verdicts and then the table, and adds the results to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=["torch", "jax", "tensorflow", "keras"])
    parser.add_argument("--only", default="", help="measure the calls with this text alone")
    parser.add_argument("--case", action="append", help="measure this instead")
    parser.add_argument("--json", type=Path, help="write the verdicts to this file, beside those of other libraries")
    parser.add_argument("--compiler", default="inductor", help="backend of torch.compile")
    given, names = parser.parse_args(), {"np": np}
    library, listed = globals()[given.library](names, given.compiler), Path(__file__).with_suffix(".txt").read_text()
    listed = "\n".join(given.case) if given.case else listed.split(f"[{given.library}]\n")[1].split("\n[")[0]
    rows = {}
    for point, call in calls(listed):
        if given.only in call:
            try:
                words = measured(library, names, point, call)
            except Exception as error:
                words = {"first": refusal(error)}
            rows[f"{point}: {call}"] = words
            print(f"{point}: {call}", words, flush=True)
    print(f"\n{library.title}\n\n{table(rows)}")
    if given.json:
        results = json.loads(given.json.read_text()) if given.json.exists() else {}
        given.json.write_text(json.dumps({**results, library.title: rows}, indent=1))


if __name__ == "__main__":
    main()
