"""What a plugin is and what it offers: rows of a list, and named factories."""

from __future__ import annotations

import inspect
import re
import traceback
from dataclasses import dataclass

from ganlab.plugins.blame import bounded
from ganlab.plugins.recipes import Factory

KINDS = (
    "constraints",
    "architectures",
    "strategies",
    "datasets",
    "losses",
    "evaluators",
    "diagnostics",
    "features",
    "optimizers",
    "launchers",
    "searches",
)

# The statuses of plugins that something is wrong with.
UNUSABLE = ("broken", "incompatible")


@dataclass(frozen=True)
class Plugin:
    """One plugin that was found.

    Attributes:
        name: Its entry point's name: what `--no-plugin` and `GANLAB_PLUGINS` take.
        distribution: The installed distribution that brings it, or the path of a `ganlab_plugins.py`.
        version: The distribution's version, empty for a file.
        status: `loaded`, `disabled`, `broken`, or `incompatible` where it was written for another contract.
        error: The traceback of a broken one; what is wrong with an incompatible one.
        message: What a broken one's exception says, without the traceback: all of it, within bounds.
        warnings: What it does that has no effect, such as a hook without `@ganlab.hookimpl`.
    """

    name: str
    distribution: str
    version: str
    status: str = "loaded"
    error: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """What is wrong with a broken or incompatible one, in words."""
        return self.message or self.error.strip().rpartition("\n")[2].removeprefix("ganlab.errors.PluginError: ")

    @property
    def origin(self) -> str:
        """The distribution with its version, or the file."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def qualifier(self) -> str:
        """What stands before the names of its components where they are qualified: its name as an identifier."""
        return re.sub(r"\W", "_", self.name)


@dataclass(frozen=True)
class Component:
    """A named part that a plugin offers.

    Attributes:
        kind: One of `KINDS`.
        name: Its name in experiment files, after `<kind>.`.
        factory: What makes it, recording how it was made.
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
    """What an exception says: its type and every line of its message, its notes too, bounded in lines and letters."""
    said = "".join(traceback.format_exception_only(error)).strip()
    return bounded(said.removeprefix("ganlab.errors.PluginError: "))
