"""Imports modules on first use, because TensorFlow takes seconds to import and `--help` must not.

`from ganlab.lazy import tensorflow as tf` gives a plugin a module that behaves like `tensorflow` and costs
nothing until it is used, so that listing plugins or checking an experiment file stays quick. A plugin may also
import TensorFlow in the ordinary way; it is then slower to list.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import tempfile
import types
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ganlab.errors import ConfigError, MissingDependencyError


def install(extra: str) -> str:
    """The command that installs one of ganlab's extras, such as `eval`."""
    return f"pip install -e '.[{extra}]' in ganlab's source tree"


INSTALL_TENSORFLOW = f"{install('cpu')} (or [gpu] on NVIDIA GPUs, [tpu] on TPUs)"
USE_TENSORFLOW = "unset KERAS_BACKEND, or edit ~/.keras/keras.json"
_INSTALL = {
    "tensorflow": INSTALL_TENSORFLOW,
    "keras": INSTALL_TENSORFLOW,
    "ot": install("eval"),
    "tensorflow_datasets": install("tfds"),
    "onnx": install("onnx"),
    "onnxruntime": install("onnx"),
    "tf2onnx": install("onnx-export"),
    "submitit": install("slurm"),
    "ray": install("ray"),
    "optuna": install("sweep"),
}
# Keras' wrappers import scikit-learn, and its gallery of images a plotting library: together a quarter of the time that
# TensorFlow and Keras take to import, and training uses neither.
_LATE = frozenset({"keras.wrappers", "matplotlib.pyplot"})

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
# A line that TensorFlow's libraries log, as Abseil writes it and as they did before, and what belongs to it.
_NOTE = re.compile(
    rb"[IWE]\d{4} [\d:.]+ +\d+ |\d{4}-\d\d-\d\d [\d:.]+: [IWE] |WARNING: All log messages before|To enable"
)


def require(name: str) -> types.ModuleType:
    """Imports a module that one of ganlab's extras installs.

    Args:
        name: The module's name, e.g. `tensorflow`.

    Returns:
        The module.

    Raises:
        MissingDependencyError: The module is not installed; the message names the extra to install.
        ConfigError: The module is Keras, and its backend is not TensorFlow.
    """
    import_matplotlib()  # as Keras does
    if name == "keras" and name not in sys.modules:
        _check_backend(os.environ.get("KERAS_BACKEND", "tensorflow"))  # before Keras looks for JAX or PyTorch
    talkative = name == "tensorflow" and name not in sys.modules and "IPython" in sys.modules
    try:
        with _late_parts(), _without_notes(name):
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if name == "keras" and error.name in ("jax", "torch"):
            _check_backend(error.name)  # set by keras.json
        if error.name != name:
            raise
        hint = _INSTALL.get(name, f"pip install {name}")
        raise MissingDependencyError(f"{name} is not installed, and this needs it. Install it: {hint}") from None
    if talkative:  # a notebook would show its warning of every other trace
        module.get_logger().setLevel("ERROR")
    if name == "keras":
        _check_backend(module.config.backend())
    return module


def no_greetings() -> None:
    """Silences TensorFlow's notes on devices before its import, unless the environment asks for them."""
    os.environ.setdefault(_LEVEL, "3")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


@contextlib.contextmanager
def quiet_native_stderr() -> Iterator[None]:
    """Context manager: withholds what TensorFlow's libraries log to standard error, unless an exception is raised.

    On import, they print notes on missing devices before any log level applies. Whatever else was written comes late.
    """
    try:
        screen = os.dup(2)
    except OSError:  # no standard error at all
        yield
        return
    failed = False
    with tempfile.TemporaryFile() as withheld:
        _flush()
        os.dup2(withheld.fileno(), 2)
        try:
            yield
        except BaseException:
            failed = True
            raise
        finally:
            _flush()
            os.dup2(screen, 2)
            withheld.seek(0)
            os.write(screen, b"".join(line for line in withheld if failed or not _NOTE.match(line)))
            os.close(screen)


@contextlib.contextmanager
def _without_notes(name: str) -> Iterator[None]:
    """Context manager: TensorFlow logs nothing from its first import on, if nobody has set its level of logging.

    The level is in the environment only meanwhile, so other processes have the user's.
    """
    level = os.environ.get(_LEVEL)
    if name not in ("tensorflow", "keras") or "tensorflow" in sys.modules or level not in (None, "3"):
        yield
        return
    os.environ[_LEVEL] = "3"
    try:
        with quiet_native_stderr():
            yield
    finally:
        if level is None:
            del os.environ[_LEVEL]


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # there may be no such stream
        sys.stderr.flush()


def import_matplotlib() -> None:
    """Imports Matplotlib from another folder if the working directory has a `matplotlibrc`, which it would read.

    That file may be a stranger's: it chooses programs that are started, and it may be a pipe.
    """
    if "matplotlib" in sys.modules or not os.path.lexists("matplotlibrc"):
        return
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(os.sep)
        with contextlib.suppress(ImportError):
            importlib.import_module("matplotlib")
    finally:
        os.fchdir(here)
        os.close(here)


def _check_backend(backend: str) -> None:
    if backend != "tensorflow":
        raise ConfigError(f"Keras is set to the backend {backend!r}; ganlab needs 'tensorflow': {USE_TENSORFLOW}.")


@contextlib.contextmanager
def _late_parts() -> Iterator[None]:
    """Context manager: modules in `_LATE` that are first imported inside run when one of their attributes is read."""
    if "keras" in sys.modules:
        yield
        return
    finder = _LateFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _LateFinder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target) if fullname in _LATE else None
        if spec is not None and spec.loader is not None:
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec


class _LazyModule(types.ModuleType):
    def __getattr__(self, attribute: str) -> Any:
        return getattr(require(self.__name__), attribute)


if TYPE_CHECKING:
    import keras
    import tensorflow
else:
    keras = _LazyModule("keras")
    tensorflow = _LazyModule("tensorflow")

__all__ = ["import_matplotlib", "install", "keras", "require", "tensorflow"]
