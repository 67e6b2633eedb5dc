"""README.md and the pages it continues on: their files and commands work, with small settings and few steps."""

import importlib.metadata
import json
import logging
import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from ganlab_tensorboard.command import check_runs
from pages import ROOT, blocks, files_and_commands
from pages import invoked as run

import ganlab
from ganlab import config
from ganlab.cli import cli
from ganlab.plugins import manager as plugins

README = (ROOT / "README.md").read_text(encoding="utf-8")
NAMES = [f"docs/{name}.md" for name in ("experiments", "constraints", "runs", "tensorboard", "distribution")]
BLOCKS = [block for page in ("README.md", *NAMES) for block in blocks(page)]
FILES, COMMANDS = files_and_commands(BLOCKS)

SMALL = {"experiment.steps": 2, "experiment.batch_size": 16, "experiment.critic_steps": 1}

# Commands that a test cannot run to the end, and checks differently.
SERVES_UNTIL_INTERRUPTED = "ganlab tensorboard "
NEEDS_OTHER_MACHINES = ["strategies.multi_worker()", "strategies.tpu()"]
# Object stores: tests/remote has the like of those commands.
NOT_OF_GANLAB = ["pip install -e", "export TF_CONFIG=", "bash .ci/run", "s3://"]


def small(**more):
    """Arguments that make a run small; `more` are parameters of the experiment."""
    settings = {**SMALL, **{f"experiment.{name}": value for name, value in more.items()}}
    return [argument for name, value in settings.items() for argument in ("--param", f"{name}={value}")]


@pytest.mark.slow
def test_commands_on_the_pages_work(here, cpus):
    ours = [command for command in COMMANDS if not any(other in command for other in NOT_OF_GANLAB)]
    assert len(ours) >= 10
    served = []
    for command in ours:
        if command.startswith(SERVES_UNTIL_INTERRUPTED):
            served.append(Path(command.removeprefix(SERVES_UNTIL_INTERRUPTED)))
        elif any(strategy in command for strategy in NEEDS_OTHER_MACHINES):
            assert "experiment.strategy = @strategies." in run(command, "--dry-run")
        elif "--resume" in command:
            words = shlex.split(command)
            if "--param experiment.steps=" in command:  # of a completed run, which becomes longer
                assert "Completed at step 6 of 6" in run(re.sub(r"steps=\d+", "steps=6", command))
            else:
                stop_at(Path(words[words.index("--resume") + 1]), step=2, of=4)
                assert "Completed at step 4 of 4" in run(command)
        elif command.startswith("ganlab run "):
            assert "Completed at step 2 of 2" in run(command, *small())
        else:
            assert run(command)
    assert served == [Path("runs")]
    check_runs([str(folder) for folder in served])


def stop_at(path, step, of):
    """Makes a completed run of `step` steps one of `of` steps that was interrupted."""
    text = (path / "config.gin").read_text()
    assert f"experiment.steps = {step}\n" in text
    (path / "config.gin").write_text(text.replace(f"experiment.steps = {step}\n", f"experiment.steps = {of}\n"))
    run = ganlab.Run(path)
    run.update(status="interrupted", steps=of, settings={**run.info["settings"], "experiment.steps": of})


@pytest.mark.slow
def test_constraint_trains_the_same_on_one_and_two_replicas(here, cpus):
    assert FILES["ganlab_plugins.py"].count("\n") < 30
    curves = []
    for replicas in (1, 2):
        name, splitting = f"on-{replicas}", f"strategies.mirrored.virtual_replicas={replicas}"
        arguments = small(steps=4, log_every=1, constraints="[@constraints.pair_slope()]")
        run(f"ganlab run --gin ring.gin --name {name}", *arguments, "--param", splitting)
        records = ganlab.Run(here / "runs" / "ring" / name).metrics()
        seen = {len(record.replicas) for record in records if record.tag == "constraints/pair_slope/slope"}
        assert seen == {replicas}
        curves.append([record.reduced for record in records if record.replicas])
    assert len(curves[0]) >= 4 * 5
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_script_trains_and_reads_the_run_back(here, cpus, capsys, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("tensorflow"), "handlers", [caplog.handler])
    script = FILES["script.py"]
    assert "steps=20" in script
    (here / "script.py").write_text(script.replace("steps=20", "steps=10, critic_steps=1"))
    values = runpy.run_path(str(here / "script.py"))
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("completed ")
    assert any(line.startswith("10 critic/wasserstein ") for line in lines)
    assert values["generator"](np.zeros((3, 2), np.float32)).shape == (3, 2)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    (here / "more.py").write_text(FILES["more.py"].replace("steps=40", "steps=4").replace("steps=10", "steps=2"))
    more = runpy.run_path(str(here / "more.py"), init_globals=values)
    assert [more[name].info["step"] for name in ("again", "file")] == [4, 2]
    assert more["shorter"].batch_size == 32


def test_mistake_prints_the_message_on_the_page(here):
    (block,) = [text for _, _, text in BLOCKS if text.startswith("$ ganlab")]
    command, message = block.removeprefix("$ ").split("\n", 1)
    result = CliRunner().invoke(cli, shlex.split(command)[1:])
    assert (result.exit_code, result.stderr) == (2, message)


def test_every_gin_fragment_fits_the_file_before_it(here):
    fragments = [text for language, name, text in BLOCKS if language == "gin" and not name]
    assert fragments
    for text in fragments:
        (here / "more.gin").write_text("include 'ring.gin'\n" + text)
        assert config.load(["more.gin"]).arguments["strategy"].kind == "strategies"


def test_entry_point_provides_the_constraint(here, monkeypatch):
    (toml,) = [text for language, _, text in BLOCKS if language == "toml"]
    group, name, module = re.fullmatch(r'\[project\.entry-points\.(\w+)\]\n(\w+) = "([\w.]+)"\n', toml).groups()
    path = here / "site" / Path(*module.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True)
    path.write_text(FILES["ganlab_plugins.py"])
    metadata = here / "site" / "my_package-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")
    monkeypatch.syspath_prepend(here / "site")
    component = plugins.discover().component("constraints", "pair_slope")
    assert (component.plugin.name, component.plugin.distribution) == ("pair_slope", "my-package")
    assert importlib.metadata.version("my-package") == "0.1"


def test_tf_config_on_the_page_is_valid():
    from ganlab_builtin.strategies.workers import check_cluster

    (line,) = [command for command in COMMANDS if command.startswith("export TF_CONFIG=")]
    (assignment,) = shlex.split(line.removeprefix("export "))
    text = assignment.removeprefix("TF_CONFIG=")
    check_cluster(text)
    assert len(json.loads(text)["cluster"]["worker"]) == 2


@pytest.mark.slow
def test_run_writes_the_files_listed_on_the_page(here, cpus):
    run("ganlab run --gin quickstart", *small())
    (listing,) = [text for language, _, text in BLOCKS if text.startswith("runs/quickstart/")]
    shown = {line.split()[0].rstrip("/") for line in listing.splitlines()[1:] if re.match(r"  \S", line)}
    (path,) = (here / "runs" / "quickstart").iterdir()
    left = {re.sub(r"^events\.out\.tfevents\..*", "events.out.tfevents.*", item.name) for item in path.iterdir()}
    assert left == shown
    assert re.fullmatch(r"\d{8}-\d{6}-s0-[0-9a-f]{4}", path.name)
    tags = {record.tag for record in ganlab.Run(path).metrics()}
    for tag in ("critic/wasserstein", "critic/loss", "generator/loss", "critic/penalty"):
        assert tag in tags
        assert any(f"`{tag}`" in (ROOT / page).read_text() for page in ("README.md", *NAMES))


def test_readme_has_at_most_1000_words():
    assert len(README.split()) <= 1000
