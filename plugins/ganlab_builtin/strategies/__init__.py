"""First-party strategies, registered through this package's entry point like any plugin's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ganlab
from ganlab_builtin.strategies.local import mirrored, one_device
from ganlab_builtin.strategies.tpus import tpu
from ganlab_builtin.strategies.workers import multi_worker

GANLAB_KNOWN_AS = {
    "strategies.mirrored": ["multi_gpu", "data_parallel", "ddp", "dp"],
    "strategies.one_device": ["cpu", "gpu", "single", "default"],
    "strategies.multi_worker": ["multi_node", "cluster"],
}


@ganlab.hookimpl
def ganlab_strategies() -> dict[str, Callable[..., Any]]:
    """The strategies of this package."""
    return {"mirrored": mirrored, "multi_worker": multi_worker, "one_device": one_device, "tpu": tpu}


@ganlab.hookimpl
def ganlab_defaults() -> dict[str, str]:
    """The defaults for experiments that name none."""
    return {"strategy": "mirrored"}
