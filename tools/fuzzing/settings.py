"""Fuzz target: with an odd run.json beside a sound run, every list, comparison and page still shows the sound one."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

from ganlab_compare import compare, to_html
from ganlab_compare.table import print_tables
from ganlab_compare.writing import as_data, to_csv
from ganlab_runs.listing import listed
from ganlab_sweep.metric_follower import last_value
from ganlab_tensorboard.logfolder import LogFolder
from hypothesis import strategies as st

from fuzzing.drawing import NUMBERS, UNSAFE, WORDS, changed, json_values
from ganlab.errors import GanlabError
from ganlab.run import Run
from ganlab.runs import create_run, find_runs

_SETTINGS = ["dataset", "constraints", "experiment.seed", "constraints.r1.weight", "a/optimizers.adam.beta_1"]
_METRICS = ["critic/loss", "critic/wasserstein", "kid/distance"]
SOUND = {
    "status": "completed",
    "step": 3,
    "steps": 3,
    "seed": 0,
    "settings": {"dataset": "digits", "constraints": "r1", "constraints.r1.weight": 10.0, "experiment.seed": 0},
    "metrics": {"critic/loss": 0.5, "critic/wasserstein": 1.5},
    "wall_seconds": 1.5,
    "provenance": {"started": "2026-08-01T12:00:00+00:00"},
}
ROW = b'{"step": 3, "metrics": {"critic/loss": {"reduced": 0.5}}}\n'


def files() -> st.SearchStrategy[bytes]:
    """The bytes of the odd run's run.json."""
    scalar = st.one_of(st.booleans(), NUMBERS, WORDS)
    names = st.one_of(st.sampled_from(_SETTINGS), WORDS)
    tags = st.one_of(st.sampled_from(_METRICS), WORDS)
    settings = st.dictionaries(names, st.one_of(scalar, scalar, json_values()), max_size=4)
    figures = st.dictionaries(tags, st.one_of(NUMBERS, NUMBERS, WORDS, json_values()), max_size=4)
    fields = st.fixed_dictionaries(
        {},
        optional={
            "settings": st.one_of(settings, settings, json_values(_SETTINGS)),
            **dict.fromkeys(("metrics", "evaluation", "diagnostics"), st.one_of(figures, json_values(_METRICS))),
            **dict.fromkeys(("step", "steps", "seed", "wall_seconds"), st.one_of(NUMBERS, json_values())),
            **dict.fromkeys(("status", "health", "warnings", "provenance", "resumed"), json_values(["started", "git"])),
        },
    )
    made = changed([SOUND], fields)
    digits = st.builds(
        lambda count, field: made_of(field, b"9" * count), st.integers(1, 5000), st.sampled_from(["step", "settings"])
    )
    deep = st.integers(1, 1500).map(lambda depth: made_of("metrics", b'{"a":' * depth + b"1" + b"}" * depth))
    return st.one_of(made, made, made, digits, deep)


def made_of(field: str, value: bytes) -> bytes:
    """A run.json with the given text of a field."""
    return json.dumps({**SOUND, field: "@"}).encode().replace(b'"@"', value)


def check(data: bytes, folder: Path) -> None:
    """Shows two runs in every way."""
    runs = folder / "runs"
    sound, odd = runs / "20260801-120000-s0-aaaa", runs / "20260801-130000-s1-bbbb"
    for path in (sound, odd):
        create_run(path, config="", operative="", info=SOUND)
        (path / "metrics.jsonl").write_bytes(ROW)
    (odd / "run.json").write_bytes(data)

    rows = {row.path: row for row in listed(runs)}
    assert (rows[sound].status, rows[sound].problem) == ("completed", None)
    assert odd in rows
    _linked(runs, sound)
    _compared(runs)
    for read in (lambda: Run(odd).check(), lambda: last_value(odd, "critic/loss")):
        with contextlib.suppress(GanlabError):
            read()


def _linked(runs: Path, sound: Path) -> None:
    with contextlib.closing(LogFolder(lambda: find_runs(runs))) as shown:
        shown.refresh()
        shown.refresh()
        assert len(shown.names) == len(list(shown.path.iterdir())) == 2
        assert sound.resolve() in {path.resolve() for path in shown.path.iterdir()}


def _compared(runs: Path) -> None:
    from rich.console import Console

    comparison = compare([runs])
    assert any(run.path.name.endswith("aaaa") for row in comparison.configurations for run in row.runs)
    screen = io.StringIO()
    print_tables(comparison, Console(file=screen, width=200))
    assert not UNSAFE & set(screen.getvalue())
    assert not UNSAFE & set(to_html(comparison))
    json.dumps(as_data(comparison), allow_nan=False)
    to_csv(comparison)
