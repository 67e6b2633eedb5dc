"""A setting has one name, and every spelling of it that ganlab prints somewhere is taken as an override."""

import pytest

from ganlab import config
from ganlab.config.spelling import setting_name
from ganlab.errors import ConfigError

CRITIC, GENERATOR = "critic_optimizer/optimizers.adam.beta", "generator_optimizer/optimizers.adam.beta"
SCOPED = """
critic/optimizers.adam.beta = 0.5
experiment.constraints = [@constraints.penalty()]
"""


@pytest.fixture
def scoped(minimal):
    """The lines of an experiment whose optimizers have scopes, and a constraint."""
    return minimal.replace("@adam()", "@critic/adam()", 1).replace("@adam()", "@slow/adam()") + SCOPED


def changed(source, param):
    """The settings that an override changes, as run.json has them."""
    before, after = config.flatten(config.load([source])), config.flatten(config.load([source], [param]))
    return {name: after[name] for name in after if before.get(name, before.get(name.rpartition("/")[2])) != after[name]}


@pytest.mark.parametrize("source", ["own", "rendered"])
@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        (CRITIC, CRITIC),
        ("critic/optimizers.adam.beta", CRITIC),
        ("critic/adam.beta", CRITIC),
        ("critic.adam.beta", CRITIC),
        ("critic_optimizer.adam.beta", CRITIC),
        ("critic.beta", CRITIC),
        ("generator.adam.beta", GENERATOR),
        ("penalty.weight", "constraints.penalty.weight"),
        ("weight", "constraints.penalty.weight"),
        ("batch_size", "experiment.batch_size"),
    ],
)
def test_every_spelling_sets_one_setting(write, scoped, source, spelled, name):
    folder = write(own=scoped)
    (folder / "rendered.gin").write_text(config.render(config.load(["own.gin"])))
    value = 7 if name == "experiment.batch_size" else 0.25
    assert changed(f"{source}.gin", f"{spelled}={value}") == {name: value}
    assert setting_name([f"{source}.gin"], [], spelled) == name
    assert config.load_variant([f"{source}.gin"], [], {spelled: str(value)}).used == {spelled: str(value)}


def test_the_setting_of_one_part_sets_it_apart_from_the_others(write, minimal):
    write(exp=minimal + "optimizers.adam.beta = 0.5\n")
    assert changed("exp.gin", "critic.adam.beta=0.25") == {CRITIC: 0.25}
    assert changed("exp.gin", "adam.beta=0.25") == changed("exp.gin", "beta=0.25") == {"optimizers.adam.beta": 0.25}
    both = config.load(["exp.gin"], ["critic.adam.beta=0.25", "optimizers.adam.beta=0.1"])
    assert both == config.load(["exp.gin"], ["optimizers.adam.beta=0.1", "critic.adam.beta=0.25"])
    assert [config.flatten(both)[name] for name in (CRITIC, GENERATOR)] == [0.25, 0.1]
    assert config.load([write(back=config.render(both)) / "back.gin"]) == both


def test_a_part_may_lack_the_word_experiment_and_macros_keep_their_names(write, minimal):
    write(exp=minimal + "weight = 2.0\nexperiment.constraints = [@penalty()]\nconstraints.penalty.weight = %weight\n")
    assert changed("exp.gin", "constraints=[]") == {}
    assert config.load(["exp.gin"], ["constraints=[]"]).arguments["constraints"] == []
    assert config.load(["exp.gin"], ["weight=4.0"]).arguments["constraints"][0].arguments == {"weight": 4.0}


@pytest.mark.parametrize(
    ("param", "message"),
    [
        ("beta=1", "--param 'beta=1': beta may be critic/optimizers.adam.beta or slow/optimizers.adam.beta: give one"),
        ("wide/adam.beta=1", "optimizers.adam is not used in the scope 'wide'. It is used in 'critic', in 'slow'."),
        ("wieght=1", "the macro wieght = 1 is never used."),
    ],
)
def test_an_ambiguous_or_unknown_name_is_refused(write, scoped, param, message):
    write(own=scoped)
    with pytest.raises(ConfigError) as refused:
        config.load(["own.gin"], [param])
    assert message in str(refused.value)
