"""`ganlab plugins check`: its checks, its output, and its exit codes."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import command, invoke
from ganlab_verify import check_command
from ganlab_verify.testing import LossConformance

pytestmark = pytest.mark.usefixtures("fresh_plugins")

TESTING = Path(__file__).parents[1] / "testing"
CHECKS = sum(name.startswith("test_") for name in dir(LossConformance))

PLUGIN = """
import sys

sys.path.insert(0, {testing!r})
import ganlab
from ganlab_verify.testing.parts import Wasserstein
from wrong_parts import ListEvaluator, ReducedLoss


class Named(Wasserstein):
    def __init__(self, *, name: str) -> None:
        self.name = name


class Encoding(Wasserstein):
    def generator(self, fake_scores, networks):
        return -fake_scores + 0.0 * networks["encoder"]


def unreachable() -> None:
    raise ganlab.IncompatibleError("strategies.unreachable: there is no such machine.")


@ganlab.hookimpl
def ganlab_losses():
    return {{"right": Wasserstein, "reduced": ReducedLoss, "named": Named, "encoding": Encoding}}


@ganlab.hookimpl
def ganlab_evaluators():
    return {{"listing": ListEvaluator}}


@ganlab.hookimpl
def ganlab_strategies():
    return {{"unreachable": unreachable}}
"""


@pytest.fixture
def mine(tmp_path):
    """A plugin file with correct and wrong components."""
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN.format(testing=str(TESTING)))
    return path


def check(*arguments):
    command = [sys.executable, "-m", "ganlab", "plugins", "check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})


@pytest.mark.conformance
def test_every_component_of_a_file_is_a_row(mine):
    done = check("--plugin-file", mine, "--json")
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert answer["passed"] is False
    rows = {row["component"]: row for row in answer["components"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "losses.right": "passed",
        "losses.reduced": "failed",
        "losses.named": "not checked",
        "losses.encoding": "not checked",
        "evaluators.listing": "failed",
        "strategies.unreachable": "not checked",
    }
    assert rows["losses.right"]["passed"] == CHECKS
    assert "Checking losses.right ...\nChecking losses.reduced ...\n" in done.stderr
    (test,) = rows["losses.reduced"]["failures"]
    assert test == "test_shapes_and_dtypes"
    assert rows["losses.reduced"]["failures"][test].startswith("critic returns the shape ()")
    assert "test_two_replicas_train_as_one_device" in rows["losses.reduced"]["skipped"]
    assert rows["losses.named"]["reason"].startswith("It needs name, without a default.")
    assert rows["losses.encoding"]["reason"].startswith("It calls the network 'encoder': return an architecture")
    assert "there is no such machine" in rows["strategies.unreachable"]["reason"]
    assert "[1.0]; it must return a dict" in str(rows["evaluators.listing"]["failures"])


@pytest.mark.conformance
def test_check_of_one_component_passes(mine):
    done = check("--plugin-file", mine, "losses.right")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[:4] == ["losses.right", "passed", str(CHECKS), "passed"]


@pytest.fixture
def replaced_checks(monkeypatch):
    """The checks are replaced by a function of the components and of what is to be called as tests begin."""

    def replaced(checked):
        monkeypatch.setattr(check_command, "_checked", lambda components, asked, running: checked(components, running))

    return replaced


def test_rows_and_progress_are_printed_as_they_come(replaced_checks, monkeypatch):
    events = []
    monkeypatch.setattr(check_command, "_print_row", lambda console, row, width: events.append(row.component))
    monkeypatch.setattr(check_command, "say", lambda text, err: events.append(text))

    def checked(components, running):
        for component in components[:2]:
            selector = f"{component.kind}.{component.name}"
            running(selector, "test_one")
            running(selector, "test_two")
            yield check_command.Checked(selector, passed=2)

    replaced_checks(checked)
    invoke("plugins", "check", "ganlab_constraints")
    one, other = events[1], events[3]
    assert events == [f"Checking {one} ...", one, f"Checking {other} ...", other]


def test_what_was_skipped_is_printed_with_the_reason(replaced_checks):
    skipped = {"test_a": "It has no a.", "test_b": "It has no b.", "test_c": "It has no a."}
    replaced_checks(lambda components, running: [check_command.Checked("constraints.r1", passed=1, skipped=skipped)])
    printed = command("plugins", "check", "constraints.r1")
    assert "Skipped: test_a, test_c. It has no a." in printed
    assert "Skipped: test_b. It has no b." in printed


def test_broken_plugin_file_is_a_failed_row(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("raise ValueError('half written')\n")
    done = invoke("plugins", "check", "--plugin-file", path)
    assert done.exit_code == 1
    assert "It is broken: ValueError: half written" in done.stdout


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "--plugin-file PATH"),
        (["gradient_penalty"], "Did you mean 'constraints.gradient_penalty'?"),
        (["ganlab_constraint"], "Did you mean 'ganlab_constraints'?"),
        (["constraints.gradient_penalti"], "Did you mean 'constraints.gradient_penalty'?"),
    ],
)
def test_nothing_to_check_and_unknown_names_are_refused(tmp_path, monkeypatch, names, message):
    monkeypatch.chdir(tmp_path)
    assert message in command("plugins", "check", *names, code=2)


@pytest.mark.parametrize("package", ["pytest", "tensorflow"])
def test_missing_package_is_reported(monkeypatch, package):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == package else find(name, *a))
    monkeypatch.setitem(sys.modules, package, None)
    message = command("plugins", "check", "losses.hinge", code=2)
    assert "not installed" in message
    assert "pip install" in message
