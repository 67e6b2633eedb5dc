"""Messages name the option that was typed, not the override that it stands for."""

import pytest
from click.testing import CliRunner

from ganlab import config
from ganlab.cli import cli
from ganlab.config.overrides import Override
from ganlab.errors import ConfigError

pytestmark = pytest.mark.usefixtures("fresh_plugins")


def test_an_override_may_stand_for_another_option():
    with pytest.raises(ConfigError, match=r"^--speed 3: "):
        config.load(["quickstart"], [Override("experiment.spede=3", "--speed 3")])
    with pytest.raises(ConfigError, match=r"^--param 'experiment\.spede=3': "):
        config.load(["quickstart"], ["experiment.spede=3"])


@pytest.mark.parametrize("seed", ["1.5", "-1", "x"])
def test_messages_quote_seed_rather_than_param(seed):
    result = CliRunner().invoke(cli, ["run", "--gin", "quickstart", "--seed", seed, "--dry-run"])
    assert result.exit_code == 2
    assert "--seed" in result.stderr
    assert "--param" not in result.stderr


def test_seed_option_and_param_for_the_seed():
    arguments = ["run", "--gin", "quickstart", "--param", "experiment.seed=3", "--seed", "4", "--dry-run"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert "--seed 4 sets it again" in result.stderr
