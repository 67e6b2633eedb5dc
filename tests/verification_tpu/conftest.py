from pathlib import Path

import pytest
from ganlab_verify import Source
from ganlab_verify.tpu import environment

PLUGIN = Path(__file__).with_name("tpu_constraints.py")

# 8 x 8 digits by the smallest convolutions, for the test's own topology and constraint.
EXPERIMENT = """
include 'base/wgan_gp.gin'
experiment.dataset = @datasets.digits()
experiment.architecture = @architectures.dcgan()
experiment.batch_size = 16
experiment.critic_steps = 2
architectures.dcgan.channels = 8
architectures.dcgan.latent_dim = 16
"""

_not_made: dict[str, str] = {}


@pytest.fixture
def source(tmp_path):
    """The small experiment: `source("spectral_norm", "experiment.batch_size=6")`."""
    path = tmp_path / "small.gin"

    def source(constraint="gradient_penalty", *params):
        path.write_text(f"{EXPERIMENT}\nexperiment.constraints = [@constraints.{constraint}()]\n")
        return Source((str(path),), params, plugin_file=str(PLUGIN))

    return source


@pytest.fixture(scope="session")
def compiler():
    """An interpreter with the TPU compiler, which is installed into the user's cache if it is missing."""
    try:
        return environment.compiler_python()
    except environment.UnavailableError as error:
        pytest.skip(f"the TPU compiler cannot be installed: {error}")


def pytest_deselected(items):
    for item in items:
        if item.get_closest_marker("tpu_check"):
            _not_made[item.nodeid] = "deselected"


def pytest_runtest_logreport(report):
    if report.skipped and "tpu_check" in report.keywords:
        _not_made[report.nodeid] = str(report.longrepr[2]).removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter):
    if _not_made:
        reasons = "; ".join(sorted(set(_not_made.values())))
        terminalreporter.write_line(
            f"The tpu check of ganlab verify was NOT tested in {len(_not_made)} cases: {reasons}"
        )
