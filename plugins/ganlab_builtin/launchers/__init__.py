"""First-party launchers of a sweep's trials, registered through this package's entry point like any plugin's."""

from __future__ import annotations

from collections.abc import Callable

import ganlab
from ganlab_builtin.launchers.local import Local
from ganlab_builtin.launchers.on_ray import OnRay
from ganlab_builtin.launchers.slurm import Submitit

GANLAB_KNOWN_AS = {
    "launchers.submitit": ["slurm"],
}


@ganlab.hookimpl
def ganlab_launchers() -> dict[str, Callable[..., ganlab.Launcher]]:
    """The launchers of this package."""
    return {"local": Local, "ray": OnRay, "submitit": Submitit}
