"""Schemas name what breaks a rule by path, value and rule; an invalid field of run.json counts as none."""

import json

import pytest
from ganlab_runs.listing import look_at

from ganlab.errors import RunError
from ganlab.run import Run
from ganlab.runs import create_run
from ganlab.support.paths import is_name
from ganlab.support.schema import FIGURE, PATH, WORD, InvalidError, fields, items, null_or, number, table, whole, word
from ganlab.support.strict_json import read_json

SCHEMA = fields(
    {"asked": fields({"seeds": items(whole())}, {"jobs": whole(1), "rate": number(0, 1), "way": word("up", "down")})},
    {"names": table(null_or(FIGURE), names=is_name), "path": PATH, "state": WORD},
)
SOUND = {"asked": {"seeds": [0, 2**31 - 1], "rate": 0.5, "way": "up", "more": {}}, "names": {"a": None, "b": "NaN"}}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ([], "holds a list; it must hold an object of fields"),
        ({}, "asked is missing"),
        ({"asked": None}, "asked = None must be an object of fields"),
        ({"asked": {}}, "asked.seeds is missing"),
        ({"asked": {"seeds": [0, True]}}, "asked.seeds[1] = True must be a whole number of at least 0"),
        ({"asked": {"seeds": [1.0]}}, "asked.seeds[0] = 1.0 must be a whole number of at least 0"),
        ({"asked": {"seeds": [2**31]}}, "asked.seeds[0] = 2147483648 must be below 2**31"),
        ({"asked": {"seeds": [], "jobs": 0}}, "asked.jobs = 0 must be a whole number of at least 1"),
        ({"asked": {"seeds": [], "rate": 2}}, "asked.rate = 2 must be a finite number from 0 to 1"),
        ({"asked": {"seeds": [], "rate": float("nan")}}, "asked.rate = nan must be a finite number from 0 to 1"),
        ({"asked": {"seeds": [], "way": ["up"]}}, "asked.way = ['up'] must be one of up, down"),
        ({**SOUND, "names": {"a": "much"}}, "names.a = 'much' must be a number or null"),
        ({**SOUND, "names": {"../a": 1}}, "names.<name> = '../a' must be a name that a file can have"),
        ({**SOUND, "names": {"x\x1b" * 99: "y" * 99}}, None),
        ({**SOUND, "path": "a\0"}, "path = 'a\\x00' must be a path"),
        ({**SOUND, "state": "x" * 201}, f"state = '{'x' * 59} must be a word"),
    ],
)
def test_a_value_that_breaks_a_rule_is_named(tmp_path, changed, message):
    (tmp_path / "x.json").write_text(json.dumps(changed))
    with pytest.raises(RunError) as raised:
        read_json(tmp_path, "x.json", SCHEMA, most=10_000, remedy="Restore it.")
    said = str(raised.value)
    assert said.isprintable()
    assert len(said) < len(str(tmp_path)) + 250
    if message:
        colon = "" if message.startswith("holds") else ":"
        assert said == f"{tmp_path}/x.json{colon} {message}. Restore it."


def test_sound_content_is_returned_with_fields_that_the_schema_does_not_know(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(SOUND))
    assert read_json(tmp_path, "x.json", SCHEMA, most=1000, remedy="") == SOUND


@pytest.mark.parametrize("data", [b"{", b"\xff", b"[" * 10_000, b" " * 2000, '{"asked": 1}'.encode("utf-16")])
def test_what_is_not_json_is_one_sentence(tmp_path, data):
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(RunError, match=r"x\.json is "):
        read_json(tmp_path, "x.json", SCHEMA, most=1000, remedy="Restore it.")


def test_a_path_of_long_names_is_shortened_and_costs_little():
    value = [["x"] * 1000]
    rule = items(items(whole()))
    for _ in range(40):
        value, rule = {"n" * 100_000: value}, table(rule)
    with pytest.raises(InvalidError) as raised:
        rule.check(value)
    assert len(str(raised.value)) < 40 * 62 + 100


RULES = {
    "step": [-1, 1.5, True, "1", None, 2**31],
    "replicas": [[2]],
    "status": [None, 3, "x" * 300],
    "chief": [1],
    "settings": [[], {"a": {"b": 1}}, {"a": None}],
    "metrics": [3, {"a": "much"}, {"a": [1]}, {"a": True}],
    "wall_seconds": [-1.0, float("inf"), 1e300, "1"],
    "warnings": ["no", [1]],
    "health": [{"a": 1}],
    "error": [3],
    "best": [{"step": 1}, {"metric": "a", "step": "b", "value": 1.0}],
    "timed_from": [{"step": 1, "seconds": None}],
    "metrics_step": ["x"],
    "sample_shape": [[], [8, 0], [8, True], [2**20, 2**20], [1] * 33, "8"],
    "label_frequencies": [[], [0.0], [-1.0, 2.0], [float("inf")], "1"],
    "resumed": ["no", [3], [{"step": 1, "changes": [1]}], [{}]],
    "forked_from": [{}, {"run": "a\0", "step": 1}],
    "started_from": [{"run": "a"}],
    "provenance": [
        [],
        {"started": 3},
        {"argv": "ganlab"},
        {"git": "abc"},
        {"plugins": []},
        {"plugins": {"a": "1.0"}},
        {"packages": {"a": 1}},
        {"code": {"constraints.mine": 1}},
        {"code": {"constraints.mine": {"a": [1]}}},
        {"data": 3},
    ],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in RULES.items() for value in values])
def test_an_invalid_field_of_run_json_counts_as_none_and_is_reported(tmp_path, field, value):
    create_run(tmp_path / "a", config="", operative="", info={"status": "completed", "step": 3})
    sound = {"status": "completed", "step": 3, "note": [1]}
    (tmp_path / "a" / "run.json").write_text(json.dumps({**sound, field: value}))
    run = Run(tmp_path / "a")
    sound.pop(field, None)
    assert run.info == sound
    with pytest.raises(RunError, match=rf"run\.json: {field}.* must be .*\. Restore the file|is missing"):
        run.check()
    assert field in look_at(tmp_path / "a").problem


def test_fields_that_ganlab_writes_are_valid(tmp_path):
    info = {
        "status": "interrupted",
        "signal": None,
        "error": None,
        "metrics": {"a": float("nan"), "b": -float("inf"), "c": 3},
        "metrics_step": None,
        "timed_from": {"step": 3, "seconds": 0.5},
        "best": None,
        "label_frequencies": [1, 2.5],
        "provenance": {"git": None, "plugins": {"a": {"distribution": None, "version": None, "status": "loaded"}}},
        "resumed": [{"step": 3, "changes": ["a: 1, and now 2"], "started": "2026-08-01"}],
    }
    run = create_run(tmp_path / "a", config="", operative="", info=info)
    run.check()
    assert str(run.info) == str(info)
