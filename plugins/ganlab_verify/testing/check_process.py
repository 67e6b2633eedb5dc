"""Checks components in a separate process; reports each test that begins and each result, as one line of JSON.

    python -P -m ganlab_verify.testing.check_process SPECIFICATION

The specification is JSON: `components`, a list of `[kind, name]`; `plugin_file`; `no_plugin`; `params`, settings of the
components; `shape`, the shape of an example or None; and `report`, the number of an open file for the lines.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

# The conformance classes of this process by their names, for the test module.
classes: dict[str, type] = {}


@dataclass
class Checked:
    """The result of checking one component.

    Attributes:
        component: Its selector, for example `constraints.r1`.
        status: `passed`, `failed` or `not checked`.
        passed: How many tests passed.
        skipped: The reason why a test does not apply, by test.
        failures: The message that says what to change, by test.
        reason: Why it was not checked.
        seconds: How long it took.
    """

    component: str
    status: str = "passed"
    passed: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0


class Reporter:
    """A pytest plugin that writes a line when a test begins, and when the last test of a component is done."""

    def __init__(self, names: dict[str, str], report: TextIO) -> None:
        """Takes the components to report.

        Args:
            names: The component by the name of its class.
            report: The file for the lines.
        """
        self._names, self._report = names, report
        self._now: Checked | None = None
        self._began = time.monotonic()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Writes a line with the component and the test that begins."""
        _, kind, test = nodeid.split("::")
        self._report.write(json.dumps({"component": self._names[kind], "running": test}) + "\n")
        self._report.flush()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Takes the outcome of one phase of a test."""
        _, kind, test = report.nodeid.split("::")
        if self._now is None or self._now.component != self._names[kind]:
            self.finish()
            self._now = Checked(self._names[kind])
            self._began = time.monotonic() - report.duration
        if report.failed:
            self._now.status = "failed"
            self._now.failures[test] = _message(report)
        elif report.skipped:
            self._now.skipped[test] = str(report.longrepr[2]).removeprefix("Skipped: ")
            if getattr(getattr(classes[kind], test, None), "comes_first", False):
                self._now.reason = self._now.skipped[test]
        elif report.when == "call":
            self._now.passed += 1

    def finish(self) -> None:
        """Writes the line of the component that was tested last."""
        if self._now is not None:
            if self._now.reason and self._now.status == "passed":  # all else depends on what was skipped
                self._now.status = "not checked"
            self._now.seconds = round(time.monotonic() - self._began, 1)
            write_row(self._now, self._report)
            self._now = None


def write_row(row: Checked, report: TextIO) -> None:
    """Writes one line."""
    report.write(json.dumps(asdict(row)) + "\n")
    report.flush()


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return str(report.longrepr)
    message = str(crash.message)
    if message.startswith("Failed: "):  # a message of the kit
        return message.removeprefix("Failed: ")
    return f"{crash.message} ({Path(crash.path).name}:{crash.lineno})"


def main(specification: dict[str, Any]) -> None:
    """Checks the components of a specification."""
    from ganlab.files import collect_rarely
    from ganlab_verify.testing.devices import split_cpu

    collect_rarely()
    split_cpu()  # first, because making a component may use TensorFlow

    import pytest

    from ganlab.commands import plugins
    from ganlab_verify.testing.settings import settings
    from ganlab_verify.testing.suites import base_of, obstacle, suite

    local = specification["plugin_file"]
    used = plugins.use(plugins.discover(deny=specification["no_plugin"], local=Path(local) if local else None))
    names: dict[str, str] = {}
    with os.fdopen(specification["report"], "w", encoding="utf-8") as report:
        checked = [used.components[kind, name] for kind, name in specification["components"]]
        given = settings(checked, specification.get("params", ()))
        for component in checked:
            kind, selector = component.kind, f"{component.kind}.{component.name}"
            if reason := obstacle(component, given.get(selector)):
                write_row(Checked(selector, "not checked", reason=reason), report)
                continue
            # Only the author can state a constraint's purpose, in a test.
            attributes: dict[str, Any] = {"lowers_slopes": None} if kind == "constraints" else {}
            if specification.get("shape") and hasattr(base_of(component), "sample_shape"):
                attributes["sample_shape"] = tuple(specification["shape"])
            made = suite(component, given.get(selector), **attributes)
            classes[made.__name__], names[made.__name__] = made, selector
        if not classes:
            return
        reporter = Reporter(names, report)
        # The user's own configuration and plugins of pytest are for the user's own tests.
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        tests = Path(__file__).with_name("checked.py")
        arguments = [str(tests), "-q", "-c", os.devnull, "--rootdir", str(tests.parent), "--import-mode=importlib"]
        arguments += ["-p", "no:cacheprovider", "-p", "ganlab_verify.testing.plugin", "-W", "ignore"]
        with contextlib.redirect_stdout(sys.stderr):
            pytest.main(arguments, plugins=[reporter])
        reporter.finish()


if __name__ == "__main__":
    # As a script this module is `__main__`; the test module imports it by its name.
    from ganlab_verify.testing import check_process

    check_process.main(json.loads(sys.argv[1]))
    gc.freeze()  # the process then ends a second earlier
