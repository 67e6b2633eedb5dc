"""Calls a command when a run ends, however it ends."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from typing import IO

import ganlab

_SECONDS = 30.0
_SHOWN = 200  # bytes of what the command printed last


class Notify:
    """Calls the command of `GANLAB_NOTIFY`, without a shell, when a run completes, stops, fails or diverges.

    The command finds in its environment `GANLAB_RUN`, the run's folder; `GANLAB_STATUS`, one of `completed`,
    `interrupted`, `failed` and `diverged`; `GANLAB_STEP`, the updates done; and `GANLAB_ERROR`, the reason, which is
    empty if there is none. It has 30 seconds.
    """

    def __init__(self, command: str) -> None:
        """Splits the command as a shell would."""
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise ganlab.ConfigError(
                f"GANLAB_NOTIFY={command!r} cannot be split into words: {error}. Write a command as in a shell; it is "
                "called without one, so pipes and variables need `sh -c '...'`."
            ) from None

    @ganlab.hookimpl
    def ganlab_run_end(self, run: ganlab.Run, status: str) -> None:
        """Calls the command."""
        info = run.info
        variables = {
            "GANLAB_RUN": str(run.path.absolute()),
            "GANLAB_STATUS": status,
            "GANLAB_STEP": str(info.get("step", 0)),
            "GANLAB_ERROR": str(info.get("error") or "").replace("\0", "")[:1000],
        }
        # A command that trains must not call itself for ever, and one in Python has its own folder to import from,
        # which a trial's environment forbids.
        left_out = ("GANLAB_NOTIFY", "PYTHONSAFEPATH")
        inherited = {name: value for name, value in os.environ.items() if name not in left_out}
        # A file and not a pipe, whose end would be waited for: what the command starts in turn may keep that open.
        with tempfile.TemporaryFile() as errors:
            try:
                code = self._call(inherited | variables, errors)
            except (OSError, ValueError) as error:
                raise ganlab.ConfigError(f"GANLAB_NOTIFY: {self._command[0]!r} cannot be called: {error}.") from None
            except subprocess.TimeoutExpired:
                raise ganlab.ConfigError(
                    f"GANLAB_NOTIFY: {self._command[0]!r} has not ended after {_SECONDS:g} s, and was ended."
                ) from None
            if code:
                errors.seek(max(0, errors.seek(0, os.SEEK_END) - _SHOWN))
                printed = errors.read(_SHOWN).decode(errors="replace").strip()
                raise ganlab.ConfigError(
                    f"GANLAB_NOTIFY: {self._command[0]!r} ended with exit status {code}{': ' * bool(printed)}{printed}"
                )

    def _call(self, environment: Mapping[str, str], errors: IO[bytes]) -> int:
        """Calls the command in a session of its own, which is killed as a whole if it takes too long."""
        process = subprocess.Popen(
            self._command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            return process.wait(_SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
