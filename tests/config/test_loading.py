import gin
import pytest

from ganlab import config
from ganlab.errors import ConfigError
from ganlab.plugins.recipes import Recipe


def test_a_file_becomes_a_recipe_of_values_and_recipes(write, minimal, parts):
    write(exp=minimal + "experiment.batch_size = 32\noptimizers.adam.beta = 0.5\n")
    recipe = config.load(["exp.gin"])
    adam = Recipe("optimizers", "adam", {"beta": 0.5})
    assert recipe == Recipe(
        "", "experiment", {**parts, "critic_optimizer": adam, "generator_optimizer": adam, "batch_size": 32}
    )


def test_macros_blocks_and_nested_references(write, minimal):
    write(
        exp=minimal
        + """
strength = 3.0
chosen = [@constraints.every()]
experiment.constraints = %chosen
constraints.every:
    inner = @constraints.penalty()
    interval = 8
constraints.penalty.weight = %strength
"""
    )
    inner = Recipe("constraints", "penalty", {"weight": 3.0})
    every = Recipe("constraints", "every", {"inner": inner, "interval": 8})
    assert config.load(["exp.gin"]).arguments["constraints"] == [every]


def test_later_files_and_params_override_earlier_ones(write, minimal):
    write(
        a=minimal + "experiment.steps = 1\nexperiment.seed = 1\n", b="experiment.steps = 2\nexperiment.log_every = 2\n"
    )
    recipe = config.load(["a.gin", "b.gin"], ["experiment.log_every=3"])
    assert [recipe.arguments[name] for name in ("seed", "steps", "log_every")] == [1, 2, 3]


def test_include_is_found_beside_the_file_then_in_the_working_directory(write, minimal):
    write(
        sub__exp="include 'base.gin'\ninclude 'other.gin'\n",
        sub__base=minimal,
        base="nonsense",
        other="experiment.seed = 7",
    )
    assert config.load(["sub/exp.gin"]).arguments["seed"] == 7


def test_included_defaults_may_be_unused(write, minimal):
    write(exp="include 'base.gin'\n", base=minimal + "strategies.many.replicas = 4\nunused = 3\n")
    assert "strategy" in config.load(["exp.gin"]).arguments


def test_override_may_make_settings_of_the_files_choice_unused(write, minimal):
    own = minimal.replace("@one()", "@many()") + "strategies.many.replicas = 4\n"
    write(exp=own)
    recipe = config.load(["exp.gin"], ["experiment.strategy=@strategies.one()"])
    assert recipe.arguments["strategy"] == Recipe("strategies", "one")


def test_later_file_may_set_parameters_used_by_an_earlier_one(write, minimal):
    write(tweak="constraints.penalty.weight = 2.0\n", exp=minimal + "experiment.constraints = [@penalty()]\n")
    for order in (["tweak.gin", "exp.gin"], ["exp.gin", "tweak.gin"]):
        assert config.load(order).arguments["constraints"][0].arguments == {"weight": 2.0}


@pytest.mark.parametrize(
    ("param", "name", "value"),
    [
        ("experiment.jit='off'", "jit", "off"),
        ("experiment.jit=off", "jit", "off"),
        ("experiment.ema_decay = 0", "ema_decay", 0),
        ("experiment.steps=1_000", "steps", 1000),
    ],
)
def test_param_is_a_gin_value_or_bare_text_for_a_text_parameter(write, minimal, param, name, value):
    write(exp=minimal)
    assert config.load(["exp.gin"], [param]).arguments[name] == value


@pytest.mark.parametrize("text", ["data/x-1.npy", "2024", "two words"])
def test_param_for_a_text_parameter_is_literal(write, minimal, text):
    write(exp=minimal)
    recipe = config.load(["exp.gin"], [f"datasets.points.path={text}"])
    assert recipe.arguments["dataset"].arguments == {"path": text}


def test_types_that_only_tensorflow_knows_are_not_checked(write, minimal):
    write(exp=minimal + "optimizers.adam.schedule = 'cosine'\n")
    assert config.load(["exp.gin"]).arguments["critic_optimizer"].arguments == {"schedule": "cosine"}


def test_default_value_is_valid_whatever_the_annotation(write, minimal):
    write(exp=minimal + "datasets.points.labels = None\n")
    assert config.load(["exp.gin"]).arguments["dataset"].arguments == {"labels": None}


def test_loading_leaves_gin_unchanged(write, minimal):
    write(exp=minimal)
    gin.parse_config("mine = 3")
    before = gin.config_str()
    config.flatten(config.load(["exp.gin"]))
    assert "mine = 3" in gin.config_str() == before
    gin.clear_config()


def test_shipped_files_are_found_by_name(tmp_path, monkeypatch):
    (tmp_path / "shipped" / "base").mkdir(parents=True)
    file, base = tmp_path / "shipped" / "quick.gin", tmp_path / "shipped" / "base" / "mlp.gin"
    file.write_text("")
    base.write_text("")
    monkeypatch.setattr("ganlab.config.files.shipped_folder", lambda: tmp_path / "shipped")
    monkeypatch.chdir(tmp_path)
    assert {config.find_gin_file(name) for name in ("quick", "quick.gin", "gin/quick.gin")} == {file}
    assert config.find_gin_file("base/mlp") == base
    assert config.shipped_gin_files() == [base, file]
    with pytest.raises(
        ConfigError,
        match=r"Gin file 'quik' not found\. Did you mean 'quick'\? Shipped files: base/mlp\.gin, quick\.gin\.",
    ):
        config.find_gin_file("quik")
    with pytest.raises(ConfigError, match=r"Gin file 'mlp' not found\. Did you mean 'base/mlp'\?$"):
        config.find_gin_file("mlp")


def test_many_shipped_files_are_counted_by_folder_but_for_the_one_asked(tmp_path, monkeypatch):
    for folder, count in (("", 2), ("methods/", 30), ("paper/", 3)):
        (tmp_path / folder).mkdir(exist_ok=True)
        for number in range(count):
            (tmp_path / folder / f"file_{number}.gin").write_text("")
    monkeypatch.setattr("ganlab.config.files.shipped_folder", lambda: tmp_path)
    with pytest.raises(ConfigError, match=r"files: file_0\.gin, file_1\.gin, 30 in methods/, 3 in paper/\.$"):
        config.find_gin_file("elsewhere/zzz")
    opened = r"files: file_0\.gin, .*, paper/file_0\.gin, paper/file_1\.gin, paper/file_2\.gin, 30 in methods/\.$"
    with pytest.raises(ConfigError, match=opened):
        config.find_gin_file("paper/zzz")


def test_a_path_wins_over_a_shipped_file(write):
    here = write(quickstart="experiment.seed = 1")
    assert config.find_gin_file("quickstart.gin").resolve() == here / "quickstart.gin"
