import collections
import functools
import math

import numpy as np
import pytest

from ganlab import config
from ganlab.errors import ConfigError
from ganlab.plugins.recipes import Recipe


def _experiment(parts, **more):
    return Recipe("", "experiment", {**parts, **more})


def _penalty(**arguments):
    return Recipe("constraints", "penalty", arguments)


def _back(write, text):
    write(back=text)
    return config.load(["back.gin"])


def test_render_minimal_experiment(parts):
    text = config.render(_experiment(parts, batch_size=32, ema_decay=math.inf))
    assert text == (
        "experiment.dataset = @datasets.points()\n"
        "experiment.architecture = @architectures.small()\n"
        "experiment.loss = @losses.plain()\n"
        "experiment.strategy = @strategies.one()\n"
        "experiment.critic_optimizer = @optimizers.adam()\n"
        "experiment.generator_optimizer = @optimizers.adam()\n"
        "experiment.batch_size = 32\n"
        "experiment.ema_decay = 1e999\n"
    )


def test_component_with_two_sets_of_arguments_gets_scopes(write, parts):
    slow, fast = (Recipe("optimizers", "adam", {"learning_rate": rate}) for rate in (1e-5, 1e-3))
    recipe = _experiment({**parts, "critic_optimizer": slow, "generator_optimizer": fast})
    text = config.render(recipe)
    assert "experiment.critic_optimizer = @critic_optimizer/optimizers.adam()" in text
    assert "generator_optimizer/optimizers.adam.learning_rate = 0.001" in text
    assert _back(write, text) == recipe


def test_settings_of_further_networks_are_named_by_the_network(write, parts):
    networks = {"second": [_penalty(weight=2.0)], "encoder": [_penalty(weight=3.0)], "a b": [_penalty(weight=4.0)]}
    recipe = _experiment(parts, network_constraints=networks)
    flat = config.flatten(recipe)
    for name, weight in (("second", 2.0), ("encoder", 3.0), (3, 4.0)):
        assert flat[f"network_constraints_{name}_1/constraints.penalty.weight"] == weight
    assert _back(write, config.render(recipe)) == recipe


def test_component_used_twice_with_equal_arguments_needs_no_scope(write, parts):
    adam = Recipe("optimizers", "adam", {"beta": 0.5})
    recipe = _experiment({**parts, "critic_optimizer": adam, "generator_optimizer": adam})
    text = config.render(recipe)
    assert text.count("optimizers.adam.beta = 0.5") == 1
    assert "/" not in text
    assert _back(write, text) == recipe


def test_every_kind_of_value_and_nesting_round_trips(write, parts):
    nested = Recipe("constraints", "every", {"inner": _penalty(weight=1.0), "interval": 2})
    deeper = Recipe("constraints", "every", {"inner": nested, "interval": 3})
    recipe = _experiment(
        {
            **parts,
            "dataset": Recipe(
                "datasets", "points", {"path": 'it\'s "new"\n\\é\t', "labels": [-1, 2], "spread": (0.5,), "count": 3}
            ),
            "architecture": Recipe(
                "architectures", "small", {"residual": True, "options": {"a": 1e-30, "b": -math.inf}}
            ),
        },
        constraints=[_penalty(), deeper, _penalty(weight=math.inf), nested],
        seed=2**31 - 1,
        jit="off",
    )
    assert _back(write, config.render(recipe)) == recipe


def test_file_with_scopes_macros_and_includes_round_trips_twice(write, minimal):
    write(
        base=minimal,
        exp="include 'base.gin'\nrate = 0.01\nexperiment.critic_optimizer = @c/adam()\nc/adam.learning_rate = %rate\n"
        "experiment.constraints = [@every(), @hard/every()]\nevery.inner = @penalty()\npenalty.weight = 2.0\n"
        "hard/penalty.weight = 9.0\nhard/every.interval = 1\n",
    )
    recipe = config.load(["exp.gin"])
    assert [r.arguments["inner"].arguments["weight"] for r in recipe.arguments["constraints"]] == [2.0, 9.0]
    once = config.render(recipe)
    again = _back(write, once)
    assert again == recipe
    assert config.render(again) == once


def test_defaults_are_written_on_request_and_read_back(write, parts):
    recipe = _experiment({**parts, "strategy": Recipe("strategies", "many", {"replicas": 4})})
    text = config.render(recipe, defaults=True)
    for line in (
        "experiment.critic_steps = 5",
        "experiment.constraints = ()",
        "strategies.many.replicas = 4",
        "strategies.many.devices = None",
        "optimizers.adam.learning_rate = 0.0001",
        "datasets.points.spread = (1.0,)",
    ):
        assert line in text.splitlines()
    for part in ("constraints", "augmentations", "evaluators", "diagnostics"):
        text = text.replace(f"{part} = ()", f"{part} = []")
    assert config.render(_back(write, text)) == text


def test_numpy_numbers_are_written_as_python_numbers(write, parts):
    rate = np.logspace(-4, -2, 3)[1]
    recipe = _experiment(
        {**parts, "critic_optimizer": Recipe("optimizers", "adam", {"learning_rate": rate})}, steps=np.int64(7)
    )
    back = _back(write, config.render(recipe))
    assert back == recipe
    assert type(back.arguments["steps"]) is int


class Mine:
    def __init__(self, weight=1.0):
        self.weight = weight


_Size = collections.namedtuple("_Size", "width height")


def _closure(limit):
    def clip(x):
        return min(x, limit)

    return clip


# Values that no file can make again: what the file has in their place, and what dashboards show.
MADE_IN_PYTHON = {
    "object": (Mine(2.5), "Mine", "Mine(weight=2.5)"),
    "class": (Mine, "Mine", "Mine()"),
    "lambda": (lambda x: x, "lambda", "<lambda>()"),
    "closure": (_closure(3), "clip", "clip(limit=3)"),
    "partial": (functools.partial(min, 2, key=abs), "partial", "partial(min(), 2, key=abs())"),
    "method": ("a".join, "join", "join()"),
    "array": (np.array([1.0, 2.0]), "ndarray", "ndarray[2, float64](content='eb1f76da')"),
    "nan": (math.nan, "nan", "nan"),
    "set": ({2, 1}, "set", "set(1, 2)"),
    "named tuple": (_Size(2, 3), "_Size", "_Size(2, 3)"),
    "list": ([1, [Mine()]], "Mine", "1, Mine(weight=1.0)"),
    "dict": ({"a": (Mine(),)}, "Mine", "a: Mine(weight=1.0)"),
    "keys": ({Mine: 1}, "dict", "dict(Mine()=1)"),
}


@pytest.mark.parametrize("case", MADE_IN_PYTHON)
def test_value_made_in_python_is_refused_by_name_unless_it_is_given_again(write, parts, case):
    value, name, shown = MADE_IN_PYTHON[case]
    recipe = _experiment({**parts, "dataset": Recipe("datasets", "points", {"path": value, "count": 3})})
    for defaults in (False, True):
        text = config.render(recipe, defaults=defaults)
        assert f"%only_in_python/{name}" in text
        write(copied=text)
        with pytest.raises(
            ConfigError, match=rf"copied.gin:\d+: datasets.points.path had a value .* {name!r}, which no"
        ):
            config.load(["copied.gin"])
        with pytest.raises(ConfigError, match=f"{name!r}"):
            config.load_variant(["copied.gin"], [], {"experiment.seed": "1"})
    back = config.load(["copied.gin"], objects=config.objects(recipe)).arguments["dataset"].arguments
    assert back["path"] is value or back["path"] == value
    assert config.flatten(recipe)["datasets.points.path"] == shown
    # Set anew, it is not missed; nor where it is not read.
    anew = config.load(["copied.gin"], ["datasets.points.path=new"])
    assert anew.arguments["dataset"].arguments == {**back, "path": "new"}
    assert list(config.load(["copied.gin"], only=["seed"]).arguments) == ["seed"]


def test_part_made_in_python_is_refused_in_a_list_and_objects_keep_their_places(write, parts):
    one, other = Mine(1.0), Mine(2.0)
    recipe = _experiment(parts, constraints=[_penalty(weight=3.0), one, other, one])
    marks = "@constraints.penalty(), %only_in_python/Mine, %only_in_python/Mine_2, %only_in_python/Mine"
    text = config.render(recipe)
    assert f"experiment.constraints = [{marks}]" in text.splitlines()
    write(exp=text)
    with pytest.raises(ConfigError, match=r"experiment.constraints had a value that was made in Python, 'Mine'"):
        config.load(["exp.gin"])
    assert config.load(["exp.gin"], objects=config.objects(recipe)) == recipe
    assert config.flatten(recipe)["constraints"] == "penalty, Mine(weight=1.0), Mine(weight=2.0), Mine(weight=1.0)"


def test_no_file_defines_what_was_made_in_python(write, parts):
    text = config.render(_experiment(parts, constraints=[Mine()]))
    write(exp=f"{text}only_in_python/Mine = @constraints.penalty()\n")
    with pytest.raises(ConfigError, match="'Mine', which no file can make"):
        config.load(["exp.gin"])


def test_flatten_gives_scalars_for_dashboards(parts):
    flat = config.flatten(
        _experiment(
            {**parts, "generator_optimizer": Recipe("optimizers", "adam", {"beta": 0.5})},
            constraints=[_penalty(), Recipe("constraints", "every", {"inner": _penalty()})],
            batch_size=16,
        )
    )
    expected = {
        "dataset": "points",
        "constraints": "penalty, every",
        "constraints.penalty.weight": 10.0,
        "constraints.every.inner": "penalty",
        "constraints.every.interval": 4,
        "critic_optimizer": "adam",
        "critic_optimizer/optimizers.adam.beta": 0.9,
        "generator_optimizer/optimizers.adam.beta": 0.5,
        "architectures.small.residual": False,
        "datasets.points.spread": "1.0",
        "experiment.batch_size": 16,
        "experiment.jit": "auto",
    }
    assert {name: flat.get(name) for name in expected} == expected
    assert "datasets.points.labels" not in flat  # None
    assert {type(value) for value in flat.values()} <= {bool, int, float, str}


def test_render_refuses_an_experiment_that_would_not_read_back(parts, monkeypatch):
    monkeypatch.setattr("ganlab.config.serializer._Plan.literal", lambda self, value: "1")
    with pytest.raises(ConfigError, match="cannot be written as gin: it reads back as 1"):
        config.render(_experiment(parts))
