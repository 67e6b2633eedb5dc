"""`ganlab certify`: bounds of a run's critic from above and from below."""

import json

import pytest
from command_lines import command, invoke
from critics import RUN
from ganlab_certify.rungs import RUNGS

import ganlab


@pytest.fixture(scope="module")
def run(trained):
    return trained(RUN)


def certified(run, *options):
    return command("certify", run, "--seconds", "5", *options)


@pytest.mark.slow
def test_every_rung_is_above_the_attack_and_tighter_than_the_one_before(run):
    found = json.loads(certified(run, "--json"))
    rungs = {rung["rung"]: rung["bound"] for rung in found["rungs"]}
    assert list(rungs) == list(RUNGS)
    assert 0 < rungs["exact"] * (1 - 1e-5) <= found["lower"] <= rungs["exact"] * 1.0001
    assert rungs["exact"] < rungs["semidefinite"] <= rungs["averaged"] < rungs["products"]
    assert rungs["box"] <= rungs["semidefinite"] * 1.001
    assert found["upper"] == rungs["exact"]
    assert "rounding" not in found  # of float32


def test_the_table_has_a_row_for_each(run):
    lines = certified(run, "--rung", "products", "--rung", "exact").splitlines()
    assert lines[0].endswith("step 2: the critic's Lipschitz constant")
    assert [line.split()[0] for line in lines[2:]] == ["rung", "attacked", "products", "exact"]


def test_from_python(run):
    found = ganlab.Run(run).certify(rungs=["averaged"], seconds=5)
    assert [rung.name for rung in found.rungs] == ["averaged"]
    assert found.upper == found.rungs[0].bound >= found.lower


@pytest.mark.slow
def test_a_critic_whose_function_a_constraint_changes_is_attacked_alone(trained):
    run = trained(RUN + "experiment.constraints = [@constraints.gradient_normalization()]\n")
    found = json.loads(certified(run, "--json"))
    assert found["upper"] is None
    assert found["lower"] > 0
    assert found["rungs"][0]["note"].startswith("Constraint gradient_normalization changes the critic's function")


@pytest.mark.slow
def test_a_critic_of_mixed_precision_is_bounded_as_in_float32(trained):
    run = trained(RUN + "experiment.precision = 'mixed_bfloat16'\n")
    found = json.loads(certified(run, "--json"))
    assert 0.9 * found["upper"] <= found["lower"] <= found["upper"] * 1.0001
    assert 0 < found["rounding"]["error"] < found["rounding"]["radius"]
    assert "apart, the bound grows by the factor " in certified(run, "--rung", "products").replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--box", "5", "-5"], "Without --distance --box has no effect. Add --distance, or leave out --box."),
        (["--samples", "17", "--confidence", "0.95"], "leave out --samples and --confidence."),
    ],
)
def test_options_of_the_distance_are_refused_without_it(run, options, message):
    assert message in " ".join(command("certify", run, *options, code=2).split())


@pytest.mark.slow
def test_a_certificate_that_was_asked_for_and_does_not_suit_the_critic_is_a_failure(trained):
    wide = trained(RUN.replace("gaussian_ring", "digits").replace("width = 6", "width = 65"))
    options = ["certify", wide, "--seconds", "1", "--json", "--rung", "exact"]
    result = invoke(*options)
    assert result.exit_code == 1, result.output
    assert json.loads(result.stdout)["rungs"][0]["bound"] is None
    assert "no certificate that --rung asks for suits this critic. exact: It has 130 units" in result.stderr
    command(*options, "--rung", "products")


def test_an_unknown_rung_is_one_line(run):
    with pytest.raises(ganlab.ConfigError, match="There is no certificate 'magic'"):
        ganlab.Run(run).certify(rungs=["magic"], seconds=1)
    assert "'magic' is not one of 'products'" in command("certify", run, "--rung", "magic", code=2)
