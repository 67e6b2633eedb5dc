"""Inputs of all targets: corrupted bytes, and JSON that was never valid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

# Values that break programs: limits of types, words with a meaning in JSON or Python, characters that are not letters.
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**31, 2**63, -(2**63), 10**400, 0.5, -0.5, 1e308, -1e308, math.nan, math.inf, -math.inf]),
    st.integers(),
    st.floats(),
)
WORDS = st.one_of(
    st.sampled_from(
        ["", "NaN", "Infinity", "-Infinity", "true", "\0", "\ud800", "é", "../..", "/etc/passwd", "x" * 300]
    ),
    st.text(max_size=8),
)


def weighted(*choices: tuple[int, st.SearchStrategy[T]]) -> st.SearchStrategy[T]:
    """One of some strategies, each as often as its weight; `st.one_of` would draw all equally often."""
    numbers = [number for number, (weight, _) in enumerate(choices) for _ in range(weight)]
    return st.sampled_from(numbers).flatmap(lambda number: choices[number][1])


def json_values(keys: Sequence[str] = ()) -> st.SearchStrategy[object]:
    """Any value that JSON has; dicts prefer these keys."""
    names = st.one_of(st.sampled_from(list(keys)), WORDS) if keys else WORDS
    return st.recursive(
        st.one_of(st.none(), st.booleans(), NUMBERS, WORDS),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=5)),
        max_leaves=12,
    )


@st.composite
def mutated(draw: st.DrawFn, originals: Sequence[bytes], pieces: Sequence[bytes] = ()) -> bytes:
    """One of some files with bytes changed, removed, repeated and inserted.

    Args:
        draw: Hypothesis' draw function.
        originals: The valid files.
        pieces: Pieces to insert, besides arbitrary bytes.
    """
    data = draw(st.sampled_from(list(originals)))
    inserted = st.one_of(st.sampled_from(list(pieces)), st.binary(max_size=6)) if pieces else st.binary(max_size=6)
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 1, 2, 4, 8, 30, len(data)])))
        middle = draw(st.one_of(inserted, st.just(data[start:end] * 2), st.just(b"")))
        data = data[:start] + middle + data[end:]
    return data
