"""`ganlab doctor`: checks the installed packages, TensorFlow's devices and the plugins."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from ganlab.cli.messages import say, say_json
from ganlab.lazy import INSTALL_TENSORFLOW, USE_TENSORFLOW, install
from ganlab.support.processes import python_command, run_process
from ganlab.version import DISTRIBUTION, __version__

_PROBE_SECONDS = 180

# Run in a separate process: TensorFlow claims the devices it lists, and may crash on a broken driver.
_PROBE = """
import json, os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf, keras
devices = [device.name.removeprefix("/physical_device:") for device in tf.config.list_physical_devices()]
print(json.dumps({"devices": devices, "backend": keras.backend.backend()}))
"""

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
        findings += device_findings(probe_devices)
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
    """Reports whether the packages are installed in versions that ganlab supports.

    Args:
        installed: Versions by package.
        ranges: Supported versions by package, for example `>=2.20,<2.22`.
    """
    builds = [name for name in _TENSORFLOW if name in installed]
    if not builds:
        yield Finding("tensorflow", "broken", f"not installed: {INSTALL_TENSORFLOW}")
    for name in builds:
        wanted = ranges.get(name, "")
        yield _version(name, installed[name], wanted, f"pip install '{name}{wanted}'")
    if len(builds) > 1:
        yield Finding(
            "tensorflow",
            "broken",
            f"{' and '.join(builds)} are both installed and overwrite each other's files: uninstall all, "
            f"then {INSTALL_TENSORFLOW}",
        )
    for name in _PACKAGES:
        wanted = ranges.get(name, "")
        if name in installed:
            yield _version(name, installed[name], wanted, f"pip install '{name}{wanted}'")
        else:
            yield Finding(name, "broken", f"not installed: pip install '{name}{wanted}'")


def device_findings(probe: Callable[[], dict[str, Any]]) -> Iterator[Finding]:
    """Lists the devices that TensorFlow can train on.

    Args:
        probe: Returns `devices`, for example `["CPU:0"]`, and Keras' `backend`; raises RuntimeError if TensorFlow
            fails.
    """
    try:
        seen = probe()
    except RuntimeError as error:
        yield Finding("devices", "broken", f"TensorFlow does not start: {error}. Reinstall it: {INSTALL_TENSORFLOW}")
        return
    yield Finding("devices", "ok", ", ".join(seen["devices"]) or "none")
    if not any("GPU" in device for device in seen["devices"]) and shutil.which("nvidia-smi"):
        yield Finding(
            "devices",
            "note",
            f"this machine has an NVIDIA driver, but TensorFlow sees no GPU: {install('gpu')}",
        )
    if seen["backend"] != "tensorflow":
        yield Finding(
            "keras backend",
            "broken",
            f"Keras runs on {seen['backend']!r}; ganlab needs 'tensorflow': {USE_TENSORFLOW}",
        )


def probe_devices() -> dict[str, Any]:
    """Asks TensorFlow for its devices, in a separate process.

    Raises:
        RuntimeError: The process fails; the message is the last line that it printed.
    """
    command = python_command("-c", _PROBE)
    try:
        done = run_process(
            command, cwd=os.sep, capture_output=True, text=True, errors="replace", timeout=_PROBE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no answer within {_PROBE_SECONDS} s") from None
    if done.returncode:
        printed = done.stderr.strip().splitlines()
        raise RuntimeError(printed[-1] if printed else f"exit status {done.returncode}")
    seen: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return seen


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
    for clash in current.clashes.values():
        yield Finding("plugins", "broken", clash)


def _version(name: str, version: str, wanted: str, remedy: str) -> Finding:
    from packaging.specifiers import SpecifierSet

    if SpecifierSet(wanted).contains(version, prereleases=True):
        return Finding(name, "ok", f"{version} (supported: {wanted or 'any'})")
    return Finding(name, "broken", f"{version} is not supported, {wanted} is: {remedy}")


def _installed() -> dict[str, str]:
    from ganlab.runs.provenance import versions

    names: Iterable[str] = (*_TENSORFLOW, *_PACKAGES)
    return versions(tuple(names))
