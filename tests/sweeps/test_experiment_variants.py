"""Experiments made from the same files with other settings, and arguments of parts outside an experiment."""

from types import SimpleNamespace
from typing import Any

import pytest

from ganlab import ConfigError, config, hookimpl
from ganlab.plugins import manager as plugins

WEIGHT = "constraints.gradient_penalty.weight"


def test_a_variant_is_the_experiment_with_its_settings_over_the_params():
    variant = config.load_variant(["quickstart"], ["experiment.steps=7"], {WEIGHT: "3", "experiment.jit": "off"})
    assert variant.recipe == config.load(["quickstart"], ["experiment.steps=7", f"{WEIGHT}=3", "experiment.jit=off"])
    assert variant.used == {WEIGHT: "3", "experiment.jit": "off"}
    assert variant.unused == {}


def test_settings_without_effect_are_reported_by_name_or_line(tmp_path):
    (tmp_path / "a.gin").write_text("include 'quickstart'\nconstraints.r1.gamma = 2.0\n")
    settings = {"experiment.constraints": "[@constraints.spectral_norm()]", WEIGHT: "3"}
    variant = config.load_variant([tmp_path / "a.gin"], ["constraints.r2.gamma=1"], settings)
    assert variant.used == {"experiment.constraints": "[@constraints.spectral_norm()]"}
    line, param, setting = variant.unused
    assert line.endswith("a.gin:2: constraints.r1.gamma")
    assert param == "--param 'constraints.r2.gamma=1': constraints.r2.gamma"
    assert setting == WEIGHT
    assert variant.unused[WEIGHT].startswith(f"setting '{WEIGHT}=3': {WEIGHT} = 3 has no effect: ")


class Launcher:
    def __init__(self, *, partition: str = "", hours: float = 1.0, extra: dict[str, Any] | None = None) -> None:
        pass


@pytest.fixture
def launcher():
    found, hook = plugins.discover(), hookimpl(lambda: {"mine": Launcher})
    found.add(plugins.Plugin("mine", "mine", "1"), lambda: SimpleNamespace(ganlab_launchers=hook))
    plugins.use(found)


def test_arguments_have_the_types_of_the_factory(launcher):
    options = ["partition=gpu", "hours=2", "extra={'qos': 'low'}"]
    made = config.arguments("launchers", "mine", options, "--launcher-option")
    assert made == {"partition": "gpu", "hours": 2, "extra": {"qos": "low"}}
    # Shells eat quotes; what wants text gets it as it is.
    assert config.arguments("launchers", "mine", ["partition=3"], "--launcher-option") == {"partition": "3"}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("hours=soon", "--option 'hours=soon': launchers.mine.hours = soon must be float, not str."),
        ("hour=1", "--option 'hour=1': launchers.mine has no parameter 'hour'. Did you mean 'hours'?"),
        ("hours", "--option 'hours': must have the form NAME=VALUE."),
        ("=1", "--option '=1': must have the form NAME=VALUE."),
        ("a/hours=1", "--option 'a/hours=1': must have the form NAME=VALUE."),
    ],
)
def test_an_invalid_argument_is_one_sentence(launcher, option, message):
    with pytest.raises(ConfigError) as raised:
        config.arguments("launchers", "mine", [option], "--option")
    assert str(raised.value) == message
