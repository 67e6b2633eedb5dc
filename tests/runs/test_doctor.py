"""`ganlab doctor` finds broken parts and names the remedy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from ganlab.cli import doctor as module
from ganlab.cli.doctor import Finding, package_findings, plugin_findings, supported
from ganlab.plugins import manager as plugins

RANGES = {"tensorflow": "<2.22,>=2.20", "tensorflow-tpu": "<2.21,>=2.19", "keras": ">=3.8", "tensorboard": ">=2.19"}
RANGES |= {"gin-config": "==0.5.0", "pluggy": ">=1.5"}
GOOD = {"tensorflow": "2.21.0", "keras": "3.15.1", "tensorboard": "2.21.0", "gin-config": "0.5.0", "pluggy": "1.7.0"}


def broken(findings):
    return {finding.subject: finding.detail for finding in findings if finding.state == "broken"}


def test_supported_ranges_come_from_the_distribution():
    ranges = supported(["pluggy>=1.5", "tensorflow<2.22,>=2.20; extra == 'cpu'", "tensorflow[and-cuda]<2.22,>=2.20"])
    assert ranges == {"pluggy": ">=1.5", "tensorflow": "<2.22,>=2.20", "tensorflow-cpu": "<2.22,>=2.20"}


@pytest.mark.parametrize(
    ("change", "subject", "says"),
    [
        ({"tensorflow": "2.19.1"}, "tensorflow", "2.19.1 is not supported, <2.22,>=2.20 is: pip install 'tensorflow<"),
        ({"tensorflow": None}, "tensorflow", "not installed: pip install -e '.[cpu]' in ganlab's source tree (or"),
        ({"tensorflow-tpu": "2.20.0"}, "tensorflow", "tensorflow and tensorflow-tpu are both installed"),
        ({"keras": None}, "keras", "not installed: pip install 'keras>=3.8'"),
        ({"gin-config": "0.6.0"}, "gin-config", "0.6.0 is not supported, ==0.5.0 is: pip install 'gin-config==0.5.0'"),
    ],
)
def test_missing_or_unsupported_package_is_broken(change, subject, says):
    installed = {name: version for name, version in {**GOOD, **change}.items() if version}
    found = broken(package_findings(installed, RANGES))
    assert list(found) == [subject]
    assert says in found[subject]


def test_broken_plugins_and_clashes_are_reported_but_not_disabled_ones():
    rows = [
        plugins.Plugin("good", "good-package", "1.0"),
        plugins.Plugin("off", "off-package", "1.0", "disabled"),
        plugins.Plugin("bad", "bad-package", "2.0", "broken", "Traceback ...\nImportError: no module named x\n"),
        plugins.Plugin("late", "late-package", "3.0", "incompatible", "written for plugin contract 9"),
    ]
    clashes = {("losses", "hinge"): "Two plugins offer losses.hinge: ..."}
    with plugins.using(plugins.Plugins(rows=rows, clashes=clashes)):
        findings = list(plugin_findings())
    assert [(finding.subject, finding.state) for finding in findings] == [
        ("plugin good", "ok"),
        ("plugin off", "note"),
        ("plugin bad", "broken"),
        ("plugin late", "broken"),
        ("plugins", "broken"),
    ]
    assert [finding.detail for finding in findings[2:]] == [
        "bad-package 2.0: ImportError: no module named x; fix it, or leave it out: --no-plugin bad",
        "late-package 3.0: written for plugin contract 9; fix it, or leave it out: --no-plugin late",
        "Two plugins offer losses.hinge: ...",
    ]


def test_unknown_plugin_in_ganlab_plugins_is_broken(monkeypatch, fresh_plugins):
    monkeypatch.setenv("GANLAB_PLUGINS", "surely_not_there")
    assert "GANLAB_PLUGINS names the plugin 'surely_not_there'" in broken(plugin_findings())["plugins"]


def test_doctor_prints_a_table_and_exits_with_1_if_something_is_broken(monkeypatch):
    ok, bad = Finding("python", "ok", "3.11"), Finding("keras", "broken", "not installed")
    monkeypatch.setattr(module, "examine", lambda: [ok])
    result = CliRunner().invoke(module.doctor)
    assert (result.exit_code, result.output) == (0, "ok      python  3.11\n\nAll is well.\n")
    monkeypatch.setattr(module, "examine", lambda: [ok, bad])
    result = CliRunner().invoke(module.doctor)
    assert result.exit_code == 1
    assert result.output == "ok      python  3.11\nbroken  keras   not installed\n\n1 broken.\n"
    result = CliRunner().invoke(module.doctor, ["--json"])
    assert result.exit_code == 1
    assert json.loads(result.output) == [
        {"subject": "python", "state": "ok", "detail": "3.11"},
        {"subject": "keras", "state": "broken", "detail": "not installed"},
    ]


def test_doctor_examines_this_installation_with_its_own_ranges(monkeypatch):
    monkeypatch.setattr("ganlab_devices.examine", lambda: [("devices", "ok", "CPU:0")])
    details = {finding.subject: finding.detail for finding in module.examine()}
    assert details["devices"] == "CPU:0"
    assert details["gin-config"] == "0.5.0 (supported: ==0.5.0)"
    assert details["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert details["plugin ganlab_losses"].startswith("ganlab-tf 0.")


def test_findings_of_an_application_that_fails_are_broken(monkeypatch):
    monkeypatch.setattr("ganlab_devices.examine", lambda: iter([("devices",)]))
    assert "missing 2 required positional arguments" in broken(module.further_findings())["devices"]


@pytest.mark.parametrize("missing", ["gin", "numpy", "tensorboard"])
def test_doctor_works_where_a_package_cannot_be_imported(tmp_path, missing):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import ganlab_devices\n"
        "from ganlab.cli import cli\n"
        "ganlab_devices.examine = lambda: [('devices', 'ok', 'CPU:0')]\n"
        "cli.main(['doctor', '--json'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert {"python", "tensorflow", "gin-config"} <= {row["subject"] for row in json.loads(done.stdout)}
