import pytest

from ganlab.plugins import manager as plugins

POINTS = """
include 'base/{base}.gin'
experiment.dataset = @datasets.gaussian_ring()
experiment.architecture = @architectures.{architecture}()
"""

# Smooth, so that no kink magnifies rounding.
SMALL = (
    "architectures.mlp.width=8",
    "architectures.mlp.depth=2",
    "architectures.mlp.activation='tanh'",
    "architectures.mlp.latent_dim=3",
)


@pytest.fixture(scope="session")
def experiments(tmp_path_factory):
    """Writes a small experiment: `experiments("wgan_gp")` returns its file and the parameters that make it small."""
    folder = tmp_path_factory.mktemp("experiments")

    def write(base, *, architecture="mlp", critic_steps=1):
        path = folder / f"{base}-{architecture}.gin"
        path.write_text(POINTS.format(base=base, architecture=architecture))
        small = (f"experiment.critic_steps={critic_steps}", "experiment.batch_size=12")
        return str(path), small + (SMALL if architecture == "mlp" else ())

    return write


@pytest.fixture
def own_plugins():
    """Restores the plugins in use after checks that ran in this process."""
    before = plugins.current()
    yield
    plugins.use(before)
