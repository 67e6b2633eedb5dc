"""Fuzz target: metrics.jsonl is read or refused; repaired, it has its lines up to the step; both readers agree."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path

from ganlab_compare import read_series
from hypothesis import strategies as st

from fuzzing.drawing import NUMBERS, WORDS, deep, json_values, mutated
from ganlab.errors import GanlabError
from ganlab.telemetry.jsonl import logged_tags, read_metrics
from ganlab.telemetry.jsonl_repair import repair

_KEYS = ("step", "metrics", "reduced", "replicas", "critic/loss")


def _line(step: int, **metrics: list[float]) -> bytes:
    entries = {tag: {"reduced": sum(values) / len(values), "replicas": values} for tag, values in metrics.items()}
    return json.dumps({"step": step, "metrics": entries}).encode() + b"\n"


_WHOLE = b"".join(_line(step, **{"critic/loss": [0.5, step / 7], "é": [1.0]}) for step in (1, 2, 3))


def files() -> st.SearchStrategy[bytes]:
    """The bytes of a file."""
    entry = st.fixed_dictionaries(
        {"reduced": st.one_of(NUMBERS, WORDS)}, optional={"replicas": st.lists(st.one_of(NUMBERS, WORDS), max_size=3)}
    )
    row = st.fixed_dictionaries(
        {"step": NUMBERS, "metrics": st.dictionaries(WORDS, st.one_of(entry, json_values(_KEYS)), max_size=3)}
    )
    line = st.one_of(row, json_values(_KEYS)).map(lambda value: json.dumps(value).encode() + b"\n")
    lines = st.lists(st.one_of(line, st.sampled_from(_WHOLE.splitlines(keepends=True))), max_size=6).map(b"".join)
    nested = deep(b"[").map(lambda text: text + b"\n")
    return st.one_of(mutated([_WHOLE]), lines, nested, st.binary(max_size=40))


def check(data: bytes, folder: Path) -> None:
    """Reads and repairs a file."""
    path = folder / "metrics.jsonl"
    path.write_bytes(data)
    tags = sorted(logged_tags(path))
    try:
        records = list(read_metrics(path))
    except GanlabError:
        _refused(path, data, tags)
        return
    for tag in tags:
        ours = [(record.step, record.reduced) for record in records if record.tag == tag]
        try:
            series = read_series(path, [tag]).get(tag)
        except GanlabError:
            continue
        theirs = [] if series is None else list(zip(series.steps.tolist(), series.values.tolist(), strict=True))
        assert len(ours) == len(theirs), f"{tag!r}: {ours} and {theirs}"
        assert all(map(_same, ours, theirs)), f"{tag!r}: {ours} and {theirs}"
    whole = data.split(b"\n")[:-1]
    steps = [json.loads(line)["step"] for line in whole]
    last = min(steps, default=0)
    repair(path, truncate_after=last)
    if steps == sorted(set(steps)):
        kept = next((at for at, step in enumerate(steps) if step > last), len(steps))
        assert path.read_bytes() == b"".join(line + b"\n" for line in whole[:kept])
    _check_repaired(path, data)
    assert all(record.step <= last for record in read_metrics(path))


def _refused(path: Path, data: bytes, tags: list[str]) -> None:
    with contextlib.suppress(GanlabError):
        read_series(path, tags)
    with contextlib.suppress(GanlabError):
        repair(path)
        if path.stat().st_size:
            list(read_metrics(path))
    _check_repaired(path, data)


def _check_repaired(path: Path, data: bytes) -> None:
    """Checks that lines are left out but not changed, and that invalid ones are kept beside the file."""
    there = iter(data.split(b"\n"))
    assert all(line in there for line in path.read_bytes().split(b"\n")[:-1])
    assert all(other == path or other.name.startswith("damaged-") for other in path.parent.iterdir())


def _same(one: tuple[int, float], other: tuple[int, float]) -> bool:
    return one[0] == other[0] and (one[1] == other[1] or (math.isnan(one[1]) and math.isnan(other[1])))
