"""docs/plugins.md: its examples behave as shown, and everything to implement or call is mentioned."""

import inspect
import itertools
import re
import shlex
import subprocess

import pytest
from click.testing import CliRunner
from ganlab_scaffold import TEMPLATES
from pages import ROOT, blocks, files_and_commands, invoked

from ganlab import interfaces, testing
from ganlab.cli import cli
from ganlab.interfaces import hookspecs
from ganlab.plugins import manager as plugins

PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
BLOCKS = blocks("docs/plugins.md")
FILES, COMMANDS = files_and_commands(BLOCKS)
# Each with the message shown after it.
MISTAKES = [(text, message) for (_, name, text), (_, _, message) in itertools.pairwise(BLOCKS) if name == "mistake"]
SMALL = ["--param", "experiment.steps=2", "--param", "experiment.batch_size=16", "--param", "architectures.mlp.width=8"]
SERVES_UNTIL_INTERRUPTED = "ganlab tensorboard"


def test_the_constraint_is_short():
    assert FILES["ganlab_plugins.py"].count("\n") < 40


@pytest.mark.slow
def test_tutorial_runs_as_written(tmp_path, environment):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done, waiting = [], []
    for command in COMMANDS:
        program, *arguments = shlex.split(command)
        if program in ("ganlab", "pytest"):
            if not command.startswith(SERVES_UNTIL_INTERRUPTED):
                waiting.append([program, *arguments])
            continue
        # The commands between two changes of files or packages are forks of one process.
        done += environment.forked(*waiting) if waiting else []
        waiting = []
        if program == "mv":
            subprocess.run(["mv", *arguments], cwd=tmp_path, check=True)
        else:
            assert program == "pip"
            environment.install(arguments[-1])
    done += environment.forked(*waiting)
    assert "distance: How far apart" in done[0]
    assert sum("Completed at step 500 of 500" in output for output in done) == 3
    assert sum("Completed at step 200 of 200" in output for output in done) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    # That of replicas apart trains for a step on two of them.
    [pytest.param(*each, marks=pytest.mark.slow if "at step 1" in each[1] else ()) for each in MISTAKES],
    ids=range(len(MISTAKES)),
)
def test_mistake_prints_the_message_on_the_page(here, cpus, body, message):
    before, _, rest = FILES["ganlab_plugins.py"].partition("    def penalty(")
    after = rest[rest.index("\n\n\n@ganlab.hookimpl") :]
    indented = "".join(f"    {line}" if line.strip() else line for line in body.splitlines(keepends=True))
    source = before.replace("import example_norm, interpolate", "import slopes") + indented + after
    (here / "ganlab_plugins.py").write_text(source)
    replicas = ["--param", "strategies.mirrored.virtual_replicas=2"]
    result = CliRunner().invoke(cli, ["run", "--gin", "ring.gin", *replicas, *SMALL[:2]])
    assert result.exit_code in (1, 2), result.output
    assert message.rstrip() in result.stderr


EXAMPLES = {
    "architecture": [
        "experiment.architecture=@architectures.labelled()",
        "experiment.loss=@losses.auxiliary_classifier()",
    ],
    "layer": ["experiment.architecture=@architectures.styled()"],
    "constraint": ["experiment.generator_constraints=[@constraints.spread()]"],
    "networks": ["experiment.architecture=@architectures.code_networks()", "experiment.loss=@losses.infogan()"],
    "given": [
        "experiment.dataset=@datasets.point_pairs()",
        "experiment.architecture=@architectures.move()",
        "experiment.evaluators=[]",
    ],
    "loss": ["experiment.loss=@losses.paired_margin()"],
    "schedule": ["constraints.gradient_penalty.weight=@schedules.halving()", "schedules.halving.start=2.0"],
    "augmentation": ["experiment.augmentations=[@augmentations.jitter()]"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_trains_the_same_on_one_and_two_replicas(here, cpus, name):
    from ganlab import Run

    (here / "ganlab_plugins.py").write_text("".join(text for _, kind, text in BLOCKS if kind == name))
    text = FILES["ring.gin"].replace("nearby_slope", "gradient_penalty")
    text = text.replace("@optimizers.adam", "@optimizers.sgd").replace("optimizers.adam", "optimizers.sgd")
    (here / "ring.gin").write_text(text)
    settings = [part for setting in EXAMPLES[name] for part in ("--param", setting)]
    runs = []
    for replicas in (1, 2):
        command = f"ganlab run --gin ring.gin --name {replicas} --param strategies.mirrored.virtual_replicas={replicas}"
        invoked(command, *settings, *SMALL[:4])
        runs.append(Run(here / "runs" / "ring" / str(replicas)).info["metrics"])
    assert runs[0].keys() == runs[1].keys()
    for tag, value in runs[0].items():
        assert runs[1][tag] == pytest.approx(value, rel=2e-4, abs=2e-6), tag


def test_every_mistake_on_the_page_has_a_message():
    assert len(MISTAKES) == PAGE.count("```python mistake") >= 8
    assert all(message.startswith(("Error: ", "Plugins not loaded: ")) for _, message in MISTAKES)


def test_every_hook_is_in_the_table_with_its_arguments():
    for name in (name for name in dir(hookspecs) if name.startswith("ganlab_")):
        arguments = ", ".join(inspect.signature(getattr(hookspecs, name)).parameters)
        assert f"| `{name}({arguments})` |" in PAGE


def members(role):
    """The public methods and attributes that a class in `ganlab.interfaces` defines itself."""
    names = {*vars(role), *inspect.get_annotations(role)}
    return sorted(name for name in names if not name.startswith("_"))


CLASSES = [role for role in map(interfaces.__dict__.get, interfaces.__all__) if role.__module__.startswith("ganlab.")]


@pytest.mark.parametrize("role", CLASSES, ids=lambda role: role.__name__)
def test_every_role_and_each_of_its_methods_and_attributes_is_mentioned(role):
    assert members(role)
    assert f"`ganlab.{role.__name__}" in PAGE
    sections = re.split(r"^### ", PAGE, flags=re.MULTILINE)
    (section, *_) = [section for section in sections if section.startswith(role.__name__)] or [PAGE]
    assert [name for name in members(role) if not re.search(rf"`(?:\w+\.)?{name}\b", section)] == []


def test_every_constraint_method_is_in_the_table_with_its_arguments():
    methods = inspect.getmembers(interfaces.Constraint, inspect.isfunction)
    for name, method in methods:
        arguments = ", ".join(parameter for parameter in inspect.signature(method).parameters if parameter != "self")
        assert f"| `{name}({arguments})` |" in PAGE


def test_every_check_of_constraints_is_mentioned():
    checks = {name for name in dir(testing.ConstraintConformance) if name.startswith("test_")}
    assert set(re.findall(r"`(test_\w+)`", PAGE)) == checks


NAMED = {
    "conformance classes": {*testing.__all__} - {"Conformance"},
    "templates": {*TEMPLATES} - {"constraint"},
    "statuses of plugins": {*plugins.UNUSABLE, "clash"},
}


@pytest.mark.parametrize("names", NAMED.values(), ids=NAMED)
def test_every_name_is_mentioned(names):
    assert sorted(name for name in names if f"`{name}`" not in PAGE) == []
