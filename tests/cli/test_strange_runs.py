"""Untrusted runs are data: nothing in them is executed, and nothing outside their folder is read or written."""

import json
import os

import pytest

from ganlab.run import Run
from ganlab.runs import create_run

INFO = {"status": "interrupted", "step": 10, "steps": 100, "seed": 0, "replicas": 1, "settings": {}, "metrics": {}}


@pytest.fixture
def stranger(here, minimal):
    """A forged run beside a secret: `stranger("import os")` has that line in its config.gin."""
    (here / "secret.gin").write_text("the password is 1234\n")

    def forge(line="", **info):
        run = create_run(here / "run", config=f"{minimal}{line}\n", operative="", info={**INFO, **info})
        (run.path / "checkpoints").mkdir()
        (run.path / "metrics.jsonl").write_text('{"step": 10, "metrics": {"critic/loss": {"reduced": 0.5}}}\n')
        return run.path

    return forge


def commands(run):
    """Every command that reads the experiment of a run."""
    plugin = ("--plugin-file", "ganlab_plugins.py")
    yield "run", "--resume", run, *plugin
    yield "run", "--gin", f"{run}/config.gin", *plugin
    yield "evaluate", run, "--evaluator", "count", *plugin


OUT = (
    "leads out of the folder run. For a run, a sweep or a benchmark, only files in its folder are read: if you trust "
    "the file, copy it to another folder and pass that copy with --gin."
)
LINES = {
    "import os": (
        "run/config.gin:7: 'import os' is not supported, because experiment files are data. Plugins are found "
        "automatically: install one with pip, or put a ganlab_plugins.py beside the file."
    ),
    "include '/etc/passwd'": f"run/config.gin:7: include '/etc/passwd' {OUT}",
    "include '../secret.gin'": f"run/config.gin:7: include '../secret.gin' {OUT}",
    "include 'link.gin'": f"run/config.gin:7: include 'link.gin' {OUT}",
    # A shipped file, which may have changed since.
    "include 'quickstart.gin'": f"run/config.gin:7: include 'quickstart.gin' {OUT}",
    "include 'deep/inner.gin'": f"run/deep/inner.gin:1: include '../../secret.gin' {OUT}",
    "experiment.evaluators = [@os.system()]": (
        "run/config.gin:7: Unknown kind of component 'os'. Kinds: constraints, architectures, strategies, "
        "datasets, losses, augmentations, schedules, evaluators, diagnostics, features, optimizers, launchers, "
        "searches."
    ),
}


@pytest.mark.parametrize(("line", "message"), LINES.items())
def test_lines_that_lead_out_of_a_run_are_refused(mistake, stranger, line, message):
    run = stranger(line)
    (run / "link.gin").symlink_to("../secret.gin")
    (run / "deep").mkdir()
    (run / "deep" / "inner.gin").write_text("include '../../secret.gin'\n")
    for command in commands("run"):
        assert mistake(*command) == message


def test_files_in_the_run_may_be_included(ganlab, stranger):
    run = stranger("include 'more.gin'")
    (run / "more.gin").write_text("experiment.seed = 7\n")
    result = ganlab("run", "--gin", "run/config.gin", "--plugin-file", "ganlab_plugins.py", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "experiment.seed = 7" in result.stdout


def test_config_of_a_run_included_by_a_users_file_stays_confined(mistake, here, stranger):
    stranger("include '../secret.gin'")
    (here / "own.gin").write_text("include 'run/config.gin'\n")
    assert mistake("run", "--gin", "own.gin") == f"run/config.gin:7: include '../secret.gin' {OUT}"


def test_config_that_is_a_link_is_refused(mistake, stranger):
    run = stranger()
    (run / "config.gin").unlink()
    (run / "config.gin").symlink_to("../secret.gin")
    for command in commands("run"):
        assert mistake(*command) == f"run/config.gin {OUT}"


@pytest.mark.parametrize("mark", ["sweep.json", "benchmark.json"])
@pytest.mark.parametrize("line", ["include '../../secret.gin'", ""], ids=["include", "link"])
def test_experiment_files_of_a_sweep_read_nothing_outside_it(ganlab, mistake, here, minimal, mark, line):
    (here / "secret.gin").write_text("the password is 1234\n")
    (trials := here / "run" / "trials").mkdir(parents=True)
    (here / "run" / mark).write_text("{}")
    (trials / "more.gin").write_text("experiment.seed = 7\n")
    base = trials / "base.gin"
    base.write_text(f"{minimal}include 'more.gin'\n")
    (here / "aside.gin").write_text(f"{minimal}include 'run/../more.gin'\n")
    (here / "more.gin").touch()
    for name in ("run/trials/base.gin", "run/../aside.gin"):
        assert ganlab("run", "--gin", name, "--plugin-file", "ganlab_plugins.py", "--dry-run").exit_code == 0
    if line:
        base.write_text(f"{minimal}{line}\n")
        (here / "own.gin").symlink_to(base)
        assert OUT in mistake("run", "--gin", "own.gin")
    else:
        base.unlink()
        base.symlink_to("../../secret.gin")
    said = f"run/trials/base.gin{f':7: {line}' if line else ''} {OUT}"
    assert mistake("run", "--gin", "run/trials/base.gin") == said


@pytest.mark.parametrize("name", ["checkpoints", "metrics.jsonl", ".lock.json.tmp", "samples/step-00000001.png"])
def test_resume_that_would_write_elsewhere_is_refused(mistake, here, stranger, name):
    run = stranger()
    (here / "target").mkdir()
    (run / "samples").mkdir()
    if (run / name).is_dir():
        (run / name).rmdir()
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(here / "target")
    message = mistake("run", "--resume", "run", "--plugin-file", "ganlab_plugins.py")
    assert message == (
        f"run/{name} is a link to {here / 'target'}, out of the folder run. That is data, and nothing is read or "
        "written elsewhere for it: if you trust the link, put what it leads to in its place."
    )


def test_links_within_a_run_and_to_a_run_are_followed(here, stranger):
    run = stranger()
    (run / "latest").symlink_to("checkpoints")
    (here / "latest").symlink_to("run")
    Run(here / "latest").check()
    assert Run(here / "latest").info["step"] == 10


def test_an_update_does_not_follow_a_link(here, stranger):
    run = stranger()
    (here / "precious").write_text("stays")
    (run / ".run.json.tmp").symlink_to(here / "precious")
    Run(run).update(step=11)
    assert (here / "precious").read_text() == "stays"
    assert Run(run).info["step"] == 11
    assert not (run / "run.json").is_symlink()


def test_resume_refuses_an_invalid_field(mistake, stranger):
    stranger(step="ten")
    assert mistake("run", "--resume", "run", "--plugin-file", "ganlab_plugins.py") == (
        "run/run.json: step = 'ten' must be a whole number of at least 0. Restore the file, or remove the run."
    )


def test_names_that_are_not_text_round_trip(here, minimal):
    argv = ["ganlab", os.fsdecode(b"run s\xff")]
    run = create_run(here / "run", config=minimal, operative="", info={**INFO, "provenance": {"argv": argv}})
    assert json.loads((run.path / "run.json").read_text())["provenance"]["argv"] == argv
    run.update(step=3)
    assert run.info["provenance"]["argv"] == argv


@pytest.mark.parametrize(
    "command", [("plugins",), ("config", "explain", "experiment"), ("plugins", "check", "constraints.x")]
)
def test_standing_in_a_strangers_run_executes_nothing(ganlab, stranger, monkeypatch, command):
    run = stranger()
    (run / "ganlab_plugins.py").write_text("import pathlib; pathlib.Path('executed').touch()\n")
    monkeypatch.chdir(run)
    ganlab(*command)
    assert not (run / "executed").exists()
    (run / "run.json").unlink()
    ganlab(*command)
    assert (run / "executed").exists()  # otherwise the test would prove nothing
