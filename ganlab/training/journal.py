"""What a run writes down while it trains: metrics, pictures, warnings, run.json; and whom it tells."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ganlab import config, plugins
from ganlab.composition import Experiment
from ganlab.runs import Run
from ganlab.telemetry import Console, JsonLinesWriter, MultiWriter, Record, Writer, events
from ganlab.telemetry.durable import sync
from ganlab.telemetry.tensorboard import TensorBoardWriter
from ganlab.training.looking import Looked

_NOTE_SECONDS = 2.0


class Journal:
    """The written side of one `train` call."""

    def __init__(
        self,
        experiment: Experiment,
        tags: Sequence[str],
        run: Run,
        screen: Console,
        *,
        keep: int | None,
        figures: Sequence[str] = (),
        warned: Mapping[str, int] | None = None,
    ) -> None:
        """Opens the run's files.

        Args:
            experiment: What is trained.
            tags: Of what it logs on every replica.
            run: Its directory.
            screen: What the user looks at.
            keep: The last step of an earlier `train` of this run whose rows stay, since later ones are written again;
                -1 where none stay, None for a new run.
            figures: Tags of what evaluations find of the run as a whole.
            warned: What the run has warned of until it goes on, each with its step; None for what run.json has.

        Raises:
            OSError: A file cannot be read or written.
        """
        info = run.info
        self._run, self._screen, self._plugins = run, screen, plugins.current()
        self._chief = bool(info["chief"])
        self._before, self._started = float(info.get("wall_seconds") or 0.0), time.monotonic()
        self._noted = self._started
        self._reached: dict[str, float] = dict(info.get("metrics") or {})
        self._found: dict[str, float] = dict(info.get("diagnostics") or {})
        self._failures: set[str] = set()
        said = info.get("warnings") or []
        self._warned = dict.fromkeys(said, -1) if warned is None else dict(warned)
        self._unsynced: set[Path] = set()
        self._tensorboard: TensorBoardWriter | None = None
        writers: list[Writer] = []
        if self._chief:
            if keep is not None:
                events.cut(run.path, after=keep)
            # The files are cut; a TensorBoard that is open has read them, and must forget too.
            self._tensorboard = TensorBoardWriter(run.path, purge_step=None if keep is None else keep + 1)
            writers = [self._tensorboard, JsonLinesWriter(run.path / "metrics.jsonl", truncate_after=keep)]
        self._writers = MultiWriter([*writers, screen])
        if self._tensorboard and (keep is None or keep < 0):
            self._tensorboard.layout(tags, figures)
            self._tensorboard.hparams(config.flatten(experiment.recipe))
            self._tensorboard.text(0, "experiment", f"```\n{run.operative}```")
        for warning, step in self._warned.items():
            if keep is not None and step > keep:  # it was cut with its step
                self._writers.text(step, "warnings", warning)
        if list(self._warned) != said:
            run.update(warnings=list(self._warned))

    @property
    def warned(self) -> dict[str, int]:
        """What the run has warned of, each with its step."""
        return self._warned

    def open(self, steps: int, done: int) -> None:
        """Says that training begins.

        Args:
            steps: Generator updates of the whole run.
            done: How many of them are done already.
        """
        self._run.update(status="running", signal=None)
        self._notify("ganlab_run_start", run=self._run)
        self._screen.start(steps, done)

    def row(self, records: Sequence[Record]) -> None:
        """Writes the metrics of one step."""
        if not records:
            return
        self._writers.scalars(records)
        trained = [record for record in records if record.replicas and not record.tag.startswith("diagnostics/")]
        self._reached |= {record.tag: record.reduced for record in trained}
        if self._plugins.listens("ganlab_metrics"):
            self._notify("ganlab_metrics", run=self._run, records=records)

    def picture(self, step: int, png: bytes) -> None:
        """Writes a picture of samples."""
        self._writers.image(step, "samples", png)
        self._put("samples", step, png)

    def findings(self, step: int, looked: Looked, health: Sequence[str]) -> None:
        """Writes what diagnostics found, all but the figures, which are part of the step's row.

        Args:
            step: Generator updates done.
            looked: What they found.
            health: What constraints and diagnostics say is wrong at present.
        """
        for tag, values in looked.histograms.items():
            self._writers.histogram(step, tag, values)
        for tag, png in looked.pictures.items():
            self._writers.image(step, tag, png)
            self._put(tag, step, png)
        self._found |= {record.tag.removeprefix("diagnostics/"): record.reduced for record in looked.records}
        self._writers.text(step, "health", "\n".join(f"- {said}" for said in health) or "Nothing found.")
        self._run.update(diagnostics=self._found, health=list(health))

    def warn(self, step: int, warning: str) -> None:
        """Shows a warning and writes it down."""
        if warning not in self._warned:
            self._warned[warning] = step
            self._screen.warning(warning)
            self._writers.text(step, "warnings", warning)
            self._run.update(warnings=list(self._warned))

    def flush(self) -> None:
        """Makes everything written so far safe, should the power go too."""
        self._writers.flush()
        for folder in {self._run.path, *self._unsynced}:
            sync(folder)
        self._unsynced.clear()

    def note(self, step: int, **fields: Any) -> None:
        """Brings run.json up to date."""
        self._noted = time.monotonic()
        seconds = round(self._before + self._noted - self._started, 3)
        self._run.update(step=step, metrics=self._reached, wall_seconds=seconds, **fields)

    def note_now_and_then(self, step: int) -> None:
        """Brings run.json and the files up to date if that was some seconds ago."""
        if time.monotonic() - self._noted > _NOTE_SECONDS:
            self.flush()
            self.note(step)

    def close(self, step: int, status: str, **fields: Any) -> None:
        """Says how training ended. Each part is tried even if another fails, such as files on a disk that is full."""
        failures = []
        for end in (lambda: self._end_session(status), self._writers.close):
            try:
                end()
            except OSError as error:
                failures.append(error)
        # Last, since nobody goes on with a run that says that it is completed.
        status = "failed" if failures and status == "completed" else status
        with contextlib.ExitStack() as stack:
            stack.callback(self._notify, "ganlab_run_end", run=self._run, status=status)
            stack.callback(self.note, step, status=status, **fields)
        if failures:
            raise failures[0]

    def _end_session(self, status: str) -> None:
        if self._tensorboard:
            self._tensorboard.session_end(status)  # type: ignore[arg-type]

    def _put(self, kind: str, step: int, png: bytes) -> None:
        """Writes a picture into the folder of its kind. Folders are made safe with everything else."""
        folder = self._run.path / kind
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"step-{step:08d}.png"
        path.write_bytes(png)
        sync(path)
        self._unsynced |= {self._run.path / part for part in (Path(kind), *Path(kind).parents)}

    def _notify(self, hook: str, **arguments: Any) -> None:
        for failure in self._plugins.notify(hook, **arguments) if self._chief else ():
            if failure not in self._failures:  # else a tracker that is down fills the screen, row by row
                self._failures.add(failure)
                self._screen.warning(failure)
