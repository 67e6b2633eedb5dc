"""The runs below TensorBoard's folder: one reader for all views, which reads only what was written since."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ganlab_compare import Curve, RunSummary, Series, read_run

from ganlab.errors import RunError
from ganlab.files import line
from ganlab.runs import INFO, METRICS, find_runs, status_of, why_unreadable
from ganlab.telemetry import MetricsFollower
from ganlab_tensorboard.preview import LONG, newest, preview, tags_at_ends
from ganlab_tensorboard.rows import Thinned

# Seconds for which a list of runs is taken as it is.
_FRESH = 1.0

# Seconds that a request may read; what is left is read in the background, in parts of so many seconds.
_AT_ONCE, _PART = 0.15, 0.03

# Seconds for which reading in the background waits, so that a page can draw what it has.
_PAUSE = 1.0

# Bytes of rows in memory. Those that nobody asked for longest are forgotten beyond it.
_MOST_BYTES = 256 << 20

# Runs beyond these are not shown.
MOST_RUNS = 2000


@dataclass(frozen=True)
class ShownRun:
    """One run.

    Attributes:
        id: Hexadecimal digits that name it in addresses.
        name: Its path below TensorBoard's folder.
        path: Its directory.
        summary: Its run.json.
    """

    id: str
    name: str
    path: Path
    summary: RunSummary


class Store:
    """Runs and their metrics, from any thread.

    Attributes:
        lock: Held by a request, so that reading in the background waits for it.
        curves: The last curve of each configuration, by its first run and the metric, with the series it was made of.
    """

    def __init__(self, folders: Callable[[], Sequence[Path]]) -> None:
        """Reads nothing yet.

        Args:
            folders: Returns the folders in which runs are looked for.
        """
        self._folders = folders
        self.lock = self._lock = threading.RLock()
        self._looked = -_FRESH
        self._runs: dict[str, ShownRun] = {}
        self._problems: tuple[str, ...] = ()
        self._summaries: dict[Path, tuple[tuple[int, int, int], RunSummary | str]] = {}
        self._files: OrderedDict[Path, MetricsFollower[Thinned]] = OrderedDict()
        self._previews: dict[tuple[Path, str], Thinned | None] = {}
        self._tags: dict[Path, tuple[int, set[str]]] = {}
        self._wanted: OrderedDict[tuple[Path, str], None] = OrderedDict()
        self._thread: threading.Thread | None = None
        self.curves: OrderedDict[tuple[Path, str], tuple[list[Series | None], Curve | None]] = OrderedDict()

    def runs(self) -> list[ShownRun]:
        """The runs that can be read, by name."""
        with self._lock:
            if time.monotonic() - self._looked > _FRESH:
                self._look()
                self._looked = time.monotonic()
            return list(self._runs.values())

    def problems(self) -> tuple[str, ...]:
        """A sentence on each run that cannot be read."""
        return self._problems

    def run(self, name: str) -> ShownRun:
        """A run by its digits.

        Raises:
            RunError: There is none.
        """
        self.runs()
        run = self._runs.get(name)
        if run is None:
            raise RunError("There is no such run (any more). Reload the page.")
        return run

    def tags(self, run: ShownRun) -> set[str]:
        """The metrics of a run, by run.json and by the rows at the ends of its metrics.jsonl."""
        path = run.path / METRICS
        with self._lock:
            try:
                size = os.lstat(path).st_size
                old, tags = self._tags.get(path, (-1, set()))
                if old != size:
                    tags = tags | tags_at_ends(path)
                    self._tags[path] = (size, tags)
            except (OSError, RunError):
                tags = set()
        return tags | run.summary.last.keys()

    def metrics(
        self, path: Path, tags: Collection[str], until: float, *, last_only: bool = False
    ) -> dict[str, Thinned]:
        """Metrics of a metrics.jsonl, as far as they can be read in time; the rest follows in the background.

        Args:
            path: The file.
            tags: The metrics.
            until: When to stop, by `time.monotonic`.
            last_only: Whether the last row is enough of a long file that was not read yet, in place of a preview.

        Raises:
            RunError: The file cannot be read.
        """
        wanted = list(tags)
        with self._lock:
            file = self._files.setdefault(path, MetricsFollower(path, Thinned))
            self._files.move_to_end(path)
            try:
                unread = file.unread(wanted)
                whole = unread == 0 or (unread < LONG and file.advance(wanted, until))
                if not whole and self._is_first_look(file, wanted):
                    self._later(path, wanted)
                    return newest(path, wanted) if last_only else self._first_look(path, wanted)
            except OSError as error:
                raise RunError(f"{line(path)} cannot be read: {error.strerror}.") from None
            if not whole:
                self._later(path, wanted)
            return {tag: file.metrics[tag] for tag in wanted if tag in file.metrics and file.metrics[tag].rows}

    def reader(self, *, extremes: bool) -> Callable[[Path, Collection[str]], dict[str, Series]]:
        """Reads metrics for `ganlab_compare`, for one request.

        Args:
            extremes: Whether series have the exact smallest and largest values.
        """
        until = time.monotonic() + _AT_ONCE

        def read(path: Path, tags: Collection[str]) -> dict[str, Series]:
            metrics = self.metrics(path, tags, until, last_only=extremes)
            if damaged := self.damaged(path):
                raise RunError(f"{line(path)} has {damaged} lines that are not lines of metrics.")
            return {tag: metric.series(extremes=extremes) for tag, metric in metrics.items()}

        return read

    def damaged(self, path: Path) -> int:
        """How many damaged lines a metrics.jsonl has, as far as it was read."""
        file = self._files.get(path)
        return file.damaged if file is not None else 0

    def pending(self) -> int:
        """How many metrics of runs are still being read in the background."""
        return len(self._wanted)

    def finish(self) -> None:
        """Waits until everything that was asked for is read."""
        while (thread := self._thread) is not None and thread.is_alive():
            thread.join()

    def _look(self) -> None:
        runs: dict[str, ShownRun] = {}
        problems = []
        summaries: dict[Path, tuple[tuple[int, int, int], RunSummary | str]] = {}
        for name, path in self._paths():
            try:
                status = os.lstat(path / INFO)
            except OSError:  # removed since
                continue
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            known = self._summaries.get(path)
            if known is None or known[0] != stamp:
                known = (stamp, _summary(path))
            elif isinstance(known[1], RunSummary) and known[1].status in ("running", "killed"):
                # A process that dies does not write run.json any more.
                known = (stamp, replace(known[1], status=status_of(path, {"status": "running"}, wait=False)))
            summaries[path] = known
            if isinstance(known[1], str):
                problems.append(known[1])
                continue
            digits = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
            runs[digits] = ShownRun(digits, name, path, known[1])
            if len(runs) >= MOST_RUNS:
                problems.append(f"Only the first {MOST_RUNS} runs are shown.")
                break
        self._runs, self._problems, self._summaries = runs, tuple(problems), summaries

    def _paths(self) -> Iterator[tuple[str, Path]]:
        """Names and directories of runs; links at the top of a folder are followed, as TensorBoard does."""
        seen: set[Path] = set()
        for folder in self._folders():
            tops = [("", folder.resolve())]  # nothing below is a link, because `find_runs` follows none
            try:
                links = sorted(entry.name for entry in os.scandir(folder) if entry.is_symlink() and entry.is_dir())
            except OSError:
                continue
            tops += [(name, (folder / name).resolve()) for name in links]
            for prefix, top in tops:
                for path in find_runs(top):
                    if path not in seen:
                        seen.add(path)
                        parts = (prefix, path.relative_to(top).as_posix())
                        yield line("/".join(part for part in parts if part not in ("", ".")) or path.name), path

    def _is_first_look(self, file: MetricsFollower[Thinned], tags: Sequence[str]) -> bool:
        return any(tag not in file.metrics for tag in tags) or any((file.path, tag) in self._wanted for tag in tags)

    def _first_look(self, path: Path, tags: Sequence[str]) -> dict[str, Thinned]:
        unknown = [tag for tag in tags if (path, tag) not in self._previews]
        if unknown:
            rows = preview(path, unknown)
            for tag in unknown:
                self._previews[path, tag] = rows.get(tag)
        known = {tag: self._previews[path, tag] for tag in tags}
        return {tag: metric for tag, metric in known.items() if metric is not None}

    def _later(self, path: Path, tags: Sequence[str]) -> None:
        for tag in tags:
            self._wanted[path, tag] = None
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._follow, name="ganlab-tab", daemon=True)
            self._thread.start()

    def _follow(self) -> None:
        """Reads what is wanted, file by file, and lets requests in between."""
        time.sleep(_PAUSE)
        while True:
            with self._lock:
                path = next((path for path, _ in self._wanted), None)
                if path is None:
                    self._thread = None
                    return
                tags = [tag for other, tag in self._wanted if other == path]
                file = self._files.setdefault(path, MetricsFollower(path, Thinned))
                try:
                    done = file.advance(tags, time.monotonic() + _PART)
                except (OSError, RunError):
                    done = True
                if done:
                    for tag in tags:
                        del self._wanted[path, tag]
                        self._previews.pop((path, tag), None)
                    self._forget()
            time.sleep(0.002)

    def _forget(self) -> None:
        used = sum(map(_size, self._files.values()))
        while used > _MOST_BYTES and len(self._files) > 1:
            used -= _size(self._files.popitem(last=False)[1])


def _size(file: MetricsFollower[Thinned]) -> int:
    """About how much memory the metrics of a file take."""
    return sum(metric.size for metric in file.metrics.values())


def _summary(path: Path) -> RunSummary | str:
    try:
        return read_run(path)
    except Exception as error:  # of one run, which must not hide the others
        return f"Left out: {why_unreadable(path, error)}"
