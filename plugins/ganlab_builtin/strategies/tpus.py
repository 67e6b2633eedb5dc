"""TPUs, with retries while connecting."""

from __future__ import annotations

import glob
import importlib.util
import os
import socket
import time
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import ganlab
from ganlab.bounds import Ge, Machine
from ganlab.lazy import install
from ganlab.lazy import tensorflow as tf

T = TypeVar("T")

_ADDRESS_VARIABLES = ("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "TPU_NAME")
_CHIPS = ("/dev/accel[0-9]*", "/dev/vfio/[0-9]*")
_DEFAULT_PORT = 8470
_FIRST_WAIT, _LONGEST_WAIT, _PROBE_TIMEOUT = 1.0, 60.0, 10.0  # seconds


def tpu(
    *, address: Annotated[str, Machine()] = "", connect_attempts: Annotated[int, Ge(1)] = 5
) -> tf.distribute.Strategy:
    """A replica on each core of a TPU slice, in step.

    Make it before anything else uses TensorFlow: starting the TPU system clears what was there.

    Args:
        address: The TPU's name, "grpc://host:port", or "local" for the chips of this machine. Empty for the TPU in the
            environment variable `TPU_NAME`, or else the chips of this machine.
        connect_attempts: How often to try while the TPU cannot be reached, for example after its start or a preemption.
            Waits double from one second to at most a minute.
    """
    place = address or _address()
    transient = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError, ConnectionError, TimeoutError)
    try:
        resolver = retry(lambda: _connect(place), attempts=connect_attempts, transient=transient, sleep=time.sleep)
    except transient as error:
        raise ganlab.IncompatibleError(
            f"strategies.tpu could not reach the TPU {place!r} in {connect_attempts} attempts: {_line(error)}. Check "
            "that it runs and that this machine reaches it, or raise strategies.tpu.connect_attempts."
        ) from error
    except (tf.errors.OpError, ImportError, OSError, RuntimeError, ValueError) as error:
        raise ganlab.IncompatibleError(
            f"strategies.tpu found no TPU at {place!r}: {_line(error)}. Check strategies.tpu.address and that "
            "ganlab's extra [tpu] is installed, or use strategies.mirrored or strategies.one_device."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def retry(
    attempt: Callable[[], T],
    *,
    attempts: int,
    transient: tuple[type[BaseException], ...],
    sleep: Callable[[float], None],
) -> T:
    """Calls until it succeeds, waiting twice as long after each of the `transient` errors that may pass."""
    wait = _FIRST_WAIT
    for _ in range(attempts - 1):
        try:
            return attempt()
        except transient:
            sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
    return attempt()


def _connect(address: str) -> Any:
    _probe(address)
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address)
    try:
        tf.config.experimental_connect_to_cluster(resolver)
    except RuntimeError as error:
        if "not yet ready" in str(error):  # a TPU that is being made
            raise ConnectionError(str(error)) from error
        raise
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return resolver


def _probe(address: str) -> None:
    """Opens and closes a connection: TensorFlow would wait forever for a host that does not answer."""
    if not address.startswith("grpc://"):
        return
    host, _, port = address.removeprefix("grpc://").split(",")[0].partition(":")
    socket.create_connection((host, int(port or _DEFAULT_PORT)), timeout=_PROBE_TIMEOUT).close()


def _address() -> str:
    """The TPU's address according to this machine, without asking a server."""
    for variable in _ADDRESS_VARIABLES:
        if os.environ.get(variable):
            return os.environ[variable]
    if not any(glob.glob(pattern) for pattern in _CHIPS):
        raise ganlab.IncompatibleError(
            "strategies.tpu found no TPU: this machine has no TPU chips, and neither strategies.tpu.address nor the "
            "environment variable TPU_NAME names one. Name one, or use strategies.mirrored or strategies.one_device."
        )
    if importlib.util.find_spec("libtpu") is None:
        raise ganlab.IncompatibleError(
            "strategies.tpu cannot use the TPU chips of this machine: this TensorFlow is not built for them. Make a "
            f"fresh environment and there: {install('tpu')}"
        )
    return "local"


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
