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
        constraints=[_penalty(), deeper, _penalty(weight=2.0), nested],
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


def test_value_without_gin_literal_is_a_comment_and_the_rest_loads(write, parts):
    class Mine:
        def __repr__(self):
            return "<Mine\nof two lines>"

    text = config.render(_experiment(parts, constraints=[_penalty(weight=3.0), Mine()], evaluators=[]))
    lost = "# experiment.constraints = <Mine of two lines> of type Mine: this file cannot rebuild it"
    assert lost in text.splitlines()
    assert "\n# constraints.penalty.weight = 3.0" in text
    assert _back(write, text) == _experiment(parts, evaluators=[])


def test_nan_is_a_comment(parts):
    text = config.render(_experiment({**parts, "loss": Recipe("losses", "hinge", {"margin": math.nan})}))
    assert "# losses.hinge.margin = nan of type float: this file cannot rebuild it" in text


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
