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
        name: The name in the report.
        sent: The signal that is sent at a random moment; None if the fault stops the run.
        fault: The kind of fault, and its files.
        codes: The expected exit codes, as subprocess returns them.
        status: The expected status in run.json afterwards; None if it can be any.
        power: Whether the power is lost with the process.
        damage: Whether the newest checkpoint is damaged afterwards.
        starts: How many processes start at once; all but one must leave the run to it.
    """

    name: str
    sent: signal.Signals | None = None
    fault: Fault = _NONE
    codes: tuple[int, ...] = (-signal.SIGKILL,)
    status: str | None = None
    power: bool = False
    damage: bool = False
    starts: int = 1


KINDS = (
    Kind("SIGKILL at a random moment", signal.SIGKILL),
    Kind("SIGKILL while a checkpoint is written", fault=Fault("kill", _CHECKPOINTS)),
    Kind("SIGKILL while another file is written", fault=Fault("kill", _OTHERS)),
    Kind("loss of power", fault=Fault("kill"), power=True),
    Kind("SIGTERM", signal.SIGTERM, codes=(143,), status="interrupted"),
    Kind("SIGINT", signal.SIGINT, codes=(130,), status="interrupted"),
    # Before training begins, a folder that cannot be written to is a usage error: 2.
    Kind("disk full", fault=Fault("enospc"), codes=(1, 2)),
    Kind("checkpoints read-only", fault=Fault("erofs", _CHECKPOINTS), codes=(1, 2)),
    Kind("SIGKILL, and the newest checkpoint damaged", signal.SIGKILL, damage=True),
    Kind("SIGTERM, and the clock jumps", signal.SIGTERM, Fault("jump"), codes=(143,), status="interrupted"),
    Kind("SIGKILL after two starts at once", signal.SIGKILL, starts=2),
)
