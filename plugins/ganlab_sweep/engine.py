"""Runs a sweep: starts trials as slots become free and watches them until none is left."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ganlab import Launcher
from ganlab.commands import plugin_code, selector_of
from ganlab.errors import GanlabError, RunError
from ganlab_sweep.ending import Ending
from ganlab_sweep.search_driver import SearchDriver
from ganlab_sweep.store import Sweep
from ganlab_sweep.trial import (
    COMPLETED,
    DIVERGED,
    ENDED,
    FAILED,
    INTERRUPTED,
    PRUNED,
    QUEUED,
    RUNNING,
    TIMED_OUT,
    WAITING,
    Trial,
    command,
    environment,
    trials_of,
)

_POLL_SECONDS = 0.1
# How long a process that holds the run of a waiting trial may write nothing there.
_STILL_SECONDS = 300.0


class Screen(Protocol):
    """Interface for displays of a sweep in progress."""

    def show(self, trials: Sequence[Trial]) -> None:
        """Displays the present state of all trials; called often."""


class Engine:
    """Runs the trials of a sweep in this process."""

    def __init__(
        self,
        sweep: Sweep,
        trials: Sequence[Trial],
        driver: SearchDriver,
        launcher: Launcher,
        *,
        screen: Screen | None,
        stopped: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] | None = None,
    ) -> None:
        """Takes the sweep as its folder has it.

        Args:
            sweep: The sweep, which this process holds.
            trials: From `take_up`.
            driver: The search, started.
            launcher: Starts the trials.
            screen: Displays them; None for no display.
            stopped: Whether to stop: trials then save, and the sweep can be resumed.
            clock: The time in seconds, for tests.
            wait: Waits for some seconds; by default the launcher does.
        """
        self._sweep, self._driver, self._launcher, self._screen = sweep, driver, launcher, screen
        self._stopped, self._clock, self._pause = stopped, clock, wait or launcher.wait
        self._jobs, self._threads = sweep.request.jobs, sweep.threads
        self._timeout = sweep.request.timeout
        self._ending = Ending(launcher, clock)
        self._stopping = False
        self.trials = list(trials)

    def run(self) -> None:
        """Trains all that is left to train, or as much as there is time for.

        Raises:
            GanlabError: The launcher or the search failed, or the sweep's folder cannot be written; trials under way
                were asked to save.
        """
        try:
            for trial in self.trials:  # an earlier process may have died before it could report
                self._report_end(trial)
            while self._turn():
                with plugin_code(selector_of(self._launcher), "wait"):
                    self._pause(_POLL_SECONDS)
        except Exception as error:
            self._abandon()
            if isinstance(error, OSError):
                raise RunError(
                    f"{self._sweep.path} cannot be written: {error}. Fix that and resume: {self._again()}"
                ) from error
            raise
        finally:
            with plugin_code(selector_of(self._launcher), "close"):
                self._launcher.close()

    def _turn(self) -> bool:
        """Looks at every trial once; returns whether there is more to do."""
        for trial in self.trials:
            if trial.status == RUNNING:
                self._watch(trial)
            elif trial.status == WAITING:
                self._wait(trial)
        if self._stopped() and not self._stopping:
            self._stopping = True
            self._ending.stop(self.trials)
        if not self._stopping:
            self._fill()
        if self._screen is not None:
            self._screen.show(self.trials)
        return any(trial.job or (trial.status == WAITING and not self._stopping) for trial in self.trials)

    def _fill(self) -> None:
        while sum(trial.status in (RUNNING, WAITING) for trial in self.trials) < self._jobs:
            trial = next((trial for trial in self.trials if trial.status == QUEUED), None)
            if trial is not None:
                self._start(trial)
                continue
            configuration = self._driver.next()
            if configuration is None:
                return
            self.trials += trials_of(self._sweep, configuration.name)

    def _start(self, trial: Trial) -> None:
        if who := trial.held():  # left by a sweep that was killed; it saves and ends soon
            trial.wait(who, self._clock())
            return
        if self._out_of_time(trial):
            trial.status = TIMED_OUT
            self._report_end(trial)
            return
        log_begins = trial.log.stat().st_size if trial.log.exists() else 0
        words, variables, folder = command(trial), environment(self._threads), self._folder()
        try:
            with plugin_code(selector_of(self._launcher), "start"):
                job = self._launcher.start(words, environment=variables, folder=folder, log=trial.log)
        except GanlabError as error:  # perhaps for a while, as a queue's server that does not answer
            error.args = (f"{error} What was trained is kept; to continue: {self._again()}",)
            raise
        trial.begin(job, self._clock(), log_begins)

    def _watch(self, trial: Trial) -> None:
        assert trial.job is not None
        # Poll before reading its files: once the process has ended, they no longer change.
        with plugin_code(selector_of(self._launcher), "poll"):
            exit_status = trial.job.poll()
        has_logged = trial.follow(self._clock())
        if exit_status is None:
            if self._ending.press(trial):
                self._ending.leave(trial)
            elif has_logged and not self._stopping and self._driver.report(self._with(trial)):
                self._give_up(trial)
            elif trial.stopped_at is None and self._out_of_time(trial):
                self._ending.stop([trial])
            if trial.job is not None:
                return
        else:
            if not self._stopping:
                self._driver.report(self._with(trial))  # what it has written since the last look
            trial.end(exit_status)
        self._ended(trial, exit_status)

    def _ended(self, trial: Trial, exit_status: int | None) -> None:
        """Records the end of a trial's process; the exit status is None if the process was given up."""
        if trial.status in (FAILED, INTERRUPTED) and not self._stopping and trial.lacks_space():
            raise RunError(
                f"{trial.name} failed because the disk is full: {trial.error.rstrip('.')}. The other trials were asked "
                f"to save. Free some space and resume, which trains it, too: {self._again()}"
            )
        noted = self._sweep.notes.get(trial.name, {})
        killed = self._ending.reason(exit_status) if exit_status is not None and trial.stopped_at is not None else ""
        if noted.get("status") in (PRUNED, TIMED_OUT) and trial.status != COMPLETED:
            reasons = [noted["error"], trial.error if exit_status is None else killed]
            trial.status, trial.error = noted["status"], "; ".join(filter(None, reasons))
        elif trial.status == INTERRUPTED and self._stopping and exit_status is not None:
            trial.error = killed
        elif trial.status == FAILED and not trial.run.exists():
            self._write(trial, FAILED)
        self._report_end(trial)

    def _out_of_time(self, trial: Trial) -> bool:
        """Whether a trial has reached the time limit, which is recorded."""
        if self._timeout is None or trial.seconds < self._timeout:
            return False
        trial.error = f"it has run for {trial.seconds:.0f} s; the limit is {self._timeout:g} s"
        self._write(trial, TIMED_OUT)
        return True

    def _wait(self, trial: Trial) -> None:
        """Queues a trial again after the earlier process that holds its run has released it."""
        if who := trial.held():
            still = trial.wait(who, self._clock())
            if still >= _STILL_SECONDS:
                trial.status = INTERRUPTED
                trial.error = f"{who} holds {trial.run} and has written nothing there for {still:.0f} s: end it first"
            return
        trial.look()
        trial.error = ""
        if trial.status == INTERRUPTED:
            trial.status = QUEUED
        self._report_end(trial)

    def _report_end(self, trial: Trial) -> None:
        if trial.status in ENDED:
            self._driver.ended(self._with(trial))

    def _give_up(self, trial: Trial) -> None:
        """Ends the trials of a configuration that the search has given up."""
        for other in self._with(trial):
            if other.status not in ENDED:
                self._write(other, PRUNED)
            if other.status in (QUEUED, WAITING, INTERRUPTED):
                other.status = PRUNED
        self._ending.stop(self._with(trial))
        self._report_end(trial)

    def _abandon(self) -> None:
        """Asks all trials to save and gives them time for it; nothing else may fail here."""
        self._ending.stop(self.trials)
        while any(trial.job for trial in self.trials):
            self._pause(_POLL_SECONDS)
            for trial in self.trials:
                exit_status = trial.job.poll() if trial.job else None
                if exit_status is not None:
                    trial.end(exit_status)
                elif self._ending.press(trial):
                    self._ending.leave(trial)

    def _again(self) -> str:
        return f"ganlab sweep --resume {shlex.quote(str(self._sweep.path))}"

    def _with(self, trial: Trial) -> list[Trial]:
        return [other for other in self.trials if other.configuration == trial.configuration]

    def _folder(self) -> Path:
        folder = Path(self._sweep.info["folder"])
        return folder if folder.is_dir() else Path.cwd()

    def _write(self, trial: Trial, status: str) -> None:
        self._sweep.notes[trial.name] = {"status": status, "error": trial.error}
        self._sweep.save()


def counts(trials: Sequence[Trial]) -> Mapping[str, int]:
    """How many trials have each status, in the order of a trial's life."""
    order = (COMPLETED, RUNNING, WAITING, QUEUED, INTERRUPTED, PRUNED, FAILED, TIMED_OUT, DIVERGED)
    numbers = {status: sum(trial.status == status for trial in trials) for status in order}
    return {status: count for status, count in numbers.items() if count}
