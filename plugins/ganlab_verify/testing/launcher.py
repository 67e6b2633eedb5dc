"""Conformance of launchers: a command runs with its environment, in its folder, and its exit status is a shell's."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from ganlab import Job, Launcher
from ganlab.files import scratch_folder
from ganlab_verify.testing.conformance import Conformance, check, fail


class LauncherConformance(Conformance):
    """Checks a launcher against its contract with commands that take about a second.

    class TestMine(LauncherConformance):
        def make(self):
            return Mine()

    Attributes:
        patience: How many seconds a command may wait and run; raise it if a queue is slow.
    """

    kind, role = "launchers", Launcher
    patience: float = 60.0

    def _run(self, code: str, *, stop: bool = False) -> tuple[int, str]:
        """Runs Python code; returns the exit status and the output. With `stop` it is stopped after it has printed."""
        with scratch_folder("ganlab-conformance-") as name:
            folder, log = Path(name).resolve(), Path(name) / "log.txt"
            launcher = self.make()
            job = launcher.start(
                [sys.executable, "-c", code], environment={"GANLAB_CONFORMANCE": "given"}, folder=folder, log=log
            )
            until = time.monotonic() + self.patience
            while (status := job.poll()) is None and time.monotonic() < until:
                if stop and log.is_file() and "begun" in log.read_text():
                    self._stop(job)
                    stop = False  # a second signal would meet a Python that ends, and no longer catches it
                time.sleep(0.05)
            if status is None:
                job.stop()
                status = -1
                fail(f"poll still returns None after {self.patience:g} s. If the queue is slow, raise patience.")
            job.stop()  # after the end: not an error
            launcher.close()
            return int(status), log.read_text().replace(str(folder), "FOLDER") if log.is_file() else ""

    def _stop(self, job: Job) -> None:
        began = time.monotonic()
        job.stop()
        if time.monotonic() - began > 5:
            fail("stop took longer than 5 s. It must return at once; poll reports when the command has ended.")

    @check(first=True)
    def test_a_command_runs_as_it_is_told(self) -> None:
        """In its folder, with the environment added to the existing one, its output in the log, status 0."""
        code = "import os; print('out', os.environ['GANLAB_CONFORMANCE'], os.getcwd(), 'PATH' in os.environ)"
        status, output = self._run(code)
        if status != 0 or "out given FOLDER True" not in output:
            fail(
                f"A command that prints its environment and folder ended with {status} and this log: {output!r}. "
                "Start it in folder, add environment to the existing variables, and append its output to log."
            )

    @check()
    def test_exit_statuses_are_those_of_shells(self) -> None:
        """The command's own status, or 128 plus the signal's number if a signal ended it."""
        for code, expected in (("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)):
            status, _ = self._run(code)
            if status != expected:
                fail(f"poll returned {status} for a command whose exit status in a shell is {expected}.")

    @check()
    def test_stop_is_sigterm_to_the_command(self) -> None:
        """A stopped command gets SIGTERM, and may save before it ends."""
        code = (
            "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
            "print('begun', flush=True)\ntime.sleep(60)"
        )
        status, output = self._run(code, stop=True)
        if status != 7:
            fail(f"A command that exits with 7 at SIGTERM ended with {status} when stopped; it printed {output!r}.")

    @check()
    def test_wait_returns_in_time(self) -> None:
        """`wait` returns after the time that it is given, or before."""
        launcher, began = self.make(), time.monotonic()
        launcher.wait(0.1)
        launcher.close()
        if (took := time.monotonic() - began) > 5:
            fail(f"wait(0.1) returned after {took:.1f} s. The sweep polls its jobs only after that: return in time.")
