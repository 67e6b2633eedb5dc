"""Runs whose dataset shows texts: the picture of training, and what `ganlab sample` writes."""

import ganlab_export
import numpy as np
import pytest
from ganlab_export.pictures import texts as written
from short_runs import BASE

import ganlab as lab

TEXTS = f"""{BASE}
experiment.dataset = @datasets.characters()
experiment.architecture = @architectures.text_resnet()
experiment.evaluators = [@evaluators.ngrams()]
architectures.text_resnet.channels = 4
architectures.text_resnet.blocks = 1
architectures.text_resnet.latent_dim = 4
evaluators.ngrams.samples = 64
evaluators.ngrams.examples = 64
"""
HOSTILE = "\x1b]0;owned\x07\u202e\nsecond"


@pytest.fixture(scope="module")
def texts(trained):
    """A run on one-hot characters."""
    return trained(TEXTS)


@pytest.mark.slow
def test_pictures_and_texts_are_those_of_the_dataset(ganlab, texts, tmp_path):
    ganlab("sample", texts, "-o", "page.png")
    assert (tmp_path / "page.png").read_bytes() == (texts / "samples" / "step-00000004.png").read_bytes()
    assert ganlab("sample", texts, "-o", "page.txt", "-n", 5).endswith("5 samples of seed 3 at step 4.\n")
    ganlab("sample", texts, "-o", "page.npz", "-n", 5)
    samples = lab.component("datasets", "characters")().show(np.load(tmp_path / "page.npz")["samples"])
    assert (tmp_path / "page.txt").read_text().split("\n") == [*samples, ""]
    assert set(lab.Run(texts).info["evaluation"]) == {f"ngrams/js{n}" for n in range(1, 5)}


def test_hostile_texts_are_escaped(texts, monkeypatch):
    monkeypatch.setattr(type(lab.component("datasets", "characters")()), "show", lambda self, x: [HOSTILE] * len(x))
    drawn = ganlab_export.draw(lab.Run(texts), 2)
    assert written(lab.Run(texts), drawn) == 2 * "\\x1b]0;owned\\x07\\u202e\\nsecond\n"


def test_no_text_is_refused(ganlab, points):
    assert "shows its samples as no text" in ganlab("sample", points, "-o", "page.txt", code=2)
