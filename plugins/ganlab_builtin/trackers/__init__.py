"""First-party trackers: they follow runs if the environment asks for them, and cost nothing otherwise.

`GANLAB_TRACKERS=mlflow,wandb` sends metrics to those services, and `GANLAB_NOTIFY='COMMAND'` calls a command when a run
ends. Each is a plugin of its own, so that one which fails or hangs leaves the others alone.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import ganlab

VARIABLE, NOTIFY = "GANLAB_TRACKERS", "GANLAB_NOTIFY"

# By name in the variable: the module, its class, and the package that it needs.
_SERVICES = {
    "mlflow": ("mlflow_tracker", "MlflowTracker"),
    "wandb": ("wandb_tracker", "WandbTracker"),
}


class _Off:
    """A plugin that follows no run, so that no thread is started for it."""

    @ganlab.hookimpl
    def ganlab_register_commands(self, cli: Any) -> None:
        """Adds none: a plugin without any hook would be reported as a mistake."""


class _Refused:
    """Reports a mistake in the environment at the start of every run."""

    def __init__(self, message: str) -> None:
        self._message = message

    @ganlab.hookimpl
    def ganlab_run_start(self, run: ganlab.Run) -> None:
        raise ganlab.ConfigError(self._message)


def project_and_name(run: ganlab.Run) -> tuple[str, str]:
    """The name of a run's parent folder, of trials the whole sweep's or benchmark's, and the run's name in it."""
    path = run.path.absolute()
    wholes = [at for at in path.parents[1:4] if any((at / name).is_file() for name in ("sweep.json", "benchmark.json"))]
    project = wholes[-1] if wholes else path.parent
    return project.name or "ganlab", path.relative_to(project).as_posix()


def asked() -> list[str]:
    """The names in `GANLAB_TRACKERS`, which are separated by commas."""
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]


def _service(name: str) -> Any:
    if name not in asked():
        return _Off()
    module, factory = _SERVICES[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), factory)()


def _notify() -> Any:
    command = os.environ.get(NOTIFY, "").strip()
    if not command:
        return _Off()
    from ganlab_builtin.trackers.notify_command import Notify

    try:
        return Notify(command)
    except ganlab.ConfigError as error:
        return _Refused(str(error))


def _unknown() -> Any:
    unknown = [name for name in asked() if name not in _SERVICES]
    if not unknown:
        return _Off()
    known = ", ".join(_SERVICES)
    return _Refused(
        f"{VARIABLE} names {unknown[0]!r}, which is none of ganlab's trackers.{ganlab.nearest(unknown[0], _SERVICES)} "
        f"Name one or more of {known}, separated by commas; a tracker of your own is a plugin and needs no name here."
    )


mlflow, wandb, notify, unknown = _service("mlflow"), _service("wandb"), _notify(), _unknown()
