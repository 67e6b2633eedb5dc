"""Asks for what is known of the devices, and makes findings of it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ganlab import python_command
from ganlab_devices import probe
from ganlab_devices.children import answers
from ganlab_devices.findings import Row, gpus, of_build, of_check, of_devices, of_tpu

# The first check imports TensorFlow. Kernels that the driver compiles at their first use take their time.
_SECONDS = {"devices": 180.0}
_OTHER_SECONDS = 120.0


def examine() -> Iterator[Row]:
    """Yields findings: what was checked, its state (`ok`, `note` or `broken`), and what was found.

    TensorFlow runs in other processes alone, each check with a limit of time.
    """
    installed = _installed()
    yield from of_tpu(installed)
    ((_, seen),) = _ask(["devices"])
    yield from of_devices(seen)
    if isinstance(seen, str):
        return
    yield from of_build(seen["version"], installed)
    if not gpus(seen):
        return
    for check, found in _ask([check for check in probe.CHECKS if check != "devices"]):
        yield from of_check(check, found, seen)


def _ask(checks: list[str]) -> Iterator[tuple[str, dict[str, Any] | str]]:
    command = python_command(str(Path(probe.__file__).resolve()))
    return answers(command, checks, lambda check: _SECONDS.get(check, _OTHER_SECONDS))


def _installed() -> dict[str, tuple[str, list[str]]]:
    """The version and the requirements of TensorFlow's builds, and of a TPU's runtimes, those that there are."""
    found = {}
    for name in ("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "libtpu", "libtpu-nightly"):
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[name] = distribution.version, list(distribution.requires or [])
    return found
