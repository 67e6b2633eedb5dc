"""The ways in which a run is stopped."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from killing.faults import Fault

_CHECKPOINTS, _OTHERS = "/checkpoints", "!/checkpoints"
_NONE = Fault()


@dataclass(frozen=True)
class Kind:
    """One way to stop a run.

    Attributes:
        name: In the report.
        sent: The signal that comes at a random moment; None where the fault does it.
        fault: Of which kind, on which files.
        codes: Exit codes that are right, as subprocess gives them.
        status: What run.json must say afterwards, or None where nothing can be asked of it.
        power: Whether the power goes with the process.
        damage: Whether the newest checkpoint is damaged afterwards.
    """

    name: str
    sent: signal.Signals | None = None
    fault: Fault = _NONE
    codes: tuple[int, ...] = (-signal.SIGKILL,)
    status: str | None = None
    power: bool = False
    damage: bool = False


KINDS = (
    Kind("SIGKILL at a random moment", signal.SIGKILL),
    Kind("SIGKILL while a checkpoint is written", fault=Fault("kill", _CHECKPOINTS)),
    Kind("SIGKILL while another file is written", fault=Fault("kill", _OTHERS)),
    Kind("loss of power", fault=Fault("kill"), power=True),
    Kind("SIGTERM", signal.SIGTERM, codes=(143,), status="interrupted"),
    Kind("SIGINT", signal.SIGINT, codes=(130,), status="interrupted"),
    # Before training begins, a folder that cannot be written to is a mistake of the command: 2.
    Kind("disk full", fault=Fault("enospc"), codes=(1, 2)),
    Kind("checkpoints read-only", fault=Fault("erofs", _CHECKPOINTS), codes=(1, 2)),
    Kind("SIGKILL, and the newest checkpoint damaged", signal.SIGKILL, damage=True),
)
