"""Passports against numpy in float64, and what strangers' files and programs may be."""

import json
import re
import struct
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from ganlab_passport import checking, command, passport, program, subjects, tensors
from ganlab_verify import maker

from ganlab.commands import plugins
from ganlab.errors import GanlabError, RunError


def subject(selector):
    return subjects.Subject(selector, maker(plugins.discover().component(*selector.split(".")), {}), ())


@pytest.fixture(scope="module")
def known():
    of = subject("constraints.gradient_penalty")
    return passport.make(of, [case for case in of.cases() if case.name in ("vectors-3", "vectors-7")])


def by_hand(given, weights, cost):
    """The values of a penalty of the slope of the passport's critic of vectors, in numpy."""
    a = given["random/0"].astype(np.float64)[:, None]
    x = a * given["real"] + (1 - a) * given["fake"]
    h = np.tanh(x @ weights["critic/hidden/kernel"] + weights["critic/hidden/bias"])
    g = ((1 - h**2) * weights["critic/score/kernel"][:, 0]) @ weights["critic/hidden/kernel"].T
    return cost(np.sqrt((g**2).sum(1) + 1e-12))


def answered(given, cost):
    """The answers of a program that computes it so, its gradient from differences."""
    weights = {n: x.astype(np.float64) for n, x in given.items() if n.startswith("critic/")}
    answers = {"reduced": np.mean(by_hand(given, weights, cost)), "value": by_hand(given, weights, cost)}
    for name, x in weights.items():
        answers[f"gradient/{name}"] = gradient = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            moved = [by_hand(given, weights | {name: x + h * _unit(x, at)}, cost).mean() for h in (1e-5, -1e-5)]
            gradient[at] = (moved[0] - moved[1]) / 2e-5
    return answers


def _unit(x, at):
    return np.eye(1, x.size, np.ravel_multi_index(at, x.shape)).reshape(x.shape)


@pytest.mark.parametrize(
    ("cost", "named"),
    [
        (lambda s: 10 * (s - 1) ** 2, []),
        (lambda s: 10 * (s**2 - 1) ** 2, ["squared norm in the norm's place"]),
        (lambda s: 10 * np.maximum(s - 1, 0) ** 2, ["one-sided"]),
        (lambda s: 37 * (s - 1) ** 2, ["a factor of 3.7 in every case"]),
        pytest.param(lambda s: 10 * np.abs(s - 1) ** 1.5, None, marks=pytest.mark.slow),
    ],
)
def test_a_program_in_numpy(known, cost, named):
    answers = {f"{c}/{n}": x for c, given in known.inputs.items() for n, x in answered(given, cost).items()}
    verdict = checking.check(known, answers)
    assert list(verdict.conventions) == (named or [])
    assert verdict.status == ("passed" if named == [] else "failed")
    assert bool(verdict.notes) == (named is None)
    if named == []:
        assert verdict.error < 1e-8  # of differences; the values themselves agree to rounding
        exact = [np.abs(known.answers[c]["float64"]["value"] - answers[f"{c}/value"]).max() for c in known.inputs]
        assert max(exact) < 1e-12


def test_largest_singular_values_are_those_of_a_decomposition():
    of, answers = subject("constraints.spectral_regularization"), {"images-3/reduced": 0.0}
    made = passport.make(of, [case for case in of.cases() if case.name == "images-3"])
    for name, x in ((n, x.astype(np.float64)) for n, x in made.inputs["images-3"].items() if n.startswith("critic/")):
        u, s, v = np.linalg.svd(x.reshape(-1, x.shape[-1]), full_matrices=False)
        s = s * name.endswith("kernel")
        answers["images-3/reduced"] += 0.005 * s[0] ** 2
        answers[f"images-3/gradient/{name}"] = (0.01 * s[0] * np.outer(u[:, 0], v[0])).reshape(x.shape)
    verdict = checking.check(made, answers)
    assert (verdict.status, verdict.right) == ("passed", ["images-3"])
    answers["images-3/reduced"] += 1.0
    assert checking.check(made, answers).right == []


def test_both_formats_say_the_same(known):
    content, data = json.loads(known.encoded(".json")), known.encoded(".safetensors")
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert {n: json.loads(x) for n, x in header.pop("__metadata__").items()} == content["metadata"]
    assert header.keys() == content["tensors"].keys()
    for name, entry in header.items():
        start, end = (8 + length + n for n in entry["data_offsets"])
        dtype = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}[entry["dtype"]]
        np.testing.assert_array_equal(np.frombuffer(data[start:end], dtype), np.ravel(content["tensors"][name]))
    for ending in tensors.ENDINGS:
        assert tensors.decode(known.encoded(ending), "it")[0].keys() == header.keys()


def _safetensors(header, body=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[1]",
        b'{"tensors": {"a": [[1], [2, 3]]}}',
        b'{"tensors": {"a": "text"}}',
        b"[" * 100_000,
        struct.pack("<Q", 1 << 40) + b"{}",
        _safetensors({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}}),
        _safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}}),
        _safetensors({"a": {"dtype": "F8", "shape": [], "data_offsets": [0, 1]}}),
        _safetensors({"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, b"1234"),
    ],
)
def test_hostile_answers_end_in_one_sentence(data):
    with pytest.raises(RunError, match="holds no arrays that can be read"):
        tensors.decode(data, "It")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import time; time.sleep(60)", "has not ended after 1.5 s"),
        ("print('x' * (65 << 20), flush=True); import time; time.sleep(60)", "printed more than 64 MiB"),
        ("raise SystemExit('no torch')", "exit status 1: no torch"),
        ("print('hello')", "holds no arrays"),
    ],
)
def test_a_program_is_bounded(code, said):
    line = f'{sys.executable} -S -c "{code}"'
    with pytest.raises(RunError, match=re.escape(said)):
        program.answers(line, b"{}", ".json", seconds=1.5 if "after" in said else 20)


@pytest.mark.parametrize("selector", ["constraints.spectral_norm", "datasets.digits", "constraints.latent_step"])
def test_what_has_no_value_has_no_passport(selector):
    with pytest.raises(GanlabError, match=f"{selector} must be a loss, or a constraint with a penalty"):
        subjects.Subject(selector, plugins.discover().component(*selector.split(".")).factory, ()).cases()


def test_a_passport_of_another_component_does_not_make_it():
    with pytest.raises(GanlabError, match="must be a loss"):
        subjects.Subject("strategies.tpu", lambda: pytest.fail("It is made."), ()).cases()


@pytest.mark.slow
def test_a_file_is_written_and_checked_and_not_believed(tmp_path):
    file, call = tmp_path / "gp.json", CliRunner().invoke
    settings = ["constraints.gradient_penalty", "--param", "weight=3", "-o", str(file)]
    assert call(command.passport, settings, catch_exceptions=False).exit_code == 0
    content, own = json.loads(file.read_text()), tmp_path / "own.json"
    kept = {n.replace("/float64", ""): x for n, x in content["tensors"].items() if "/float64/" in n}
    own.write_text(json.dumps({"tensors": kept}))
    right = call(command.passport, ["check", str(file), "--command", f"cat {own}"], catch_exceptions=False)
    assert (right.exit_code, right.output[:6]) == (0, "Right:")
    own.write_text(json.dumps({**content, "metadata": {**content["metadata"], "component": "constraints.mine"}}))
    refused = call(command.passport, ["check", str(own), "--command", "true"])
    assert "Unknown component constraints.mine" in str(refused.exception)
    assert "A passport of a plugin's component needs the plugin: --plugin-file." in str(refused.exception)
    content["tensors"]["vectors-3/float64/reduced"] *= 2
    file.write_text(json.dumps(content))
    with pytest.raises(RunError, match="vectors-3/float64/reduced is missing or differs"):
        call(command.passport, ["check", str(file), "--command", "true"], catch_exceptions=False, standalone_mode=False)


# By component, what it takes that the networks of passports do not have.
REFUSED = {
    "constraints.augmentation_consistency": "no default",
    "constraints.transport_cost": "needs latent vectors of",
    "losses.ali": "encoder",
    "losses.cycle": "source_critic",
    "losses.info": "category",
    "losses.neural_ot": "failed in generator",
    "losses.self_supervised": "square images",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constraints", "losses"])
def test_every_component_with_a_value_has_a_passport(kind):
    for _, name in (key for key in plugins.discover().components if key[0] == kind):
        of = subject(f"{kind}.{name}")
        made, refusal = _made(of)
        if made is None:
            assert REFUSED.get(of.selector, "must be a loss, or a constraint with a penalty") in refusal
            continue
        assert of.selector not in REFUSED
        for answers in made.answers.values():
            for n, x in answers["float64"].items():
                assert np.isfinite(x).all()
                np.testing.assert_allclose(answers["float32"][n], x, 2e-3, 2e-4, err_msg=f"{of.selector} {n}")


def _made(of):
    """The passport of one case of each side, or why there is none."""
    try:
        cases = {case.side: case for case in of.cases() if (case.batch == 3 and not case.flat) or case.labels}
        return passport.make(of, list(cases.values())), ""
    except GanlabError as error:
        return None, str(error)
