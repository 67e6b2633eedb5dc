"""Data classes for plugins and the components that they offer."""

from __future__ import annotations

import inspect
import re
import traceback
from dataclasses import dataclass

from ganlab.plugins.plugin_errors import bounded
from ganlab.plugins.recipes import Factory

KINDS = (
    "constraints",
    "architectures",
    "strategies",
    "datasets",
    "losses",
    "augmentations",
    "schedules",
    "evaluators",
    "diagnostics",
    "features",
    "optimizers",
    "launchers",
    "searches",
)

# The statuses of unusable plugins.
UNUSABLE = ("broken", "incompatible")


@dataclass(frozen=True)
class Plugin:
    """One plugin that was found.

    Attributes:
        name: The name of its entry point, used in `--no-plugin` and `GANLAB_PLUGINS`.
        distribution: The installed distribution that contains it, or the path of a `ganlab_plugins.py`.
        version: The distribution's version, empty for a file.
        status: `loaded`, `disabled`, `broken`, or `incompatible` if it was written for another contract.
        error: The traceback of a broken plugin; the reason for an incompatible one.
        message: The exception's message of a broken plugin, without the traceback; complete, within bounds.
        tensorflow_seconds: How long its import took, if that was the first to import TensorFlow; else 0.
        warnings: Things in it that have no effect, e.g. a hook without `@ganlab.hookimpl`.
    """

    name: str
    distribution: str
    version: str
    status: str = "loaded"
    error: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    tensorflow_seconds: float = 0.0

    @property
    def reason(self) -> str:
        """Why the plugin is broken or incompatible."""
        return self.message or self.error.strip().rpartition("\n")[2].removeprefix("ganlab.errors.PluginError: ")

    @property
    def origin(self) -> str:
        """The distribution with its version, or the file."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def qualifier(self) -> str:
        """The prefix of its components' qualified names: its name as an identifier."""
        return re.sub(r"\W", "_", self.name)


@dataclass(frozen=True)
class Component:
    """A named part that a plugin offers.

    Attributes:
        kind: One of `KINDS`.
        name: Its name in experiment files, after `<kind>.`.
        factory: Makes the component and records how it was made.
        plugin: The plugin that offers it.
    """

    kind: str
    name: str
    factory: Factory
    plugin: Plugin

    @property
    def summary(self) -> str:
        """The first line of the factory's documentation."""
        return (inspect.getdoc(self.factory.make) or "").strip().split("\n")[0]


def reason_of(error: BaseException) -> str:
    """Formats an exception: its type, every line of its message and its notes, bounded in lines and characters."""
    text = "".join(traceback.format_exception_only(error)).strip()
    return bounded(text.removeprefix("ganlab.errors.PluginError: "))
