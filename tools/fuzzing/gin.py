"""Fuzz target: an invalid experiment file is one `GanlabError`; a valid one can be written and read back."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from fuzzing.drawing import mutated, weighted
from ganlab import config
from ganlab.errors import GanlabError

Sources = tuple[dict[str, bytes], list[str]]

_LEFT = [
    "experiment.steps",
    "experiment.seed",
    "experiment.constraints",
    "experiment.evaluators",
    "experiment.dataset",
    "experiment.jit",
    "experiment.ema_decay",
    "constraints.gradient_penalty.weight",
    "gradient_penalty.weight",
    "a/gradient_penalty.weight",
    "a/b/constraints.r1.every",
    "evaluators.kid.features",
    "features.inception.path",
    "digits.labels",
    "m",
    "n",
    "a/n",
    "experiment",
    "losses",
    "constraints.r1",
    "no.such.thing",
]
_ATOMS = [
    *("1", "-1", "0", "3", "1e999", "-1e999", "0.5", "True", "None", "'off'", "'x'", "b'x'", "1_0", "0x1F"),
    *("@digits()", "@constraints.gradient_penalty()", "@a/gradient_penalty()", "@a/b/r1()", "@r1", "@kid()", "@r2()"),
    *("@features.pixels()", "@features.inception()", "%m", "%n", "%a/n", "%none"),
]
_LINES = [
    *("include 'exp.gin'", "include 'other.gin'", "include 'quickstart'", "include '../../etc/passwd'", "include 3"),
    *("import os", "from a import b as c", "experiment:\n  steps = 3", "r1:\n  every = 2", "experiment:", "# said", ""),
    *(
        "m = off",
        "m = nan",
        "m = 1 2",
        "m = '",
        "m =",
        "m = @",
        "m = %",
        "n = " + "9" * 5000,
        "m = [",
        "m = " + "[" * 400,
    ),
]
_USEFUL = [
    "experiment.constraints = [@a/gradient_penalty(), @r1(), @b/gradient_penalty()]",
    "experiment.evaluators = [@kid(), @evaluators.sliced_wasserstein()]",
    "kid.features = @features.pixels()",
    "a/gradient_penalty.weight = %m",
    "gradient_penalty.weight = %n",
    "m = 2.0",
    "n = %m",
    "r1.gamma = 3",
    "digits.labels = [1, %k]",
    "k = 7",
    "experiment.seed = %k",
]
_BYTES = [*"=:@%()[]{},'\"\\#\n\t\0\r\x0c./-é\u2028\ufeff$"]
_PIECES = [piece.encode() for piece in (*_LEFT, *_ATOMS, *_LINES, *_USEFUL, *_BYTES)]


def sources() -> st.SearchStrategy[Sources]:
    """Two files, which may include each other, and overrides."""
    shipped = [path.read_bytes() for path in config.shipped_gin_files()]
    left, value = st.sampled_from(_LEFT), _values()
    setting = st.builds(lambda left, value: f"{left} = {value}", left, value)
    line = weighted((30, st.sampled_from(_USEFUL)), (5, setting), (1, st.sampled_from(_LINES)))
    first = st.sampled_from(["include 'quickstart'", "include 'base/wgan_gp.gin'"])
    built = st.builds(lambda first, lines: "\n".join([first, *lines, ""]).encode(), first, st.lists(line, max_size=12))
    noise = st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda t: t.encode("utf-8", "surrogatepass")))
    whole = weighted((6, built), (3, mutated(shipped, _PIECES)), (1, noise))
    param = st.one_of(st.builds(lambda left, value: f"{left}={value}", left, value), st.text(max_size=20))
    params = weighted((4, st.just([])), (1, st.lists(param, max_size=2)))
    return st.tuples(st.fixed_dictionaries({"exp.gin": whole, "other.gin": whole}), params)


def check(drawn: Sources, folder: Path) -> None:
    """Reads `exp.gin` in a folder of its own."""
    files, params = drawn
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with _within(folder), contextlib.suppress(GanlabError):
        recipe = config.load(["exp.gin"], params)
        config.flatten(recipe)
        try:
            (folder / "again.gin").write_text(config.render(recipe), encoding="utf-8")
            again = config.load(["again.gin"])
        except GanlabError as error:
            raise AssertionError(f"{recipe} cannot be written down: {error}") from error
        assert repr(again) == repr(recipe), f"{recipe} reads back as {again}"


def _values() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(_ATOMS),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
            st.lists(inner, max_size=3).map(lambda items: f"({', '.join(items)},)"),
            st.lists(st.tuples(inner, inner), max_size=2).map(_dict),
        ),
        max_leaves=5,
    )


def _dict(pairs: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
