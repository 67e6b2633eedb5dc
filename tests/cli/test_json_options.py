"""Every command that prints a table can also print JSON."""

from __future__ import annotations

import json
from pathlib import Path

from command_lines import every_command

from ganlab.cli import COMMANDS

# These act, and print a few lines about it; completion prints a script.
WITHOUT_TABLES = {"run", "sample", "export", "fork", "tensorboard", "completion"}
WITHOUT_TABLES |= {"runs rm", "runs archive", "runs unarchive", "plugins new"}


def test_every_command_that_prints_a_table_has_json():
    without = {
        " ".join(words)
        for words, command in every_command()
        if words[0] in COMMANDS and not any("--json" in option.opts for option in command.params)
    }
    assert without <= WITHOUT_TABLES


def test_config_show_as_json_equals_the_settings_of_a_run(ganlab, here, minimal):
    (here / "exp.gin").write_text(minimal)
    result = ganlab("config", "show", "--gin", "exp.gin", "--param", "experiment.batch_size=32", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    settings = json.loads(result.stdout)
    assert settings["dataset"] == "points"
    assert settings["experiment.batch_size"] == 32
    assert settings["optimizers.adam.beta"] == 0.9  # a default


WEIGHT = {"type": "float", "default": 10.0, "documentation": "How strongly."}
SIDES = {"type": "Literal['one', 'two']", "default": "two", "documentation": "Which slopes count."}


def test_config_explain_as_json(ganlab):
    data = json.loads(ganlab("config", "explain", "penalty", "--json").stdout)
    assert data == {
        "name": "constraints.penalty",
        "origin": str(Path("ganlab_plugins.py").resolve()),
        "parameters": [{"name": "weight", "required": False, **WEIGHT}, {"name": "sides", "required": False, **SIDES}],
        "documentation": "Keeps gradients small.\n\nArgs:\n    weight: How strongly.\n    sides: Which slopes count.",
    }
    (path,) = json.loads(ganlab("config", "explain", "datasets.table", "--json").stdout)["parameters"]
    assert path == {"name": "path", "type": "str", "required": True, "documentation": "The file."}


def test_config_explain_of_a_setting_as_json(ganlab):
    data = json.loads(ganlab("config", "explain", "penalty.weight", "--json").stdout)
    assert data == {"name": "constraints.penalty.weight", "required": False, **WEIGHT}
    bound = json.loads(ganlab("config", "explain", "experiment.batch_size", "--json").stdout)["bound"]
    assert bound == "a whole number of at least 1 and below 2**31"
    data = json.loads(ganlab("config", "explain", "constraints", "--json").stdout)
    assert {"name": "constraints.penalty", "summary": "Keeps gradients small."} in data["components"]
