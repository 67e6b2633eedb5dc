import pytest
from ganlab_sweep import Configurations
from ganlab_sweep.configurations import check, check_used, varying

from ganlab import Choices, ConfigError, Range, config

GP, SN, R1 = "[@constraints.gradient_penalty()]", "[@constraints.spectral_norm()]", "[@constraints.r1()]"
WEIGHT, CONSTRAINTS = "constraints.gradient_penalty.weight", "experiment.constraints"
GAMMA, PARTS = "constraints.r1.gamma", Choices((GP, SN))


@pytest.fixture
def made():
    """Makes configurations of the quickstart: `made([names], *settings)`."""

    def made(names, *settings, params=()):
        configurations = Configurations(["quickstart"], params, names, known=())
        return configurations, [configurations.of(each) for each in settings]

    return made


def test_a_configuration_is_the_whole_experiment_named_by_its_differences(made, tmp_path):
    _, (one, ten) = made([WEIGHT], {WEIGHT: "1"}, {WEIGHT: "10.0"})
    assert (one.name, ten.name) == ("gradient_penalty.weight=1", "gradient_penalty.weight=10.0")
    assert one.settings == {WEIGHT: "1"}
    # Without the sweep's other files, it is the experiment that `ganlab run --param` would train.
    path = tmp_path / f"{one.name}.gin"
    path.write_text(one.text)
    assert config.load([path]) == config.load(["quickstart"], [f"{WEIGHT}=1"])


def test_a_setting_of_a_missing_part_makes_no_difference(made):
    names = [CONSTRAINTS, WEIGHT]
    _, found = made(names, *({CONSTRAINTS: part, WEIGHT: weight} for part in (GP, SN) for weight in ("0.1", "10")))
    assert [configuration.name for configuration in found] == [
        "constraints=gradient_penalty,gradient_penalty.weight=0.1",
        "constraints=gradient_penalty,gradient_penalty.weight=10",
        "constraints=spectral_norm",
        "constraints=spectral_norm",
    ]
    assert found[2] is found[3]
    assert found[2].settings == {CONSTRAINTS: SN}
    assert "gradient_penalty" not in found[2].text


def test_settings_of_parts_that_only_some_have_are_accepted(made):
    # The quickstart's base sets the penalty's weight; --param does, too.
    configurations, _ = made(
        [CONSTRAINTS], {CONSTRAINTS: SN}, {CONSTRAINTS: R1}, {CONSTRAINTS: GP}, params=[f"{WEIGHT}=3"]
    )
    check_used(configurations)


@pytest.mark.parametrize(
    ("params", "space", "message"),
    [
        ([f"{GAMMA}=3"], {CONSTRAINTS: PARTS}, f"In every configuration of the sweep, --param '{GAMMA}=3': {GAMMA} "),
        ([], {CONSTRAINTS: PARTS, GAMMA: Range(0.1, 1.0)}, f"every configuration of the sweep, setting '{GAMMA}=0.1'"),
        ([f"{WEIGHT}=3"], {WEIGHT: Choices(("1", "2"))}, f"--param '{WEIGHT}=3': {WEIGHT} = 3 has no effect: "),
        (
            [],
            {WEIGHT: Range(-5.0, 10.0)},
            f"setting '{WEIGHT}=-5.0': {WEIGHT} = -5.0 must be at least 0 and finite. Both ends of each range are",
        ),
        (
            ["experiment.ema_decay=0.9"],
            {"experiment.ema_half_life": Choices(("0.0", "10.0"))},
            "experiment.ema_decay = 0.9 and experiment.ema_half_life = 10.0 are two forms of one setting",
        ),
        ([], {WEIGHT: Choices(("1", "many"))}, f"setting '{WEIGHT}=many': "),
        # Wrong for one combination of several settings alone.
        (
            [],
            {"experiment.loss": Choices(("@losses.hinge()", "@losses.hing()")), WEIGHT: Choices(("1", "2"))},
            "Unknown component losses.hing. Did you mean 'losses.hinge'?",
        ),
    ],
)
def test_every_experiment_is_read_before_any_is_trained(params, space, message):
    configurations = Configurations(["quickstart"], params, list(space), known=())
    with pytest.raises(ConfigError) as raised:
        check(configurations, space)
    assert message in str(raised.value)


def test_folders_are_named_by_what_differs(made):
    space = {WEIGHT: Choices(("1", "2")), "experiment.steps": Choices(("20",))}
    assert varying(space) == [WEIGHT]
    _, (one,) = made(varying(space), {WEIGHT: "1", "experiment.steps": "20"})
    assert one.name == "gradient_penalty.weight=1"
    assert one.settings == {WEIGHT: "1", "experiment.steps": "20"}
    assert varying({WEIGHT: Choices(("1",))}) == [WEIGHT]


def test_every_value_of_a_large_space_is_tried(made, monkeypatch):
    monkeypatch.setattr("ganlab_sweep.configurations._CHECKED", 20)
    space = {
        "experiment.steps": Choices(tuple(map(str, range(1, 31)))),
        "experiment.batch_size": Choices(("32", "64", "-1")),
        WEIGHT: Range(1.0, 2.0),
    }
    with pytest.raises(ConfigError, match=r"experiment\.batch_size = -1"):
        check(Configurations(["quickstart"], [], list(space), known=()), space)
    space["experiment.batch_size"] = Choices(("32", "64"))
    configurations = Configurations(["quickstart"], [], list(space), known=())
    check(configurations, space)
    assert {each.settings["experiment.steps"] for each in configurations.made} == set(map(str, range(1, 31)))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (CONSTRAINTS, "[@constraints.r1(), @constraints.spectral_norm()]", "constraints=r1+spectral_norm"),
        (CONSTRAINTS, "[@small/gradient_penalty()]", "constraints=small.gradient_penalty"),
        (CONSTRAINTS, "[]", "constraints=none"),
        ("optimizers.adam.schedule", "'cosine'", "adam.schedule=cosine"),
        ("critic/optimizers.adam.beta_1", "-0.5", "critic.adam.beta_1=-0.5"),
        ("experiment.batch_size", "32", "batch_size=32"),
        ("datasets.digits.path", "'../a b/ü*?.npz'", "digits.path=..-a-b-.npz"),
    ],
)
def test_names_are_short_and_valid_for_folders(name, value, expected):
    assert Configurations([], [], [name], known=())._name({name: value}) == expected


def test_long_and_equal_names_get_a_digest(made):
    names = [f"constraints.a{'b' * 30}.weight{number}" for number in range(4)]
    configurations = Configurations([], [], names, known=())
    one = configurations._name(dict.fromkeys(names, "1.0"))
    two = configurations._name(dict.fromkeys(names, "2.0"))
    assert len(one) == len(two) == 80
    assert one != two
    assert one == Configurations([], [], names, known=())._name(dict.fromkeys(names, "1.0"))
    # Of two parts of one name, each setting says whose it is.
    both = ["critic/optimizers.adam.beta_1", "generator/optimizers.adam.beta_1", "optimizers.adam.beta_1"]
    name = Configurations([], [], both, known=())._name(dict.fromkeys(both, "0.5"))
    assert name == "critic.adam.beta_1=0.5,generator.adam.beta_1=0.5,adam.beta_1=0.5"
    # Texts that differ in what no folder's name can show.
    _, (first, second) = made(["experiment.jit"], {"experiment.jit": "'on'"}, {"experiment.jit": "'off'"})
    assert {first.name, second.name} == {"jit=on", "jit=off"}
    steps = "experiment.steps"
    _, (first, second) = made([steps], {steps: "1_0"}, {steps: "1_1"})
    assert (first.name, second.name) == ("steps=1_0", "steps=1_1")
