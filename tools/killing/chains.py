"""Runs that are stopped and resumed repeatedly, and compared with one that never was."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

import numpy as np

from ganlab.run import Run
from ganlab.training.checkpoints import Checkpoint, Checkpoints
from killing.equality import counted, differing_checkpoints, differing_runs
from killing.faults import Fault, Preload
from killing.kinds import Kind
from killing.power import lose_power
from killing.processes import Ended, Experiment, train

REFERENCE = "reference"
_IN_USE = 75


@dataclass
class Kill:
    """One stop of a run.

    Attributes:
        kind: The kind of stop.
        run: The run.
        step: The step of the last row before.
        resumed_from: The step of the newest sound checkpoint; 0 if there was none.
        seconds: The time from a signal to the end of the process.
        detail: The operation or file that was hit.
        wrong: Faults, in words; empty if there are none.
    """

    kind: str
    run: str
    step: int
    resumed_from: int
    seconds: float
    detail: str
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reference:
    """The run that was never stopped.

    Attributes:
        run: The run, with all its checkpoints.
        seconds: Its training time.
        operations: The number of operations on files that match a fault's pattern.
        variables: The number of variables of each group in a checkpoint.
    """

    run: Run
    seconds: float
    operations: dict[str, int]
    variables: dict[str, int]

    def at(self, step: int) -> Checkpoint | None:
        """Its checkpoint of a step, with which interrupted runs' are compared."""
        return next((c for c in Checkpoints(self.run.path / "checkpoints").all() if c.step == step), None)


class Bench:
    """Trains the reference, and then runs that are stopped."""

    def __init__(
        self, experiment: Experiment, library: Path, kinds: Sequence[Kind], *, kills: int, seed: int, reach: float
    ) -> None:
        """Takes the experiment.

        Args:
            experiment: The experiment to train.
            library: The library of faults.
            kinds: The kinds of stops, each as often as the others.
            kills: The total number of stops.
            seed: Decides how and when runs are stopped.
            reach: The largest fraction of a run that a process does before it is stopped.
        """
        self._experiment, self._library, self._seed, self._reach = experiment, library, seed, reach
        random = np.random.default_rng(seed)
        self._kinds: deque[Kind] = deque()
        while len(self._kinds) < kills:
            self._kinds.extend(kinds[i] for i in random.permutation(len(kinds))[: kills - len(self._kinds)])
        self._lock = Lock()
        self._started = 0

    def reference(self) -> Reference:
        """Trains the run that is never stopped."""
        preload = self._preload(REFERENCE)
        ended = train(self._experiment, REFERENCE, preload, None, Fault(match="/checkpoints"), keep_all=True)
        if ended.code:
            raise SystemExit(f"The reference run failed with {ended.code}:\n{ended.errors}")
        run = Run(self._experiment.path(REFERENCE))
        matched, total = map(int, re.findall(r"counted\t(\d+)\t(\d+)", preload.log.read_text())[-1])
        operations = {"/checkpoints": matched, "!/checkpoints": total - matched, "": total}
        last = Checkpoints(run.path / "checkpoints").latest()
        assert last is not None
        return Reference(run, float(run.info["wall_seconds"]), operations, counted(last))

    def chain(self, reference: Reference, say: Callable[[Kill], None]) -> Iterator[list[Kill]]:
        """Trains runs until all kinds are used up; yields the stops of each run once it has completed."""
        while self._kinds:
            with self._lock:
                self._started += 1
                number = self._started
            yield self._run(f"killed-{number}", reference, np.random.default_rng([self._seed, number]), say)

    def _run(
        self, name: str, reference: Reference, random: np.random.Generator, say: Callable[[Kill], None]
    ) -> list[Kill]:
        kills: list[Kill] = []
        path = self._experiment.path(name)
        failed = ""
        while not _completed(path):
            kind = self._next()
            if kind is None:
                ended = train(self._experiment, name, self._preload(name), None, Fault())
                failed = f"exit code {ended.code}: {ended.errors[-500:]}" if ended.code else ""
                break
            kill = self._stop(name, kind, reference, random)
            if kill is None:  # it completed first
                self._kinds.append(kind)
                break
            kills.append(kill)
            say(kill)
        differing = differing_runs(reference.run, Run(path)) if _completed(path) else [f"not completed; {failed}"]
        if differing and not kills:
            raise SystemExit(f"{path} was never stopped and differs from the reference: {differing[:5]}")
        for kill in kills:
            kill.wrong += [f"the end: {said}" for said in differing]
        return kills

    def _next(self) -> Kind | None:
        try:
            return self._kinds.popleft()
        except IndexError:
            return None

    def _stop(self, name: str, kind: Kind, reference: Reference, random: np.random.Generator) -> Kill | None:
        """Trains until the run is stopped; None if it completed first."""
        preload, path = self._preload(name), self._experiment.path(name)
        most = max(2, int(self._reach * reference.operations[kind.fault.match]))
        fault = replace(kind.fault, at=int(random.integers(1, most)), part=float(random.random()))
        after = float(random.uniform(0, self._reach * reference.seconds))
        ended = train(self._experiment, name, preload, kind, fault, after=after)
        if ended.code == 0 or (kind.sent and _completed(path)):
            return None
        detail = f"after {after:.2f} s" if kind.sent else f"operation {fault.at}, {fault.part:.2f} of it"
        wrong = _wrong_end(kind, ended, path)
        if kind.power:
            lost = lose_power(path, preload, random)
            detail += f"; torn: {', '.join(lost.torn) or 'nothing'}; undone: {', '.join(lost.undone) or 'nothing'}"
        if kind.damage:
            detail += f"; {_damage(path, random)}"
        sound = [c for c in Checkpoints(path / "checkpoints").all() if c.damage() is None]
        for checkpoint in sound:
            same = reference.at(checkpoint.step)
            # A run that is asked to stop saves at its current step, which the reference may not have saved.
            wrong += differing_checkpoints(same, checkpoint) if same else []
        resumed_from = sound[-1].step if sound else 0
        return Kill(kind.name, name, max(ended.step, resumed_from), resumed_from, ended.seconds, detail, wrong)

    def _preload(self, name: str) -> Preload:
        folder = self._experiment.folder / "faults"
        folder.mkdir(parents=True, exist_ok=True)
        return Preload(self._library, folder / f"{name}.log", folder / f"{name}.shadow")


def _completed(path: Path) -> bool:
    try:
        return Run(path).info["status"] == "completed"
    except Exception:
        return False


def _wrong_end(kind: Kind, ended: Ended, path: Path) -> list[str]:
    wrong = []
    if ended.code not in kind.codes:
        wrong.append(f"exit code {ended.code}, not {kind.codes}: {ended.errors[-500:]}")
    if any(code != _IN_USE for code in ended.refused):
        wrong.append(f"the exit codes {ended.refused} of processes that found the run in use, not {_IN_USE}")
    if "Traceback" in ended.errors:
        wrong.append(f"a traceback: {ended.errors[-1500:]}")
    if kind.status:
        status = json.loads((path / "run.json").read_text())["status"]
        if status != kind.status:
            wrong.append(f"the status {status}, not {kind.status}")
    return wrong


def _damage(path: Path, random: np.random.Generator) -> str:
    """Truncates a file of the newest checkpoint, or turns one of its bits."""
    checkpoint = Checkpoints(path / "checkpoints").latest()
    if checkpoint is None:
        return "no checkpoint to damage"
    files = sorted(checkpoint.path.iterdir())
    file = files[int(random.integers(len(files)))]
    data = bytearray(file.read_bytes())
    place = int(random.integers(len(data)))
    if random.integers(2):
        del data[place:]
    else:
        data[place] ^= 1 << int(random.integers(8))
    file.write_bytes(data)
    return f"{checkpoint.path.name}/{file.name} {'cut' if len(data) == place else 'flipped'} at byte {place}"
