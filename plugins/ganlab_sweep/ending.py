"""Ends trials that were asked to stop: within their launcher's grace period, then by force, then by giving them up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ganlab import Launcher
from ganlab.commands import plugin_code, selector_of
from ganlab_sweep.trial import INTERRUPTED, Trial

# How long beyond its grace period a launcher may take to kill a job, and how long a killed job may take to end.
_SLACK_SECONDS = 30.0
KILLED = 137


class Ending:
    """Ends trials of one launcher."""

    def __init__(self, launcher: Launcher, clock: Callable[[], float]) -> None:
        """Takes the launcher, and a clock in seconds."""
        self._launcher, self._clock = launcher, clock
        self._killed: set[str] = set()

    def stop(self, trials: Sequence[Trial]) -> None:
        """Asks trials to save and end, each once; those that have no process are left alone."""
        for trial in trials:
            if trial.job is not None and trial.stopped_at is None:
                trial.stopped_at = self._clock()
                self._killed.discard(trial.name)
                with plugin_code(selector_of(self._launcher), "stop"):
                    trial.job.stop()

    def press(self, trial: Trial) -> bool:
        """Kills a trial that has not ended in time after it was asked to.

        Returns:
            Whether the kill had no effect either, so that the sweep must proceed without the trial.
        """
        if trial.job is None or trial.stopped_at is None:
            return False
        late = self._clock() - trial.stopped_at - self._launcher.grace_seconds - _SLACK_SECONDS
        if late >= 0 and trial.name not in self._killed:
            self._killed.add(trial.name)
            with plugin_code(selector_of(self._launcher), "kill"):
                trial.job.kill()
        return late >= _SLACK_SECONDS

    def leave(self, trial: Trial) -> None:
        """Gives up a trial that cannot be ended."""
        trial.job, trial.status = None, INTERRUPTED
        trial.error = (
            f"it has not ended {self._clock() - (trial.stopped_at or 0.0):.0f} s after it was asked to, and "
            f"{selector_of(self._launcher)} could not kill it: look for its process, by lock.json in {trial.run}"
        )

    def reason(self, exit_status: int) -> str:
        """Describes how a trial ended that was asked to stop; empty if it ended by itself."""
        if exit_status != KILLED:
            return ""
        return f"it ignored SIGTERM for {self._launcher.grace_seconds:g} s and was killed"
