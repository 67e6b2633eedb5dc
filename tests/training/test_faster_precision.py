"""A run in float32 says once that its GPU has TensorFloat-32."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from ganlab.training.graph import arithmetic

HINT = "This GPU has TensorFloat-32: experiment.precision = 'tensorfloat32' multiplies faster"
GPU, CPU = "/job:localhost/replica:0/task:0/device:GPU:0", "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.mark.parametrize(
    ("precision", "device", "capabilities", "said"),
    [
        ("float32", GPU, [(8, 0)], True),
        ("float32", GPU, [(8, 9), (12, 0)], True),
        ("float32", GPU, [(7, 5)], False),
        ("float32", GPU, [(9, 0), (6, 0)], False),
        ("float32", GPU, [None], False),  # not NVIDIA's
        ("float32", CPU, [(9, 0)], False),
        ("tensorfloat32", GPU, [(9, 0)], False),
        ("mixed_bfloat16", GPU, [(9, 0)], False),
    ],
)
def test_only_float32_on_a_card_that_has_it(monkeypatch, precision, device, capabilities, said):
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=(device,)))
    cards = {f"card {i}": {"compute_capability": c} if c else {} for i, c in enumerate(capabilities)}
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: list(cards))
    monkeypatch.setattr(tf.config.experimental, "get_device_details", cards.__getitem__)
    hint = arithmetic.faster_precision(SimpleNamespace(precision=precision, strategy=strategy))
    assert hint.startswith(HINT) == said
    assert bool(hint) == said


def test_a_new_run_says_it_once_and_a_resumed_one_does_not(brief, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("ganlab.training.session.faster_precision", lambda experiment: f"{HINT}.")
    brief.train(tmp_path / "run", console=True, stop_at=2)
    assert capsys.readouterr().err.count(HINT) == 1
    brief.train(tmp_path / "run", console=True, resume=True)
    assert HINT not in capsys.readouterr().err
