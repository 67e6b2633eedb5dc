"""Sends a run's settings, metrics and status to Weights & Biases, or to its offline files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from typing import Any

import ganlab
from ganlab.lazy import install
from ganlab_builtin.trackers import project_and_name

_ID = "wandb_run_id"
# Characters that a project's name may have at most; of them #, ?, %, :, / and the backslash are refused.
_LONGEST = 128


class WandbTracker:
    """Follows runs into Weights & Biases: offline, into the folder `wandb` where you are, unless `WANDB_MODE` is set.

    `wandb sync` uploads offline runs. The project is `WANDB_PROJECT`, by default the name of the run's parent folder,
    or of its sweep. Settings become the configuration, and each metric appears reduced, under its tag, and by replica,
    as `replica/0/TAG`. The id is in the run's folder, so that a resumed run continues the same one.
    """

    def __init__(self) -> None:
        self._run: Any = None

    @ganlab.hookimpl
    def ganlab_run_start(self, run: ganlab.Run) -> None:
        """Opens or continues the service's run."""
        self._run = None
        try:
            import wandb
        except ImportError as error:
            raise ganlab.MissingDependencyError(
                f"GANLAB_TRACKERS=wandb needs wandb ({error}). Install it: {install('wandb')}"
            ) from None
        project, name = project_and_name(run)
        mode: Any = os.environ.get("WANDB_MODE") or "offline"
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or re.sub(r"[/\\#?%:]", "_", project)[:_LONGEST],
            name=name,
            id=_id(run),
            resume="allow",
            mode=mode,
            config={key: _plain(value) for key, value in (run.info.get("settings") or {}).items()},
            # Neither code nor what the process prints is anybody's but the user's.
            settings=wandb.Settings(
                console="off", disable_code=True, disable_git=True, save_code=False, silent=True, x_disable_stats=True
            ),
        )

    @ganlab.hookimpl
    def ganlab_metrics(self, run: ganlab.Run, records: Sequence[ganlab.Record]) -> None:
        """Sends a row."""
        if self._run is None or not records:  # the start failed, and has been reported
            return
        row = {record.tag: float(record.reduced) for record in records}
        for record in records:
            row |= {f"replica/{number}/{record.tag}": float(value) for number, value in enumerate(record.replicas)}
        self._run.log(row, step=records[0].step)

    @ganlab.hookimpl
    def ganlab_run_end(self, run: ganlab.Run, status: str) -> None:
        """Records how training ended, and closes the file."""
        if self._run is not None:
            self._run.summary["ganlab/status"] = status
            self._run.finish(exit_code=0 if status == "completed" else 1)
            self._run = None


def _id(run: ganlab.Run) -> str:
    note = run.path / _ID
    if note.exists():
        return note.read_text(encoding="utf-8").strip()[:64]
    digest = hashlib.sha256(f"{run.path.absolute()} {run.info.get('started')} {os.urandom(8).hex()}".encode())
    note.write_text(digest.hexdigest()[:16], encoding="utf-8")
    return digest.hexdigest()[:16]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
