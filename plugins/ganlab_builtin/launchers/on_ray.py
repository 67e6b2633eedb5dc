"""Trials as actors of a Ray cluster."""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import require
from ganlab_builtin.launchers.children import CANNOT_START, Child, safe_path

_KILLED, _TERMINATED = 137, 143
_WAIT_SECONDS, _CONNECT_SECONDS = 0.2, 10.0

# Only a trial's command and exit status pass through Ray. The least that Ray accepts is 75 MB.
_OBJECT_STORE_BYTES = 80 * 2**20


class OnRay(ganlab.Launcher):
    """Runs every trial as an actor of a Ray cluster, which finds a machine with the requested cores and GPUs.

    Needs `pip install -e '.[ray]'`, and a folder for the sweep that all machines see. A trial has the environment of
    the sweep, except for the GPUs, which Ray assigns (`CUDA_VISIBLE_DEVICES`).
    """

    def __init__(
        self,
        *,
        address: str | None = None,
        num_cpus: Annotated[float, Ge(0)] = 1,
        num_gpus: Annotated[float, Ge(0)] = 0,
        resources: dict[str, float] | None = None,
        grace_seconds: Annotated[float, Ge(0)] = 60.0,
    ) -> None:
        """Chooses what each trial requests from Ray. Ray is started, or joined, with the first one.

        Args:
            address: The cluster's address, for example "auto" on one of its machines, or "ray-head:6379"; None for a
                Ray on this machine alone, which ends with the sweep, or for the one that this process is connected to.
            num_cpus: Cores.
            num_gpus: GPUs; a part of one, for example 0.5, is shared with others.
            resources: Amounts of the cluster's custom resources: `{"accelerator_type:H100": 0.1}`.
            grace_seconds: The time from SIGTERM, by which a trial is asked to save and end, to SIGKILL.
        """
        self._ray = require("ray")
        for name, amount in (resources or {}).items():
            if not 0 <= amount < math.inf:
                raise ganlab.ConfigError(f"launchers.ray: {name} = {amount!r} must be 0 or more.")
        self.grace_seconds = float(grace_seconds)
        self._address, self._own = address, False
        self._options: dict[str, Any] = {"num_cpus": num_cpus, "num_gpus": num_gpus, "resources": resources}

    def start(self, command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> ganlab.Job:
        """Makes an actor for one command; it waits until a machine has room."""
        self._connect()
        # With Ray's default, a run and a stop would wait for each other.
        actor = self._ray.remote(_Command).options(**self._options, max_concurrency=2).remote()
        variables = {**os.environ, **environment}
        return _RayJob(
            self._ray, actor, (list(command), variables, folder.absolute(), log.absolute(), self.grace_seconds)
        )

    def close(self) -> None:
        """Leaves the cluster; a Ray that was started for the sweep ends."""
        if self._own:
            self._ray.shutdown()
            self._own = False

    def _connect(self) -> None:
        ray = self._ray
        if not ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else it reports home
            settings: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
            if self._address is None:
                settings |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
            try:
                _check_listening(self._address)
                with safe_path():
                    ray.init(address=self._address or "local", **settings)
            except (OSError, RuntimeError, ValueError) as error:
                raise ganlab.ConfigError(
                    f"launchers.ray.address = {self._address!r} cannot be used: {str(error).rstrip('.')}. Leave it out "
                    "for a Ray on this machine alone."
                ) from error
            self._own = True
        if self._own and self._address is None:
            self._check_room(ray.cluster_resources())

    def _check_room(self, room: Mapping[str, float]) -> None:
        requests = {
            "CPU": self._options["num_cpus"],
            "GPU": self._options["num_gpus"],
            **(self._options["resources"] or {}),
        }
        for name, amount in requests.items():
            if amount > room.get(name, 0):
                raise ganlab.ConfigError(
                    f"launchers.ray: a trial requests {amount:g} {name}, and this machine has {room.get(name, 0):g}. "
                    "Request less, or give a cluster's address."
                )


class _RayJob(ganlab.Job):
    def __init__(self, ray: Any, actor: Any, arguments: tuple[Any, ...]) -> None:
        self._ray, self._actor = ray, actor
        self._begun, self._ended = actor.begun.remote(), actor.run.remote(*arguments)
        self._status: int | None = None
        self._stopped = False

    def poll(self) -> int | None:
        if self._status is None and self._is_there(self._ended):
            try:
                self._status = int(self._ray.get(self._ended))
            except self._ray.exceptions.RayError:  # the machine is lost, or the actor was taken out of the queue
                self._status = _TERMINATED if self._stopped else _KILLED
            self._actor = None  # frees its cores and GPUs for the next
        return self._status

    def stop(self) -> None:
        if self._status is not None or self._stopped:
            return
        self._stopped = True
        if self._is_there(self._begun):
            self._actor.stop.remote()
        else:
            self._ray.kill(self._actor)

    def kill(self) -> None:
        # Without its actor the command loses its parent, and its grace period begins.
        if self._status is None and self._actor is not None:
            self._ray.kill(self._actor)

    def _is_there(self, result: Any) -> bool:
        return bool(self._ray.wait([result], timeout=0)[0])


class _Command:
    """The actor of a trial: runs one command, a child process that does not outlive it."""

    def __init__(self) -> None:
        self._stopping = threading.Event()

    def begun(self) -> None:
        """Returns once there is a machine for the actor."""

    def run(
        self, command: list[str], environment: dict[str, str], folder: Path, log: Path, grace_seconds: float
    ) -> int:
        """Runs the command to its end and returns its exit status."""
        mine = {name: value for name, value in os.environ.items() if _is_of_devices(name)}
        others = {name: value for name, value in environment.items() if not _is_of_devices(name)}
        if self._stopping.is_set():
            return _TERMINATED
        try:
            variables = {**others, **mine}
            child = Child(command, environment=variables, folder=folder, log=log, grace_seconds=grace_seconds)
        except OSError:  # this machine does not see the folder
            return CANNOT_START
        is_stopping = False
        while (status := child.wait(_WAIT_SECONDS)) is None:
            if self._stopping.is_set() and not is_stopping:
                child.stop()
                is_stopping = True
        return status

    def stop(self) -> None:
        """Asks the command to save and end."""
        self._stopping.set()


def _check_listening(address: str | None) -> None:
    """Raises OSError if nothing listens at an address: Ray would wait minutes and then end the process."""
    host, colon, port = (address or "").rpartition("//")[2].rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()


def _is_of_devices(name: str) -> bool:
    """Whether Ray uses this variable to assign accelerators to a trial."""
    return name.endswith(("VISIBLE_DEVICES", "VISIBLE_CORES")) or name.startswith("TPU_")
