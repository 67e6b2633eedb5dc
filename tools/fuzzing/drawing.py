"""What targets share: corrupted bytes, JSON that was never valid, and the command line."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from click.testing import CliRunner
from hypothesis import strategies as st

from ganlab.cli import cli

T = TypeVar("T")

# Characters that nothing may print or write into a page.
UNSAFE = set("\x00\x07\x1b\x9b\r\u202e\u2028")

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


def call(*arguments: str) -> None:
    """Calls the command line: it must end as it documents, and print nothing unsafe."""
    done = CliRunner().invoke(cli, arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code in (0, 1, 2), (done.exit_code, done.output)
    assert not UNSAFE & set(done.output)


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
def altered(draw: st.DrawFn, documents: Sequence[Any]) -> bytes:
    """The text of a JSON file: one of some valid ones with values replaced, moved, added and left out, or torn.

    Args:
        draw: Hypothesis' draw function.
        documents: The valid contents.
    """
    document = {"": copy.deepcopy(draw(st.sampled_from(list(documents))))}
    values = st.one_of(json_values(), st.sampled_from([None, [], {}, True]))
    alike = {str: WORDS, int: st.integers(-1, 2**31), float: st.one_of(NUMBERS, st.floats(0, 10)), bool: st.booleans()}
    for _ in range(draw(st.integers(0, 3))):
        places = list(_places(document))
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        how = draw(st.sampled_from(["replace", "replace", "move", "add", "remove"]))
        if how == "remove":
            del holder[key]
            if not document:
                return draw(st.binary(max_size=9))
        elif how == "add" and isinstance(holder[key], dict):
            holder[key][draw(WORDS)] = copy.deepcopy(draw(values))
        elif how == "add" and isinstance(holder[key], list):
            holder[key].append(copy.deepcopy(draw(values)))
        else:
            other, name = places[draw(st.integers(0, len(places) - 1))]
            of_this_type = alike.get(type(holder[key]), values)
            holder[key] = copy.deepcopy(other[name] if how == "move" else draw(st.one_of(of_this_type, values)))
    text = json.dumps(document[""]).encode()
    return draw(weighted((12, st.just(text)), (1, mutated([text])), (1, deep())))


def deep(opening: bytes = b'{"a":') -> st.SearchStrategy[bytes]:
    """Text that opens so many levels of JSON, and closes none."""
    return st.integers(1, 5000).map(lambda depth: opening * depth)


def changed(documents: Sequence[dict[str, Any]], fields: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[bytes]:
    """The text of a JSON file: one of some valid ones with other fields."""
    return st.builds(lambda right, others: json.dumps({**right, **others}).encode(), st.sampled_from(documents), fields)


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a value in a document: what holds it, and its key there."""
    for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
        yield holder, key
        if isinstance(holder[key], (dict, list)):
            yield from _places(holder[key])


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
