"""Calls a command when a run ends, however it ends."""

from __future__ import annotations

import os
import shlex
import subprocess

import ganlab

_SECONDS = 30.0


class Notify:
    """Calls the command of `GANLAB_NOTIFY`, without a shell, when a run completes, stops, fails or diverges.

    The command finds in its environment `GANLAB_RUN`, the run's folder; `GANLAB_STATUS`, one of `completed`,
    `interrupted`, `failed` and `diverged`; `GANLAB_STEP`, the updates done; and `GANLAB_ERROR`, the reason, which is
    empty if there is none. It has 30 seconds.
    """

    def __init__(self, command: str) -> None:
        """Splits the command as a shell would.

        Raises:
            ConfigError: It cannot be split.
        """
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise ganlab.ConfigError(
                f"GANLAB_NOTIFY={command!r} cannot be split into words: {error}. Write a command as in a shell; it is "
                "called without one, so pipes and variables need `sh -c '...'`."
            ) from None

    @ganlab.hookimpl
    def ganlab_run_end(self, run: ganlab.Run, status: str) -> None:
        """Calls the command.

        Raises:
            ConfigError: It cannot be started, fails or takes too long.
        """
        info = run.info
        variables = {
            "GANLAB_RUN": str(run.path.absolute()),
            "GANLAB_STATUS": status,
            "GANLAB_STEP": str(info.get("step", 0)),
            "GANLAB_ERROR": str(info.get("error") or "").replace("\0", "")[:1000],
        }
        # A command that trains must not call itself for ever.
        inherited = {name: value for name, value in os.environ.items() if name != "GANLAB_NOTIFY"}
        try:
            done = subprocess.run(
                self._command,
                env=inherited | variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=_SECONDS,
            )
        except (OSError, ValueError) as error:
            raise ganlab.ConfigError(f"GANLAB_NOTIFY: {self._command[0]!r} cannot be called: {error}.") from None
        except subprocess.TimeoutExpired:
            raise ganlab.ConfigError(
                f"GANLAB_NOTIFY: {self._command[0]!r} has not ended after {_SECONDS:g} s, and was ended."
            ) from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-200:]
            raise ganlab.ConfigError(
                f"GANLAB_NOTIFY: {self._command[0]!r} ended with exit status {done.returncode}{': ' * bool(said)}{said}"
            )
