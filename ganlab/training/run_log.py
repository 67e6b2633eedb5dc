"""The records of a run in training: metrics, pictures, warnings and run.json; also calls the trackers."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import tensorflow as tf

from ganlab.errors import TrainingFailedError
from ganlab.plugins import manager as plugins
from ganlab.runs import RunDirectory
from ganlab.runs.changes import changes_of, extended_at, in_words, to_write
from ganlab.support.durable import sync
from ganlab.telemetry import Console, JsonLinesWriter, MultiWriter, Record, Writer, event_cutting
from ganlab.telemetry.tensorboard_writer import LAYOUT_TAG, OF_THE_RUN, START_TAG, TensorBoardWriter
from ganlab.training.diagnostics.schedule import Looked
from ganlab.training.trackers import Trackers

# The hyperparameter of a run whose settings changed after its first step.
_CHANGED = "changed midway"

# The tag of the settings that a run is trained with.
_SETTINGS = "experiment"

_NOTE_SECONDS = 2.0


class Past(NamedTuple):
    """What of an earlier `train` call of a run stays when it is resumed.

    Attributes:
        keep: The last step whose rows stay, because later ones are written again; -1 if none stay.
        warned: The warnings up to there, each with its step; None to read them from run.json.
        rows: How many rows there must be up to `keep`; None if nobody counted them.
    """

    keep: int = -1
    warned: Mapping[str, int] | None = MappingProxyType({})
    rows: int | None = None


class RunLog:
    """The written side of one `train` call."""

    def __init__(
        self,
        run: RunDirectory,
        settings: Mapping[str, Any],
        screen: Console,
        drawn: Callable[[], tuple[Sequence[str], Sequence[str]]],
        past: Past | None,
        stopping: Callable[[], bool],
    ) -> None:
        """Opens the run's files, of which `past` says what stays; None for a new run.

        `drawn` returns the tags of the metrics that every replica logs, and of the figures of the run as a whole; it
        is called if the charts are not written yet. A run that is `stopping` does not wait long for trackers.
        """
        info = run.info
        keep, rows = (None, None) if past is None else (past.keep, past.rows)
        self._run, self._screen = run, screen
        self._chief = bool(info.get("chief", True))
        self._trackers = Trackers(plugins.current(), self.say, stopping) if self._chief else None
        self._before, self._started = float(info.get("wall_seconds", 0.0)), time.monotonic()
        self._noted = self._started
        self._reached: dict[str, float] = dict(info.get("metrics", {}))
        self._timed: dict[str, float] | None = None
        self._reached_at: int | None = info.get("metrics_step")
        self._found: dict[str, float] = dict(info.get("diagnostics", {}))
        said = info.get("warnings", [])
        self._warned = dict.fromkeys(said, -1) if past is None or past.warned is None else dict(past.warned)
        self._unsynced: set[Path] = set()
        self._tensorboard: TensorBoardWriter | None = None
        self._lines: JsonLinesWriter | None = None
        writers: list[Writer] = []
        left = event_cutting.Cut()
        changes = [] if keep is None or not self._chief else to_write(info, keep)
        changed_at = changes[-1].step if changes else extended_at(info)
        if self._chief:
            if keep is not None:
                # If the run has changed, its settings and charts differ from those written.
                left = event_cutting.cut(run.path, after=keep, without=() if changed_at is None else OF_THE_RUN)
            # The files are cut, but a TensorBoard that is open has already read them, and must forget those steps too.
            self._tensorboard = TensorBoardWriter(run.path, purge_step=0 if keep is None else keep + 1)
            self._lines = JsonLinesWriter(run.path / "metrics.jsonl", truncate_after=keep, expected=rows)
            writers = [self._tensorboard, self._lines]
            left.complaints += filter(None, [self._lines.complaint])
        self._writers = MultiWriter([*writers, screen])
        if self._tensorboard:
            # Write the settings again if a kill, a loss of power or a bad disk has destroyed them.
            if LAYOUT_TAG not in left.tags:
                self._tensorboard.layout(*drawn())
            if START_TAG not in left.tags:
                note = {_CHANGED: in_words(changes_of(info))} if changes_of(info) else {}
                self._tensorboard.hparams({**settings, **note})
            if changed_at is not None or _SETTINGS not in left.tags:
                step = (changed_at or 0) if _SETTINGS in left.tags else 0
                self._tensorboard.text(step, _SETTINGS, f"```\n{run.operative}```")
        for change in changes:
            said = "\n".join(f"- {line}" for line in change.what)
            assert self._tensorboard is not None
            self._tensorboard.text(change.step, "changes", f"Changed midway, from step {change.step} on:\n\n{said}")
        if changes:  # no later resume writes these
            self._writers.flush()
        for warning, step in self._warned.items():
            if keep is not None and step > keep:  # it was cut with its step
                self._writers.text(step, "warnings", warning)
        if list(self._warned) != said:
            run.update(warnings=list(self._warned))
        for complaint in left.complaints:
            self.warn(max(keep or 0, 0), complaint)

    @property
    def warned(self) -> dict[str, int]:
        """The run's warnings, each with its step."""
        return self._warned

    @property
    def rows(self) -> int:
        """How many rows the run has."""
        return self._lines.rows if self._lines else 0

    @property
    def held(self) -> int:
        """How many of them are held."""
        return self._lines.held if self._lines else 0

    def hold(self) -> None:
        """Holds the next rows of metrics.jsonl until `release`; TensorBoard and the trackers have them at once."""
        if self._lines:
            self._lines.hold()

    def release(self, late: Sequence[Record]) -> None:
        """Writes the rows that are held, with late metrics of the step at which rows began to be held."""
        if self._lines:
            self._lines.release(late)
        if not late:
            return
        for writer in (self._tensorboard, self._screen):
            if writer is not None:
                writer.scalars(late)
        self._call_trackers("ganlab_metrics", run=self._run, records=list(late))

    def open(self, steps: int, done: int) -> None:
        """Reports that training begins, of a run of `steps` with some done."""
        self._run.update(status="running", signal=None, error=None, timed_from=None, diverged_at=None)
        self._call_trackers("ganlab_run_start", run=self._run)
        self._screen.start(steps, done)

    def time_from(self, step: int) -> None:
        """Estimates the speed from the first call on: the steps until then took longer, because graphs were made."""
        if self._timed is None:
            self._timed = {"step": step, "seconds": self._seconds()}
            self._screen.time_from(step)

    def row(self, records: Sequence[Record]) -> None:
        """Writes the metrics of one step."""
        if not records:
            return
        self._writers.scalars(records)
        trained = [record for record in records if record.replicas and not record.tag.startswith("diagnostics/")]
        self._reached |= {record.tag: record.reduced for record in trained}
        if trained:
            self._reached_at = trained[0].step
        self._call_trackers("ganlab_metrics", run=self._run, records=list(records))

    def picture(self, step: int, png: bytes) -> None:
        """Writes a picture of samples."""
        self._put("samples", step, png)

    def findings(self, step: int, looked: Looked, health: Sequence[str]) -> None:
        """Writes the findings of diagnostics and the problems reported now; figures are part of the step's row."""
        for tag, values in looked.histograms.items():
            self._writers.histogram(step, tag, values)
        for tag, png in looked.pictures.items():
            self._put(tag, step, png)
        self._found |= {record.tag.removeprefix("diagnostics/"): record.reduced for record in looked.records}
        self._writers.text(step, "health", "\n".join(f"- {said}" for said in health) or "Nothing found.")
        self._run.update(diagnostics=self._found, health=list(health))

    def say(self, warning: str) -> None:
        """Shows a warning without recording it in the run; any thread may call this."""
        self._screen.warning(warning)

    def message(self, text: str) -> None:
        """Shows a message, unless the terminal is to be quiet."""
        self._screen.message(text)

    def warn(self, step: int, warning: str) -> None:
        """Shows a warning and records it in the run."""
        if warning not in self._warned:
            self._warned[warning] = step
            self._screen.warning(warning)
            self._writers.text(step, "warnings", warning)
            self._run.update(warnings=list(self._warned))

    def flush(self) -> None:
        """Makes everything written so far safe, even against a loss of power."""
        self._writers.flush()
        for folder in {self._run.path, *self._unsynced}:
            sync(folder)
        self._unsynced.clear()

    def note(self, step: int, **fields: Any) -> None:
        """Brings run.json up to date."""
        self._noted = time.monotonic()
        reached = {"metrics": self._reached, "metrics_step": self._reached_at, "timed_from": self._timed}
        self._run.update(step=step, wall_seconds=self._seconds(), **reached, **fields)

    def note_now_and_then(self, step: int) -> None:
        """Brings run.json and the files up to date if that was last done some seconds ago."""
        if time.monotonic() - self._noted > _NOTE_SECONDS:
            self.flush()
            self.note(step)

    def close(self, step: int, status: str, **fields: Any) -> None:
        """Records how training ended. Each part is tried even if another fails, for example on a full disk."""
        failures = []
        for end in (lambda: self._end_session(status), self._writers.close):
            try:
                end()
            except OSError as error:
                failures.append(error)
        # Last, because nobody resumes a run that is recorded as completed.
        status = "failed" if failures and status == "completed" else status
        with contextlib.ExitStack() as stack:
            if self._trackers is not None:
                stack.callback(self._trackers.close)
            stack.callback(self._call_trackers, "ganlab_run_end", run=self._run, status=status)
            stack.callback(self.note, step, status=status, **fields)
        if failures:
            raise failures[0]

    def _seconds(self) -> float:
        return round(self._before + time.monotonic() - self._started, 3)

    def _end_session(self, status: str) -> None:
        if self._tensorboard:
            self._tensorboard.session_end(status)  # type: ignore[arg-type]

    def _put(self, kind: str, step: int, png: bytes) -> None:
        """Writes a picture, also into the folder of its kind. Folders are made safe with everything else."""
        self._writers.image(step, kind, png)
        folder = self._run.path / kind
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"step-{step:08d}.png"
        path.write_bytes(png)
        sync(path)
        self._unsynced |= {self._run.path / part for part in (Path(kind), *Path(kind).parents)}

    def _call_trackers(self, hook: str, **arguments: Any) -> None:
        if self._trackers is not None:
            self._trackers.call(hook, **arguments)


@contextlib.contextmanager
def written(run: RunDirectory) -> Iterator[None]:
    """Context manager: turns an OSError while writing the run into a TrainingFailedError."""
    try:
        yield
    except OSError as error:
        raise TrainingFailedError(
            f"{run.path} cannot be written: {error}. Fix that and resume from the newest checkpoint: "
            f"ganlab run --resume {shlex.quote(str(run.path))}"
        ) from error


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process writes what all of them train."""
    return bool(strategy.extended.should_checkpoint)
