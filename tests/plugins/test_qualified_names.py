"""Components that several plugins offer under one name are available by qualified names."""

import types

import pytest

import ganlab
from ganlab import config
from ganlab.errors import ConfigError, PluginError
from ganlab.plugins import manager as plugins


def offering(**hooks):
    return types.SimpleNamespace(**{name: ganlab.hookimpl(lambda made=made: made) for name, made in hooks.items()})


def loss(sign):
    class Signed(ganlab.Loss):
        """A loss with a sign."""

        def __init__(self, *, factor: float = sign) -> None:
            self.factor = factor

    return Signed


@pytest.fixture
def found(fresh_plugins):
    found = plugins.use(plugins.Plugins())
    for name, sign in [("alpha", 1.0), ("my-beta", -1.0)]:
        found.add(plugins.Plugin(name, name, "1"), lambda sign=sign: offering(ganlab_losses={"signed": loss(sign)}))
    found.add(plugins.Plugin("gamma", "gamma", "1"), lambda: offering(ganlab_losses={"alone": loss(2.0)}))
    return found


def test_clashing_components_are_available_by_qualified_name(found):
    assert ganlab.component("losses", "alpha.signed")().factor == 1.0
    assert ganlab.component("losses", "my_beta.signed")().factor == -1.0
    assert ganlab.component("losses", "my_beta.signed")(factor=3.0).factor == 3.0


def test_qualified_name_is_valid_without_a_clash(found):
    assert ganlab.component("losses", "gamma.alone")().factor == 2.0
    for wrong in ("gamma.signed", "alpha.alone", "alpha.signed.factor", ".alone", "delta.alone"):
        with pytest.raises(PluginError):
            ganlab.component("losses", wrong)


def test_qualified_names_in_files_and_overrides(tmp_path, monkeypatch, found):
    parts = {
        "strategy": ("strategies", "one"),
        "dataset": ("datasets", "points"),
        "architecture": ("architectures", "small"),
        "critic_optimizer": ("optimizers", "sgd"),
        "generator_optimizer": ("optimizers", "sgd"),
    }
    hooks = {f"ganlab_{kind}": {name: lambda: None} for kind, name in parts.values()}
    found.add(plugins.Plugin("rest", "rest", "1"), lambda: offering(**hooks))
    path = tmp_path / "exp.gin"
    lines = [f"experiment.{part} = @{kind}.{name}()" for part, (kind, name) in parts.items()]
    path.write_text("\n".join([*lines, "experiment.loss = @losses.my_beta.signed()", "my_beta.signed.factor = 5.0"]))
    recipe = config.load([path], ["losses.my_beta.signed.factor=7.0"])
    assert (recipe.arguments["loss"].selector, recipe.arguments["loss"].arguments) == (
        "losses.my_beta.signed",
        {"factor": 7.0},
    )
    assert "@losses.my_beta.signed()" in str(config.render(recipe))
    recipe = config.load([path], ["experiment.loss=@losses.gamma.alone()", "losses.my_beta.signed.factor=1.0"][:1])
    assert recipe.arguments["loss"].selector == "losses.alone"
    with pytest.raises(ConfigError, match=r"losses\.alpha\.signed or losses\.my_beta\.signed"):
        config.load([path], ["experiment.loss=@signed()"])
