"""Conformance of launchers: a command runs with its environment, in its folder, and its end is told as shells do."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from ganlab.interfaces import Job, Launcher
from ganlab.testing.conformance import Conformance, check, fail


class LauncherConformance(Conformance):
    """Holds a launcher to its contract with commands of a second.

    class TestMine(LauncherConformance):
        def make(self):
            return Mine()

    Attributes:
        patience: How many seconds a command may wait and run; more where a queue is slow.
    """

    kind = "launchers"
    patience: float = 60.0

    def make(self) -> Launcher:
        """The launcher under test: a new one at every call. What an author writes."""
        raise NotImplementedError(f"{type(self).__name__} needs a method make(self) that returns a new launcher.")

    def _run(self, code: str, *, stop: bool = False) -> tuple[int, str]:
        """The exit status of Python code, and what it printed; stopped once it has printed, where asked."""
        with tempfile.TemporaryDirectory(prefix="ganlab-conformance-") as name:
            folder, log = Path(name).resolve(), Path(name) / "log.txt"
            launcher = self.make()
            job = launcher.start(
                [sys.executable, "-c", code], environment={"GANLAB_CONFORMANCE": "told"}, folder=folder, log=log
            )
            until = time.monotonic() + self.patience
            while (status := job.poll()) is None and time.monotonic() < until:
                if stop and log.is_file() and "begun" in log.read_text():
                    self._stop(job)
                time.sleep(0.05)
            if status is None:
                job.stop()
                status = -1
                fail(f"poll still returns None after {self.patience:g} s. Set patience where a queue is slower.")
            job.stop()  # of one that has ended: no error
            launcher.close()
            return int(status), log.read_text().replace(str(folder), "FOLDER") if log.is_file() else ""

    def _stop(self, job: Job) -> None:
        began = time.monotonic()
        job.stop()
        if time.monotonic() - began > 5:
            fail("stop took longer than 5 s. It must return at once; poll says when the command has ended.")

    @check(first=True)
    def test_a_command_runs_as_it_is_told(self) -> None:
        """In its folder, with the environment beside what is there, its output in the log, status 0."""
        code = "import os; print('out', os.environ['GANLAB_CONFORMANCE'], os.getcwd(), 'PATH' in os.environ)"
        status, said = self._run(code)
        if status != 0 or "out told FOLDER True" not in said:
            fail(
                f"A command that prints its environment and folder ended with {status} and left in the log: {said!r}. "
                "Start it in folder, with environment beside the variables that are there, and add its output to log."
            )

    @check()
    def test_exit_statuses_are_those_of_shells(self) -> None:
        """The command's own status; 128 and the signal's number where a signal ended it."""
        for code, expected in (("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)):
            status, _ = self._run(code)
            if status != expected:
                fail(f"poll returned {status} for a command whose status is {expected}, as shells count.")

    @check()
    def test_stop_is_sigterm_to_the_command(self) -> None:
        """A stopped command gets SIGTERM, and may save before it ends."""
        code = (
            "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
            "print('begun', flush=True)\ntime.sleep(60)"
        )
        status, said = self._run(code, stop=True)
        if status != 7:
            fail(f"A command that exits with 7 at SIGTERM ended with {status} when stopped; it printed {said!r}.")
