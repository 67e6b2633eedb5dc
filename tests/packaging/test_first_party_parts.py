"""Every shipped component and experiment file is documented and well formed."""

import inspect
import re

import pytest
from pages import ROOT

from ganlab import config
from ganlab.config.documentation import documentation, of_parameter
from ganlab.errors import GanlabError
from ganlab.plugins import manager as plugins

PACKAGE = ROOT / "plugins" / "ganlab_builtin"
FIRST_PARTY = {f"ganlab_{path.name}" for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
FIRST_PARTY -= {"ganlab_layers"}  # which architectures import; they are no kind of component


def first_party():
    """The components of this distribution, whatever else is installed."""
    found = plugins.discover()
    return [component for component in found.components.values() if component.plugin.name in FIRST_PARTY]


COMPONENTS = first_party()


@pytest.fixture(scope="module", autouse=True)
def in_use():
    with pytest.MonkeyPatch.context() as patch, plugins.using():
        patch.delenv("GANLAB_PLUGINS", raising=False)
        yield plugins.current()


def test_every_first_party_plugin_loads_and_offers_something(in_use):
    assert {row.name for row in in_use.rows if row.status == "loaded"} >= FIRST_PARTY
    others = {"ganlab_mlflow", "ganlab_notify", "ganlab_remote", "ganlab_trackers", "ganlab_wandb"}
    assert {component.plugin.name for component in COMPONENTS} == FIRST_PARTY - others
    assert {component.kind for component in COMPONENTS} == set(plugins.KINDS)


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.factory.__repr__())
def test_component_is_documented_and_typed(component):
    make = component.factory.make
    assert component.summary.endswith(".")
    parameters = inspect.signature(make).parameters.values()
    for parameter in parameters:
        assert parameter.kind is parameter.KEYWORD_ONLY, f"{parameter.name} can be given by position"
        assert parameter.annotation is not parameter.empty, f"{parameter.name} has no type"
        assert of_parameter(make, parameter.name), f"{parameter.name} is not in Args"
    if parameters:
        (listed,) = re.findall(r"^Args:\n((?:    .*\n?|\n)+)", documentation(make), re.MULTILINE)
        assert re.findall(r"^    (\w+):", listed, re.MULTILINE) == [parameter.name for parameter in parameters]


@pytest.mark.parametrize("path", config.shipped_gin_files(), ids=lambda path: path.stem)
def test_shipped_file_has_a_description_and_loads(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    if path.parent.name == "base":
        # A base file is incomplete: it lacks only what distinguishes those that include it.
        missing = "dataset|architecture|loss"
        with pytest.raises(GanlabError, match=rf"experiment needs ({missing})(, ({missing}))*, which"):
            config.load([path])
        return
    folders = ("benchmark", "methods", "paper", "published", "stacked_mnist", "mnist")
    name = f"{path.parent.name}/{path.stem}" if path.parent.name in folders else path.stem
    assert f"--gin {name}" in text or f"--gin gin/{name}.gin" in text, "the file lacks its command line"
    recipe = config.load([path])
    assert {"dataset", "architecture", "loss", "strategy"} <= set(recipe.arguments)
    # Written as in a run's folder, it is the same experiment.
    (tmp_path / "config.gin").write_text(config.render(recipe), encoding="utf-8")
    assert config.load([tmp_path / "config.gin"]) == recipe
