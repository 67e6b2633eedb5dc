"""Patterns name runs as a shell would, and neither links nor names make that take long."""

import contextlib
import time

import pytest
from ganlab_compare.labels import resolve, shortened
from ganlab_sweep.configurations import _word
from ganlab_sweep.space import parse_space
from ganlab_tensorboard.command import found_runs
from resting_runs import make

from ganlab.errors import ConfigError
from ganlab.runs.directory import runs_matching
from ganlab.runs.naming import differing


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ring/lazy-1", "ring/lazy-2", "ring/eager", "a[1]/one", ".hidden/two", "ring/.hidden/three"):
        make(tmp_path / "runs" / name)
    return tmp_path / "runs"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("runs", ["a[1]/one", "ring/eager", "ring/lazy-1", "ring/lazy-2"]),
        ("runs/ring/lazy-1", ["ring/lazy-1"]),
        ("runs/*/lazy-*", ["ring/lazy-1", "ring/lazy-2"]),
        ("runs/**/lazy-?", ["ring/lazy-1", "ring/lazy-2"]),
        ("./runs/../runs/*/eager", ["ring/eager"]),
        ("runs/r**g/eager", ["ring/eager"]),
        ("runs/[r]ing/lazy-[!1]", ["ring/lazy-2"]),
        ("runs/a[1]", ["a[1]/one"]),
        ("runs/.hidden/*", [".hidden/two"]),
        ("runs/nothing*", []),
        ("nothing", []),
    ],
)
def test_pattern_names_runs(runs, pattern, names):
    for given in (pattern, str(runs.parent / pattern)):
        found = dict.fromkeys(path.resolve().relative_to(runs).as_posix() for path in runs_matching(given))
        assert sorted(found) == names
        assert list(map(str, found_runs([given]))) == list(map(str, runs_matching(given)))


def test_links_in_circles_end(runs):
    for name in ("a", "b", "c"):
        (runs / "ring" / name).symlink_to(".")
        (runs / "ring" / "lazy-1" / name).symlink_to("..")
    assert {path.name for path in runs_matching("runs/**")} == {"lazy-1", "lazy-2", "eager", "one"}


LONG = {
    "settings of one run": lambda: differing(
        [{f"a{i}.b": i for i in range(2000)}, {f"a{i}.b": 0 for i in range(2000)}]
    ),
    "names of many parts": lambda: shortened(["a." * 300_000, "b." * 300_000]),
    "many names": lambda: shortened([f"a{i}.b.c/d" for i in range(20_000)]),
    "unknown of many": lambda: resolve("nowhere", [f"a{i}/b/c" for i in range(20_000)], "metric"),
    "unknown of long ones": lambda: resolve("nowhere", ["/" * 300_000], "metric"),
    "spaces": lambda: _word("a" + " " * 100_000 + "b"),
    "dots": lambda: parse_space([], ["a.b=" + "." * 100_000 + ":"]),
    "digits": lambda: parse_space([], ["a.b=" + "1" * 100_000 + "..x"]),
}


@pytest.mark.parametrize("kind", LONG)
def test_long_names_take_linear_time(kind):
    began = time.process_time()
    with contextlib.suppress(ConfigError):
        LONG[kind]()
    assert time.process_time() - began < 5
