"""`ganlab plan`."""

import pytest
from ganlab_verify.tpu import environment


@pytest.mark.parametrize("given", [["h100,v5x:2x2"], ["v5x:2x2", "--topology", "h100"]], ids=" ".join)
def test_an_unknown_topology_is_named_with_the_known_ones(ganlab, given):
    result = ganlab("plan", "--gin", "swiss_roll", "--topology", *given)
    assert result.exit_code == 2
    assert "Unknown topology 'v5x:2x2'" in result.stderr
    assert "v5e" in result.stderr
    assert "rtx4090" in result.stderr


def test_a_tpu_needs_its_compiler(ganlab, monkeypatch):
    monkeypatch.setattr(environment, "installed", lambda: False)
    result = ganlab("plan", "--gin", "swiss_roll", "--topology", "v5e:2x2")
    assert result.exit_code == 2
    assert "which is not installed. Install it once with --install" in result.stderr


def test_a_mistake_in_the_experiment_is_one_message(ganlab, here, minimal):
    (here / "exp.gin").write_text(minimal)
    result = ganlab("plan", "--gin", "exp.gin", "--topology", "cpu", "--param", "experiment.stepz=2")
    assert result.exit_code == 2
    assert "Did you mean 'steps'?" in result.stderr
