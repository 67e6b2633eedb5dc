"""XLA's programs on disk, so that resumed runs, replays and trials of a sweep need not compile them again.

TensorFlow has such a cache, named in its environment and read once, before it looks at devices. The name of an entry
holds the number of the traced function, and nothing about TensorFlow, its switches or the processor. Here programs are
kept by all of these, and numbers begin at a round one, so that a resumed run gives its functions those of the first.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.metadata
import math
import os
import platform
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganlab.errors import ConfigError
from ganlab.lazy import tensorflow as tf
from ganlab.support.hashing import digest
from ganlab.support.paths import local
from ganlab.support.program_store import Room, fault, sizes

VARIABLE, _SIZE, _OFF = "GANLAB_XLA_CACHE", "GANLAB_XLA_CACHE_GB", "off"
_GB, _DEFAULT_GB = 10**9, 2.0
_FLAGS, _CACHE = "TF_XLA_FLAGS", "--tf_xla_persistent_cache"
_DRIVER = Path("/proc/driver/nvidia/version")
# Variables that programs may depend on; those that change what is printed, who works and how memory is taken; and those
# that no program of a GPU depends on.
_SWITCHES = re.compile(r"(TF|XLA|ONEDNN|CUDA|NVIDIA|CUBLAS|CUDNN|OMP|MKL)_\w+|LD_LIBRARY_PATH")
_NO_SWITCH = re.compile(r"TF_(CPP_\w+|CONFIG|FORCE_GPU_ALLOW_GROWTH|GPU_ALLOCATOR)|CUDA_VISIBLE_DEVICES")
_THREADS = re.compile(r"(TF_NUM|OMP|MKL)_\w+")
# Functions are numbered from a multiple on: more than what making the variables of an experiment takes.
_ROUND = 1 << 16

_room: Room | None = None
_decided_by = 0  # the process


def prepare() -> None:
    """Has TensorFlow keep its programs, if they are to be kept; called before it looks at devices.

    `GANLAB_XLA_CACHE` in the environment names the folder, or is `off`. By default it is `xla` in the user's cache
    folder, for programs of GPUs alone: on CPUs reading and checking them gains little.
    """
    global _room, _decided_by
    if _decided_by:
        return
    _decided_by, folder, most = os.getpid(), _folder(), _most()
    if folder is None or _CACHE in os.environ.get(_FLAGS, ""):
        return
    problem = _unusable(folder)
    if not problem:
        try:
            room = Room(folder.resolve(), most)
        except OSError as error:
            problem = f"{folder} cannot be used: {error.strerror}"
    if problem:
        warnings.warn(f"XLA's programs are compiled anew and not kept: {problem}.", stacklevel=2)
        return
    _room = room
    atexit.register(_close)
    devices = "" if os.environ.get(VARIABLE) else f"{_CACHE}_device_types=GPU"
    with _flags(f"{_CACHE}_directory='{room.path}'", devices):
        tf.config.list_physical_devices()  # reads the flags


def fill(*settings: object, on_gpu: bool) -> bool:
    """Gives TensorFlow the sound programs that were compiled here; whether programs are kept.

    Called before a function is traced, with settings of the experiment that programs depend on and their keys do not.
    """
    prepare()
    if _room is None or os.getpid() != _decided_by:
        return False
    _room.keep()
    _room.fill(_kind(settings, on_gpu))
    return True


def keep() -> None:
    """Keeps the programs that were compiled; called once they are."""
    if _room is not None and os.getpid() == _decided_by:
        _room.keep()


def number_functions() -> None:
    """Has the functions that are traced next numbered from a multiple of 65,536 on, by which XLA's cache names them."""
    from tensorflow.python.framework.ops import uid  # no public name

    while uid() % _ROUND:
        pass


def describe() -> tuple[str, str]:
    """For `ganlab doctor`: `ok` or `note`, and a sentence about where XLA's programs are kept."""
    try:
        folder, most = _folder(), _most()
    except ConfigError as error:
        return "note", str(error)
    if folder is None:
        off = os.environ.get(VARIABLE) == _OFF
        return "ok", "off" if off else f"off without an NVIDIA GPU; {VARIABLE} names a folder to keep programs in"
    if problem := fault(folder.resolve()):
        return "note", f"not used: {problem}"
    found = sizes(folder)
    used = sum(size for _, size, _ in found)
    return "ok", f"{folder}: {len(found)} programs, {used / _GB:.2f} of {most / _GB:g} GB"


def _folder() -> Path | None:
    given = os.environ.get(VARIABLE, "")
    if given == _OFF or not (given or _DRIVER.exists()):
        return None
    if given:
        folder = local(given, VARIABLE).expanduser()
        if not folder.is_absolute():
            raise ConfigError(f"{VARIABLE} = {given!r} must be the whole path of a folder, or '{_OFF}'.")
        return folder
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("GANLAB_CACHE") or Path(cache) / "ganlab").expanduser().absolute() / "xla"


def _most() -> int:
    given = os.environ.get(_SIZE, "")
    with contextlib.suppress(ValueError):
        size = float(given or _DEFAULT_GB)
        if 0 < size < math.inf:
            return int(size * _GB)
    raise ConfigError(f"{_SIZE} = {given!r} must be a number of gigabytes above 0.")


def _unusable(folder: Path) -> str:
    from tensorflow.python.eager.context import context  # no public name

    flags = os.environ.get(_FLAGS, "").strip()
    if "'" in str(folder) or (flags and not flags.startswith("-")):
        return f"{_FLAGS} = {flags!r} does not take the folder {folder} in addition"
    if context()._physical_devices is not None:
        return f"TensorFlow has started without {VARIABLE}; make the strategy before anything else uses it"
    return fault(folder.resolve())


@contextlib.contextmanager
def _flags(*added: str) -> Iterator[None]:
    """Context manager: TensorFlow's flags with others; children of this process have rooms of their own."""
    before = os.environ.get(_FLAGS)
    os.environ[_FLAGS] = " ".join(filter(None, (before, *added)))
    try:
        yield
    finally:
        if before is None:
            del os.environ[_FLAGS]
        else:
            os.environ[_FLAGS] = before


def _kind(settings: Sequence[object], on_gpu: bool) -> str:
    """A name for everything that a program depends on beside what TensorFlow's key holds."""
    facts: list[object] = [tf.version.VERSION, tf.version.GIT_VERSION, sorted(tf.sysconfig.get_build_info().items())]
    facts += settings
    for name, value in sorted(os.environ.items()):
        if _SWITCHES.fullmatch(name) and not _NO_SWITCH.fullmatch(name) and not (on_gpu and _THREADS.fullmatch(name)):
            facts.append((name, value))
    if on_gpu:
        for gpu in tf.config.list_physical_devices("GPU"):
            facts += sorted(tf.config.experimental.get_device_details(gpu).items())
        packages = {f"{each.name} {each.version}" for each in importlib.metadata.distributions()}
        facts += [_text(_DRIVER), *sorted(name for name in packages if name.startswith("nvidia-"))]
    else:
        threads = tf.config.threading
        facts += [threads.get_intra_op_parallelism_threads(), threads.get_inter_op_parallelism_threads()]
        facts += [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()]
        facts += [platform.machine(), *_processor()]
    return f"tensorflow-{tf.version.VERSION}-{digest(repr(facts).encode())}"


def _processor() -> list[str]:
    """The model and the instructions of the first processor, as Linux has them."""
    first, _, _ = _text(Path("/proc/cpuinfo")).partition("\n\n")
    return [line for line in first.split("\n") if line.startswith(("model name", "flags", "Features", "CPU part"))]


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _close() -> None:
    if _room is not None and os.getpid() == _decided_by:
        _room.keep()
        _room.close()
