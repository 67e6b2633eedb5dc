"""The games of docs/games.md under each check of `ganlab verify`: they pass, or the part that refuses it is named.

All checks of all games take long, the TPU's above all, so that they run only where GANLAB_VERIFY_GAMES is set:

    GANLAB_VERIFY_GAMES=1 pytest -m "slow or tpu_check" tests/experiments/test_games_verified.py
"""

import os
import re
from pathlib import Path

import pytest
from ganlab_verify import CHECKS, Source, graph, microbatches, replicas, resume, tpu, truth

PAGE = Path(__file__).parents[2] / "docs" / "games.md"
# What makes each game small, beside a batch of eight: the units of its networks, and updates that repeat others.
SMALL = {
    "ali": ("architectures.ali.width=8",),
    "infogan": ("architectures.mlp.width=8",),
    "cyclegan": ("architectures.cyclegan.width=8", "architectures.cyclegan.depth=1"),
    "pix2pix": ("architectures.unet.channels=4", "architectures.unet.depth=2", "datasets.edges.side=8"),
    "neural_ot": ("architectures.mlp.width=8", "experiment.generator_steps=2"),
    "conditions": ("architectures.mlp.width=8",),
    "ssgan": ("architectures.dcgan.channels=4",),
    "diffusion_gan": ("architectures.mlp.width=8",),
    "characters": ("architectures.text_resnet.channels=4", "experiment.critic_steps=2"),
    "sines": ("architectures.mlp.width=8",),
    "unrolled": ("architectures.mlp.width=8", "losses.unrolled.steps=2"),
    "consensus": ("architectures.mlp.width=8", "experiment.critic_steps=2"),
    "extragradient": ("architectures.mlp.width=8",),
    "sinkhorn": ("architectures.mlp.width=8",),
    "sliced": ("architectures.mlp.width=8",),
    "max_sliced": ("architectures.mlp.width=8",),
    "first_wgan": ("architectures.mlp.width=8",),
    "stopping_rule": ("architectures.mlp.width=8",),
    "growing": ("architectures.growing.channels=4", "architectures.growing.doublings=1"),
}
# The checks that a game does not pass, and the beginning of the sentence that refuses them.
DIFFER = "A TPU, which compiles all of an iteration, needs the same updates in each step, and "
WHOLE = " takes statistics of the whole batch, which its parts do not know."
REFUSED = {
    ("sinkhorn", "microbatches"): f"The loss sinkhorn{WHOLE}",
    ("sliced", "microbatches"): f"The loss sliced{WHOLE}",
    ("max_sliced", "microbatches"): f"The loss max_sliced{WHOLE}",
    ("unrolled", "microbatches"): f"The loss unrolled{WHOLE}",
    ("consensus", "microbatches"): f"The loss consensus{WHOLE}",
    ("ssgan", "microbatches"): f"The generator's layer 'normalization_1' (BatchNormalization){WHOLE}",
    ("first_wgan", "tpu"): DIFFER + "experiment.critic_steps follows a schedule",
    ("stopping_rule", "tpu"): DIFFER + "the loss decides when the generator moves",
}


def small(name):
    return Source((f"methods/{name}",), ("experiment.batch_size=8", *SMALL[name]))


def rows(source, folder):
    settings = {"iterations": 2}
    for optimizers, counts in (("sgd", (1, 2, 4)), ("own", (2,))):
        yield replicas.check(source, replicas=counts, optimizers=optimizers, **settings)
    yield graph.check(source, **settings)
    yield truth.check(source)
    yield microbatches.check(source, **settings)
    settings |= {"replicas": 2, "folder": str(folder)}
    yield resume.resume(source, **settings, **resume.interrupt(source, **settings))


def test_each_game_of_the_page_is_here():
    assert re.findall(r"^\|[^|]+\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE) == list(SMALL)


def held(name, row):
    sentence = REFUSED.get((name, row.check))
    assert row.status == ("refused" if sentence else "passed"), (row.check, row.detail)
    assert row.detail.startswith(sentence or ""), row.detail
    return row.check


asked = pytest.mark.skipif(not os.environ.get("GANLAB_VERIFY_GAMES"), reason="GANLAB_VERIFY_GAMES is not set")


@asked
@pytest.mark.slow
@pytest.mark.usefixtures("fresh_plugins", "cpus")
@pytest.mark.parametrize("name", SMALL)
def test_each_check_passes_or_is_refused_by_name(name, tmp_path):
    checks = {held(name, row) for row in rows(small(name), tmp_path)}
    assert checks == {*CHECKS} - {"tpu"}


@asked
@pytest.mark.tpu_check
@pytest.mark.parametrize("name", SMALL)
def test_each_game_compiles_for_a_tpu_or_is_refused_by_name(name):
    held(name, tpu.check(small(name), optimize=False))
