"""Checks of devices run in processes that may hang, die or print anything; and find what is wrong."""

import sys
import time

import pytest
import tensorflow as tf
from ganlab_devices import examining, probe
from ganlab_devices.children import answers

# A program that answers checks as they are named: by a sleep, a signal, an exit, rubbish.
PROGRAM = f"""
import json, os, signal, sys, time
for name in sys.argv[1:]:
    if name == "hangs": time.sleep(60)
    if name == "dies":
        print("F0000 cudnn.cc: Check failed", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "ends": print("libcuda.so is not here"); sys.exit(3)
    if name == "closes": os.close(1); os.close(2); time.sleep(60)
    if name == "garbled": print("{probe.MARK}[not json", flush=True); continue
    if name == "deep":
        print("{probe.MARK}" + "[" * 60000, flush=True)
        continue
    if name == "other": print('{probe.MARK}{{"check": "hangs"}}', flush=True); continue
    if name == "fails":
        print('{probe.MARK}{{"check": "fails", "failed": "InternalError: no"}}', flush=True)
        continue
    if name == "noise": sys.stdout.buffer.write(b"\\xff\\x00 noise\\n" * 5000 + b"x" * 200000 + b"\\n")
    print("\\n{probe.MARK}" + json.dumps({{"check": name, "process": os.getpid()}}), flush=True)
"""


def ask(*checks, seconds=20.0):
    return dict(answers([sys.executable, "-c", PROGRAM], checks, lambda check: 0.5 if check == "hangs" else seconds))


def test_answers_come_from_one_process_whatever_else_it_prints():
    found = ask("one", "noise", "two")
    assert list(found) == ["one", "noise", "two"]
    assert len({answer["process"] for answer in found.values()}) == 1


@pytest.mark.parametrize(
    ("check", "text"),
    [
        ("hangs", "no answer within 0.5 s"),
        ("dies", "it died of SIGSEGV, and printed last: F0000 cudnn.cc: Check failed"),
        ("ends", "it ended with exit status 3 and no answer, and printed last: libcuda.so is not here"),
        ("garbled", f"an answer that cannot be read: '{probe.MARK}[not json"),
        ("deep", f"an answer that cannot be read: '{probe.MARK}[[["),
        ("other", "an answer that cannot be read: "),
        ("fails", "InternalError: no"),
    ],
)
def test_a_failure_is_that_checks_alone_and_the_rest_gets_a_new_process(check, text):
    found = ask("one", check, "two")
    assert found[check].startswith(text)
    assert found["two"]["process"] != found["one"]["process"]


def test_a_process_that_only_closes_its_output_is_ended(monkeypatch):
    monkeypatch.setattr("ganlab_devices.children._KILL_SECONDS", 0.2)
    begun = time.monotonic()
    assert ask("closes")["closes"] == "it closed its output"
    assert time.monotonic() - begun < 10


def test_a_program_that_cannot_be_started_is_a_failure():
    found = dict(answers(["no-such-program"], ["one"], lambda check: 20.0))
    assert found["one"].startswith(
        "it ended with exit status 127 and no answer, and printed last: no-such-program cannot"
    )


@pytest.mark.parametrize("check", ["product", "convolution", "xla"])
def test_numbers_are_held_against_float64(check):
    assert probe.CHECKS[check]()["off"] < 1e-6


@pytest.mark.parametrize("check", ["product", "convolution"])
def test_a_rounded_product_is_found(monkeypatch, check):
    place, name = (tf.nn, "conv2d") if check == "convolution" else (tf, "matmul")
    right = getattr(place, name)

    def rounded(x, y, *rest):
        cut = tf.bitcast(
            tf.bitwise.bitwise_and(tf.bitcast(x, tf.uint32), tf.constant(0xFFFFE000, tf.uint32)), tf.float32
        )
        return right(cut, y, *rest)

    monkeypatch.setattr(place, name, rounded)
    # Cut to TensorFloat-32's 10 bits, numbers lose up to 2^-10 of themselves.
    assert 1e-4 < probe.CHECKS[check]()["off"] < 1e-3


def test_a_product_that_is_not_a_number_is_found(monkeypatch):
    monkeypatch.setattr(tf, "matmul", lambda x, y: tf.fill([256, 384], float("nan")))
    assert probe.product()["off"] > 1


def test_nothing_is_asked_of_a_gpu_where_there_is_none(monkeypatch):
    asked = []
    reply = {"devices": ["CPU:0"], "backend": "tensorflow", "version": tf.__version__, "build": {}, "cards": []}

    def answer(checks):
        asked.append(checks)
        return iter([(check, reply) for check in checks])

    monkeypatch.setattr(examining, "_ask", answer)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert list(examining.examine()) == [("devices", "ok", "CPU:0"), ("GPU", "ok", "none")]
    assert asked == [["devices"]]


def test_every_check_of_a_gpu_has_a_line(monkeypatch):
    card = {"name": "NVIDIA A100", "capability": [8, 0]}
    reply = {"devices": ["CPU:0", "GPU:0"], "backend": "tensorflow", "version": tf.__version__, "build": {}}
    reply["cards"] = [card]
    monkeypatch.setattr(
        examining,
        "_ask",
        lambda checks: iter([(c, reply if c == "devices" else "no answer within 2 s") for c in checks]),
    )
    rows = list(examining.examine())
    assert [row[0] for row in rows[:2]] == ["devices", "GPU:0"]
    titles = ["CUDA", "matrix product", "convolution", "XLA", "TensorFloat-32", "determinism"]
    assert [row[0] for row in rows[2:]] == titles
    assert {row[1] for row in rows[2:]} == {"broken"}


@pytest.mark.slow
def test_all_checks_run_on_a_cpu_in_their_own_process():
    found = dict(examining._ask(list(probe.CHECKS)))
    assert found["devices"]["devices"] == ["CPU:0"]
    assert found["devices"]["build"]["cuda_version"].startswith("12")
    assert found["determinism"] == {"check": "determinism", "times": 5, "different": 1}
    assert found["tensorfloat32"]["error"] < 1e-6
    assert max(found[check]["off"] for check in ("product", "convolution", "xla")) < 1e-6
