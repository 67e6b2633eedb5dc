"""Trainings in their own processes, timed in turn."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.pairs import Ratio, in_turn

PEERS = Path(__file__).resolve().parents[1] / "peers"


class Child:
    """A script of tools/peers: trains on request, and is idle otherwise.

    Attributes:
        first: Seconds from the start of the process to the end of its first iteration; known after `ready`.
        bytes: The most memory it has held, as of its last answer.
    """

    def __init__(
        self, script: str, *arguments: str, python: str = sys.executable, env: Mapping[str, str] | None = None
    ) -> None:
        """Starts it."""
        self.first, self.bytes, self._script = 0.0, 0, script
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed with this object)
        self._begun = time.perf_counter()
        self._process = subprocess.Popen(
            [python, str(PEERS / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env={**os.environ, **(env or {})},
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()

    def ask(self, iterations: int) -> None:
        """Makes it train that many iterations, or a few more."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: its answer says why
            self._process.stdin.write(f"{iterations}\n")
            self._process.stdin.flush()

    def answer(self) -> float:
        """Waits until it has; returns the seconds of one iteration."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._said.seek(0)
            last = self._said.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise RuntimeError(f"{self._script} ended with code {self._process.wait()}: {last}")
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise RuntimeError(f"{self._script}: {said['error']}")
        self.bytes = int(said["bytes"])
        return float(said["seconds"]) / int(said["iterations"])

    def train(self, iterations: int) -> float:
        """Asks and waits."""
        self.ask(iterations)
        return self.answer()

    def ready(self) -> None:
        """Makes it train its first iteration."""
        self.train(1)
        self.first = time.perf_counter() - self._begun


class Together:
    """Processes that train one experiment, with the same requests at the same time."""

    def __init__(self, children: Sequence[Child]) -> None:
        """Takes them."""
        self._children = children

    def train(self, iterations: int) -> float:
        """Makes all of them train; returns the slowest one's seconds per iteration."""
        for child in self._children:
            child.ask(iterations)
        return max(child.answer() for child in self._children)


def compare(
    name: str,
    first: Child | Together,
    second: Child | Together,
    rounds: int,
    *,
    seconds: float = 2.0,
    bar: float | None = None,
) -> Ratio:
    """The cost of an iteration of one relative to the other's, both past their first.

    Args:
        name: The two things that are compared.
        first: Trains.
        second: Trains.
        rounds: How many rounds, each a turn of both; who begins alternates.
        seconds: How long a turn lasts, about.
        bar: The largest ratio that is good enough.
    """
    # Warmed up, and with chunks as long as they become in a run.
    counts = [max(1, round(seconds / each(child, seconds))) for child in (first, second)]
    for child, count in zip((first, second), counts, strict=True):
        child.train(count)
    return Ratio(name, in_turn(lambda: first.train(counts[0]), lambda: second.train(counts[1]), rounds), bar)


def each(child: Child | Together, seconds: float) -> float:
    """Seconds of an iteration, once it is warm; of one that takes longer than a turn, from fewer iterations."""
    each = child.train(2)
    return each if each > seconds else min(each, child.train(8))
