import pytest
from ganlab_sweep import Sweep
from ganlab_sweep.configurations import Configuration


@pytest.fixture(autouse=True)
def in_use(fresh_plugins):
    """Each test discovers the plugins of its folder."""


@pytest.fixture
def sweep(tmp_path):
    """Makes a sweep of the configurations a and b, or without any: `sweep(seeds=[0], objective="critic/loss")`."""

    def sweep(configurations=("a", "b"), name="s", **asked):
        defaults = {"seeds": [0, 1], "jobs": 2, "objective": None, "budget": None, "maximize": False}
        others = {"no_plugin": [], "plugin_file": None, "search_seed": 0}
        made = [Configuration(name, {"x": name}, f"# {name}\n") for name in configurations]
        proposals = [
            {"settings": {"x": name}, "configuration": name, "value": None, "ended": False} for name in configurations
        ]
        info = {"folder": str(tmp_path), "threads": 3, "trials": {}, "proposals": proposals}
        return Sweep.create(tmp_path / "runs" / name, {**info, "asked": {**defaults, **others, **asked}}, made)

    return sweep
