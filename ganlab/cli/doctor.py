"""`ganlab doctor`: checks the installed packages, TensorFlow's devices and the plugins."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from ganlab.cli.messages import say, say_json
from ganlab.lazy import INSTALL_TENSORFLOW
from ganlab.support import xla_cache
from ganlab.version import DISTRIBUTION, __version__

if TYPE_CHECKING:
    from ganlab.plugins.manager import Plugins

# TensorFlow's builds share one package folder, but each is a separate distribution.
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu")
_PACKAGES = ("keras", "tensorboard", "gin-config", "pluggy")


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        subject: The thing checked: a package, `devices`, a plugin.
        state: `ok`, `note` (worth knowing) or `broken`.
        detail: What was found, and what to do if it is not right.
    """

    subject: str
    state: str
    detail: str


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead.")
def doctor(as_json: bool) -> None:
    """Checks this installation: packages, devices, plugins.

    Exits with 1 if something is broken.
    """
    findings = examine()
    if as_json:
        say_json([asdict(finding) for finding in findings])
    else:
        width = max(len(finding.subject) for finding in findings)
        for finding in findings:
            say(f"{finding.state:6}  {finding.subject:{width}}  {finding.detail}")
    broken = sum(finding.state == "broken" for finding in findings)
    if not as_json:
        say(f"\n{broken} broken." if broken else "\nAll is well.")
    if broken:
        raise click.exceptions.Exit(1)


def examine() -> list[Finding]:
    """Runs every check."""
    installed = _installed()
    ranges = supported(importlib.metadata.requires(DISTRIBUTION) or [])
    findings = [*python_findings(), *package_findings(installed, ranges)]
    if any(name in installed for name in _TENSORFLOW):
        findings += further_findings()
    return [*findings, *plugin_findings()]


def supported(requirements: Sequence[str]) -> dict[str, str]:
    """Version ranges by package, from a distribution's requirements, including those of its extras."""
    from packaging.requirements import Requirement

    parsed = map(Requirement, requirements)
    ranges = {requirement.name: str(requirement.specifier) for requirement in parsed}
    ranges.setdefault("tensorflow-cpu", ranges.get("tensorflow", ""))
    return ranges


def python_findings() -> Iterator[Finding]:
    """Reports whether this ganlab supports this Python."""
    yield Finding("ganlab", "ok", __version__)
    wanted = importlib.metadata.metadata(DISTRIBUTION)["Requires-Python"]
    yield _version("python", platform.python_version(), wanted, f"Use Python {wanted}")


def package_findings(installed: dict[str, str], ranges: dict[str, str]) -> Iterator[Finding]:
    """Reports whether packages are installed, by these versions, in the ranges that ganlab supports."""
    builds = [name for name in _TENSORFLOW if name in installed]
    if not builds:
        yield Finding("tensorflow", "broken", f"not installed: {INSTALL_TENSORFLOW}")
    for name in (*builds, *_PACKAGES):
        wanted = ranges.get(name, "")
        if name in installed:
            yield _version(name, installed[name], wanted, f"pip install '{name}{wanted}'")
        else:
            yield Finding(name, "broken", f"not installed: pip install '{name}{wanted}'")
    if len(builds) > 1:
        both = f"{' and '.join(builds)} are both installed and overwrite each other's files"
        yield Finding("tensorflow", "broken", f"{both}: uninstall all, then {INSTALL_TENSORFLOW}")


def further_findings() -> Iterator[Finding]:
    """Reports what the entry points of the group `ganlab.doctor` find."""
    from ganlab.plugins.catalog import reason_of

    for point in importlib.metadata.entry_points(group="ganlab.doctor"):
        try:
            yield from (Finding(*found) for found in point.load()())
        except Exception as error:
            yield Finding(point.name, "broken", reason_of(error))
    yield Finding("programs of XLA", *xla_cache.describe())


def plugin_findings() -> Iterator[Finding]:
    """Reports which plugins load, which are broken and which clash."""
    from ganlab.errors import PluginError
    from ganlab.plugins import manager as plugins

    try:
        current = plugins.current()
    except PluginError as error:
        yield Finding("plugins", "broken", str(error))
        return
    for row in current.rows:
        origin = f"{row.distribution} {row.version}".strip()
        if row.status in plugins.UNUSABLE:
            advice = f"fix it, or leave it out: --no-plugin {row.name}"
            yield Finding(f"plugin {row.name}", "broken", f"{origin}: {row.reason}; {advice}")
        else:
            yield Finding(f"plugin {row.name}", "ok" if row.status == "loaded" else "note", f"{origin}, {row.status}")
        for warning in row.warnings:
            yield Finding(f"plugin {row.name}", "note", warning)
    yield from tensorflow_findings(current)
    for clash in current.clashes.values():
        yield Finding("plugins", "broken", clash)


def tensorflow_findings(current: Plugins) -> Iterator[Finding]:
    """Names the plugins that import TensorFlow at the top of a module, with the seconds that the first of them took."""
    seconds = max((row.tensorflow_seconds for row in current.rows), default=0.0)
    advice = "Write: from ganlab.lazy import tensorflow as tf"
    for row in current.rows if seconds else ():
        package = getattr(current.loaded(row.name), "__name__", row.name)
        modules = [module for name, module in list(sys.modules.items()) if f"{name}.".startswith(f"{package}.")]
        if row.tensorflow_seconds or any(sys.modules["tensorflow"] in vars(module).values() for module in modules):
            cost = f"imports TensorFlow at the top of a module, which costs every command {seconds:.1f} s, --help too."
            yield Finding(f"plugin {row.name}", "note", f"{cost} {advice}")


def _version(name: str, version: str, wanted: str, remedy: str) -> Finding:
    from packaging.specifiers import SpecifierSet

    if SpecifierSet(wanted).contains(version, prereleases=True):
        return Finding(name, "ok", f"{version} (supported: {wanted or 'any'})")
    return Finding(name, "broken", f"{version} is not supported, {wanted} is: {remedy}")


def _installed() -> dict[str, str]:
    from ganlab.runs.provenance import versions

    return versions((*_TENSORFLOW, *_PACKAGES))
