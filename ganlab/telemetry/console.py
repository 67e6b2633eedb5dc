"""Shows a run's progress: a progress bar on a terminal or in a notebook, a line from time to time elsewhere."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ganlab.interfaces.record import Record, Writer
from ganlab.support.formatting import in_time
from ganlab.support.terminal import lines

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# The metric that is shown beside the progress.
_TAG = "critic/loss"

# Without a terminal a line is due after this fraction of the run, but not before the first of these times, and no later
# than the second.
_FRACTION = 0.05
_SOONEST_SECONDS = 10.0
_LATEST_SECONDS = 300.0
# Between two states of the bar of a notebook, each of which is a message to a browser.
_NOTEBOOK_SECONDS = 0.5


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class Console(Writer):
    """Shows progress and messages, but no pictures, on standard error, so that standard output stays for results.

    A terminal that goes away does not stop training: output that cannot be shown is dropped.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Takes the stream and the verbosity.

        Args:
            quiet: Show warnings only.
            stream: The stream to write to; standard error by default. A bar is drawn if it is a terminal.
            clock: Returns seconds; replaced in tests.
        """
        self._quiet = quiet
        self._stream = stream
        self._clock = clock
        self._total = 0
        self._step = 0
        self._value: float | None = None
        self._shown_step, self._shown_time = 0, 0.0
        self._timed: tuple[int, float] | None = None
        self._bar: tuple[Progress, TaskID] | None = None
        self._lines = False
        self._display: Any = None

    def start(self, total_steps: int, done: int = 0) -> None:
        """Begins to show progress.

        Args:
            total_steps: Generator updates of the whole run.
            done: How many of them are already done, in a resumed run.
        """
        self._total, self._step = total_steps, done
        self._shown_step, self._shown_time = done, self._clock()
        self._timed = None
        if self._quiet:
            return
        if self._out.isatty():
            self._bar = _progress_bar(self._out, total_steps, done)
        elif self._stream is None and in_notebook():
            from IPython.display import display

            self._display = display(self._cell(), raw=True, display_id=True)
        else:
            self._lines = True

    def time_from(self, step: int) -> None:
        """Estimates the speed from here on: the steps until now took longer, because graphs were made for them.

        Args:
            step: Generator updates done.
        """
        self._timed = step, self._clock()

    def scalars(self, records: Sequence[Record]) -> None:
        """Takes the metrics of one step, and moves on to it."""
        if not records:
            return
        self._step = records[0].step
        for record in records:
            if record.tag == _TAG:
                self._value = record.reduced
        if self._bar:
            progress, task = self._bar
            with contextlib.suppress(OSError):
                progress.update(task, completed=self._step, figure=self._figure())
        elif self._display and self._clock() - self._shown_time >= _NOTEBOOK_SECONDS:
            self._display.update(self._cell(), raw=True)
        elif self._lines and self._due():
            self._line()

    def message(self, text: str) -> None:
        """Prints a message, unless quiet."""
        if not self._quiet:
            self._say(text)

    def warning(self, text: str) -> None:
        """Prints a warning, also when quiet."""
        self._say(f"Warning: {text}")

    def flush(self) -> None:
        """Flushes the stream."""
        with contextlib.suppress(OSError, ValueError):
            self._out.flush()

    def close(self) -> None:
        """Ends the bar, leaving its last state, or prints the last step."""
        if self._bar:
            with contextlib.suppress(OSError):
                self._bar[0].stop()
            self._bar = None
        elif self._display:
            self._display.update(self._cell(), raw=True)
            self._display = None
        elif self._lines and self._step != self._shown_step:
            self._line()
        self._lines = False

    @property
    def _out(self) -> TextIO:
        return self._stream or sys.stderr

    def _say(self, text: str) -> None:
        text = lines(text)
        with contextlib.suppress(OSError, ValueError):  # the latter where the stream is closed on our side
            if self._bar:  # above the bar; rich would read [brackets] as markup and colour the numbers
                self._bar[0].console.print(text, markup=False, highlight=False, soft_wrap=True)
            else:
                print(text, file=self._out, flush=True)

    def _due(self) -> bool:
        waited = self._clock() - self._shown_time
        steps = self._step - self._shown_step
        return (waited >= _SOONEST_SECONDS and steps >= _FRACTION * self._total) or waited >= _LATEST_SECONDS

    def _line(self) -> None:
        self._say(self._state())

    def _cell(self) -> dict[str, str]:
        """The progress, as text and as HTML, for notebooks."""
        text = self._state()
        bar = f'<progress value="{self._step}" max="{self._total}"></progress>'
        return {"text/plain": text, "text/html": f"{bar} {html.escape(text)}"}

    def _state(self) -> str:
        now = self._clock()
        share = f"{100 * self._step / max(self._total, 1):.0f}%"
        parts = [f"step {self._step}/{self._total} ({share})"]
        if self._timed is not None and self._step > self._timed[0]:
            rate = (self._step - self._timed[0]) / max(now - self._timed[1], 1e-9)
            parts += [f"{rate:.1f} steps/s", f"{in_time((self._total - self._step) / rate)} left"]
            self._timed = self._step, now
        self._shown_step, self._shown_time = self._step, now
        return "  ".join([*parts, self._figure()]).rstrip()

    def _figure(self) -> str:
        return "" if self._value is None else f"{_TAG} {self._value:.4g}"


def _progress_bar(out: TextIO, total: int, done: int) -> tuple[Progress, TaskID]:
    # Imported here because rich takes a while to import, and a quiet or piped run does not need it.
    from rich.console import Console as Screen
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:.1f} steps/s" if speed else "", style="dim")

    progress = Progress(
        TextColumn("training"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        Speed(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figure]}"),
        console=Screen(file=out),
        refresh_per_second=4,
        expand=True,
    )
    task = progress.add_task("training", total=total, completed=done, figure="")
    progress.start()
    return progress, task
