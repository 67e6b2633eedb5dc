"""Fuzz target: names from any text are one component of a path and one line on a screen, and never lead elsewhere."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ganlab_tensorboard.run_names import run_names
from hypothesis import strategies as st

from fuzzing.drawing import WORDS
from ganlab.errors import GanlabError
from ganlab.runs import create_run, find_runs, new_run_path
from ganlab.support.paths import LONGEST_BYTES, as_name, is_name
from ganlab.support.terminal import line, lines

_PIECES = ["/", ".", "..", "\0", "\n", "\r", "\x1b[2J", "\x9b", "\u202e", "\u2028", "\ud800", "\udcff", " ", "a"]
_LONGEST = 400


def texts() -> st.SearchStrategy[list[str]]:
    """Some texts: characters that break names, and arbitrary ones."""
    letters = st.characters(codec=None) | st.sampled_from(_PIECES)
    pieces = st.lists(letters, max_size=12).map("".join)
    long = st.builds(lambda text, times: (text * times)[:_LONGEST], pieces, st.integers(1, 300))
    return st.lists(st.one_of(pieces, WORDS, long), min_size=3, max_size=3)


def check(drawn: list[str], folder: Path) -> None:
    """Makes names of texts, and runs of the names."""
    for text in drawn:
        name = as_name(text)
        assert is_name(name)
        assert as_name(name) == name
        assert (name == text) == is_name(text)
        assert name.isprintable()
        assert "/" not in name
        assert name[0] != "."
        assert len(name.encode()) <= LONGEST_BYTES
        assert line(text).isprintable()
        assert lines(text).count("\n") == text.count("\n")
    assert len(set(map(as_name, drawn))) == len(set(drawn))
    _run(drawn, folder)
    _links(drawn, folder)


def _run(drawn: list[str], folder: Path) -> None:
    stem, name, _ = drawn
    runs = folder / "runs"
    for chosen in (None, name):
        with contextlib.suppress(GanlabError):
            path = new_run_path(runs, stem, 0, chosen)
            create_run(path, config="", operative="", info={"status": "completed"})
            assert path.parent.parent == runs
            assert path in list(find_runs(runs))
    assert {path.name for path in folder.iterdir()} <= {"runs"}


def _links(drawn: list[str], folder: Path) -> None:
    """The names of the links that TensorBoard reads."""
    seed, dataset, key = drawn
    first, second = (folder / "runs" / "x" / f"20260801-{time}0000-s0-aaaa" for time in (12, 13))
    settings = {"dataset": dataset, "experiment.seed": seed, key: key}
    names = run_names({first: settings, second: {"dataset": "digits", "experiment.seed": 0}})
    links = folder / "links"
    links.mkdir()
    for run, name in names.items():
        (links / name).symlink_to(run)
    assert {path.name for path in links.iterdir()} == set(names.values())
    assert len(set(names.values())) == 2
