"""Hostile runs: each is a valid run except for one fault."""

import contextlib
import json
import math
import os
import signal
import socket
from pathlib import Path

import resting_runs
from resting_runs import INFO

# Escapes that clear a screen, forged lines, reversed text, a lone surrogate, markup.
EVIL = "a\x1b[2Jb\nError: forged\r\x07\u202egnp.exe\x9b\ud800[red]<script>alert(1)</script>"
OUT = "../../../../planted"
# Characters that no command may print.
UNSAFE = "\x1b\r\x07\u202e\x9b\x00"
DEEP = 900


class LateError(BaseException):
    """Raised on a timeout; a BaseException, so that nothing catches it by mistake."""


@contextlib.contextmanager
def in_time(seconds=30):
    """Context manager: fails work that takes longer, as a reader of a pipe or of /dev/zero would."""

    def late(number, frame):
        raise LateError(f"not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def bind(path):
    """Makes a socket."""
    at = os.getcwd()
    os.chdir(path.parent)  # a socket's path is limited to about a hundred bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(at)


def make(path, **info):
    """Makes a valid run."""
    resting_runs.make(path, sample_shape=[2], **info)
    (path / "events.out.tfevents.1.host.1.0").write_bytes(b"")
    return path


def _field(**fields):
    def spoil(run):
        path = run / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return spoil


def _text(text):
    return lambda run: (run / "run.json").write_bytes(text)


def _settings(**settings):
    return _field(settings={**INFO["settings"], **settings})


def _fifo(name):
    def spoil(run):
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)

    return spoil


def _link(name, to):
    def spoil(run):
        if (run / name).is_dir():
            (run / name).rename(run / "aside")
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(to)

    return spoil


def _socket(run):
    (run / "metrics.jsonl").unlink()
    bind(run / "metrics.jsonl")


def _large(name, *, mode="wb"):
    """A terabyte of nothing; with the mode r+b a hole after what the file has."""

    def spoil(run):
        with (run / name).open(mode) as file:
            file.truncate(1 << 40)

    return spoil


def _line(text):
    def spoil(run):
        with (run / "metrics.jsonl").open("ab") as file:
            file.write(text + b"\n")

    return spoil


def _folders(run):
    at = os.open(run, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def _nested(depth):
    return ('{"a":' * depth + "1" + "}" * depth).encode()


def _with(name, value):
    """A run.json in which one field has a raw text as its value."""
    return json.dumps({**INFO, name: "@"}).replace('"@"', value).encode()


# More of metrics.jsonl, by reader: tests/telemetry/test_hostile_metrics.py.
ODDITIES = {
    "metrics-zero": _link("metrics.jsonl", "/dev/zero"),
    "metrics-pipe": _fifo("metrics.jsonl"),
    "metrics-socket": _socket,
    "metrics-passwd": _link("metrics.jsonl", "/etc/passwd"),
    "metrics-large": _large("metrics.jsonl"),
    "metrics-hole": _large("metrics.jsonl", mode="r+b"),
    "metrics-huge": _line(b'{"step": 41, "metrics": {"critic/loss": {"reduced": 1e308}, "a": {"reduced": -1e308}}}'),
    "metrics-folder": lambda run: ((run / "metrics.jsonl").unlink(), (run / "metrics.jsonl").mkdir()),
    "info-zero": _link("run.json", "/dev/zero"),
    "info-pipe": _fifo("run.json"),
    "info-large": _large("run.json"),
    "info-circle": _link("run.json", "run.json"),
    "lock-pipe": _fifo("lock.json"),
    "lock-zero": _link("lock.json", "/dev/zero"),
    "config-pipe": _fifo("config.gin"),
    "samples-pipe": _fifo("samples/step-00000041.png"),
    "samples-zero": _link("samples/step-00000041.png", "/dev/zero"),
    "samples-elsewhere": _link("samples", "/etc"),
    "manifest-pipe": _fifo("checkpoints/step-00000040/manifest.json"),
    "checkpoints-elsewhere": _link("checkpoints", "/"),
    "events-pipe": _fifo("events.out.tfevents.2.host.1.0"),
    "events-zero": _link("events.out.tfevents.2.host.1.0", "/dev/zero"),
    "events-hole": _large("events.out.tfevents.1.host.1.0", mode="r+b"),
    "circles": lambda run: [(run / name).symlink_to(".") for name in "abc"],
    "root-below": _link("down", "/"),
    "round-and-round": _link("again", "."),
    "deep-folders": _folders,
    "nul": _settings(**{"experiment.seed": "\0", "dataset": "\0x"}),
    "surrogate": _settings(**{"experiment.seed": "\ud800", "dataset": "\udfff"}),
    "escapes": _field(
        **{"status": EVIL, "strategy": EVIL, "warnings": [EVIL], "health": [EVIL], "metrics": {EVIL: 1.0}},
        **{"provenance": {EVIL: EVIL}, "resumed": [{"step": 1, "changes": [EVIL * 100] * 100}] * 100},
    ),
    "escaped-settings": _settings(**{"dataset": EVIL, EVIL: EVIL}),
    "outside": _settings(**{"experiment.seed": OUT, "dataset": OUT, OUT: OUT}),
    "dict-for-status": _field(status={"a": 1}),
    "dict-for-step": _field(step={}, steps=[]),
    "dict-for-setting": _settings(**{"dataset": {"a": [1]}, "experiment.seed": {"b": 2}}),
    "dict-for-metric": _field(metrics={"critic/loss": {"a": 1}}, evaluation=[1], diagnostics="x"),
    "dict-for-time": _field(wall_seconds={}, provenance={"started": {}, "plugins": []}),
    "list-for-plugins": _field(provenance={"plugins": [], "git": "abc"}),
    "text-for-plugin": _field(provenance={"plugins": {"a": "1.0"}, "packages": {"numpy": 2}, "argv": "ganlab run"}),
    "fields-missing": _field(forked_from={}, started_from={"run": "x"}, best={"step": 3}, timed_from={"step": 3}),
    "list-for-settings": _field(settings=[1, 2]),
    "many-digits": _text(_with("step", "9" * 4000)),
    "more-digits": _text(_with("metrics", '{"critic/loss": ' + "9" * 5000 + "}")),
    "digits-in-setting": _text(_with("settings", '{"dataset": ' + "9" * 4000 + ', "experiment.seed": 1e999}')),
    "endless-setting": _settings(**{"experiment.batch_size": math.inf, "constraints.r1.weight": math.nan}),
    "endless-time": _text(_with("wall_seconds", "1e999")),
    "many-settings": _settings(**{f"a{i}.b": i for i in range(100_000)}),
    "many-metrics": _field(metrics={f"a{i}/b": 1.0 for i in range(100_000)}),
    "long-names": _field(
        settings={**INFO["settings"], "a." * 500_000: 1}, metrics={"b/" * 500_000: 1.0, "critic/loss": 1.0}
    ),
    "names-of-javascript": _field(
        settings={**INFO["settings"], "constructor": True, "__proto__": 1, "toString": "x"},
        metrics={"constructor": 1.0, "__proto__": 2.0, "hasOwnProperty": 3.0},
    ),
    "huge-numbers": _field(
        settings={**INFO["settings"], "experiment.batch_size": 1e200, "experiment.critic_steps": 1e200},
        metrics={"critic/loss": 1e308, "critic/wasserstein": 5e-324},
        evaluation={"kid/distance": -1e308},
        wall_seconds=5e-324,
        step=10**200,
        steps=2**62,
    ),
    "long-status": _field(status="x" * 5000),
    "nested": _text(_nested(DEEP)),
    "nested-field": _text(_with("provenance", _nested(DEEP).decode())),
    "nested-setting": _text(_with("settings", _nested(DEEP).decode())),
    "no-object": _text(b"[1, 2]"),
    "no-text": _text(b"\xff\xfe"),
    "nothing": _text(b""),
}


def folder(root: Path, oddity: str) -> Path:
    """Makes a folder with a valid run and a hostile one."""
    runs = root / "runs"
    make(runs / "digits" / "20260801-120000-s0-aaaa")
    ODDITIES[oddity](make(runs / "digits" / "20260801-130000-s0-bbbb"))
    return runs
