"""`ganlab.verify`, as a notebook calls it."""

import pytest

import ganlab


@pytest.mark.slow
def test_verify_returns_a_row_for_each_check():
    (row,) = ganlab.verify("swiss_roll", checks=["gradients"], params=["architectures.mlp.width=8"])
    assert (row.check, row.status) == ("gradients", "passed")
    assert 0 < row.figure < row.limit


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checks": ["gradient"]}, "'gradient' is not a check. Did you mean 'gradients'"),
        ({"gin": []}, "Missing experiment file"),
        ({"iterations": 1}, "iterations = 1 must be at least 2"),
        ({"replicas": [0]}, "from 1"),
        ({"gin": "swiss_rol"}, "swiss_roll"),
    ],
)
def test_a_mistake_is_found_before_any_process_starts(monkeypatch, arguments, message):
    monkeypatch.setattr("ganlab_verify.verifying.run", lambda *_: pytest.fail("a check was started"))
    with pytest.raises(ganlab.GanlabError, match=message):
        ganlab.verify(**{"gin": "swiss_roll", **arguments})
