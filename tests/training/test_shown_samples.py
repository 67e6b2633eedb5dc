"""Samples that are neither images nor points, as their dataset shows them: in pictures, and in `ganlab sample`."""

import io
from collections import Counter

import numpy as np
import pytest
from ganlab_verify import lab
from PIL import Image
from scipy.spatial.distance import jensenshannon

import ganlab
from ganlab import component, pictures
from ganlab.engine import sampler, shown
from ganlab.lazy import tensorflow as tf

HOSTILE = "\x1b[31m<script>alert(1)</script>\u202e\nnext"


class Series(ganlab.Dataset):
    """Two values of a line."""

    sample_shape = (5,)

    def __init__(self, given=None):
        self.given = given

    def examples(self, numbers, seed):
        return tf.zeros([numbers.shape[0], 5])

    def show(self, x):
        return pictures.series(x) if self.given is None else self.given(x)


def test_series_are_drawn_as_lines_of_one_scale():
    """A rising diagonal, and a constant at half of its height, in 16 rows of 32 pixels."""
    x = np.array([np.linspace(0, 1, 4), np.full(4, 0.5)])
    drawn = pictures.series(x, height=16)
    assert drawn.shape == (2, 16, 32, 1)
    assert set(np.unique(drawn)) == {-1.0, 1.0}
    lowest = 15 - np.argmax(drawn[0, ::-1, :, 0] > 0, axis=0)
    np.testing.assert_allclose(lowest, 15 * (1 - np.arange(32) / 31), atol=1.0)
    assert [np.flatnonzero(column).tolist() for column in drawn[1, :, ::8, 0].T > 0] == [[8]] * 4
    both = pictures.series(np.stack([x[0], x[1]], axis=1)[None], height=16)[0]
    np.testing.assert_array_equal(both > 0, (drawn[0] > 0) | (drawn[1] > 0))


def test_series_take_values_that_are_not_finite():
    drawn = pictures.series(np.array([[np.nan, 1.0, np.inf, -np.inf]]), height=8)
    assert (drawn > 0).any(axis=1).all()


def test_a_page_of_texts_escapes_what_is_not_printable():
    page = pictures.page([HOSTILE, "plain"])
    assert page == pictures.page([r"\x1b[31m<script>alert(1)</script>\u202e\nnext", "plain"])
    assert page != pictures.page([r"\x1b[31m<script>alert(1)</script>\u202e\nnexT", "plain"])
    width, height = Image.open(io.BytesIO(pictures.page(["x" * 10_000, "\u4e2d"]))).size
    assert width < 200 * 14 + 20
    assert height < 100


@pytest.mark.parametrize(
    "given",
    [
        lambda x: "one text",
        lambda x: ["too few"],
        lambda x: [b"bytes"] * len(x),
        lambda x: np.zeros([len(x), 8, 8]),
        lambda x: np.zeros([len(x), 8, 8, 1], int),
        lambda x: np.zeros([len(x) + 1, 8, 8, 1]),
    ],
)
def test_anything_else_is_refused(given):
    with pytest.raises(ganlab.ContractError, match="from show for 3 samples; it must be images"):
        shown(Series(given), np.zeros([3, 5], np.float32))


def test_an_error_in_show_is_one_message():
    with pytest.raises(ganlab.PluginError, match="failed in show: ZeroDivisionError"):
        shown(Series(lambda x: 1 / 0), np.zeros([3, 5], np.float32))


def test_characters_are_what_they_show():
    dataset = component("datasets", "characters")()
    numbers = np.array([0, 1, 100, dataset.size - 1])
    x = dataset.examples(tf.constant(numbers), 0).numpy()
    assert x.shape == (4, *dataset.sample_shape)
    np.testing.assert_array_equal(x.sum(axis=-1), 1.0)
    assert dataset.show(x) == [dataset.sentences[i] for i in numbers]
    assert dataset.show(x[:1]) == ["a cat sees a cat"]
    assert len(set(dataset.sentences)) == dataset.size == 32 * 3 * 32


def test_divergences_are_those_of_counted_pieces():
    """scipy's distance of the frequencies of strings, squared, in bits."""
    dataset, evaluator = (component("datasets", "characters")(), component("evaluators", "ngrams")(examples=400))
    random = np.random.default_rng(0)
    real = dataset.examples(tf.range(400, dtype=tf.int64), 0).numpy()
    fake = np.where(random.random((200, 31, 1)) < 0.1, random.random((200, 31, 19)), real[:200]).astype(np.float32)
    found = evaluator.evaluate(lambda n, seed: fake, dataset, None)

    def counted(x, n):
        texts = ["".join(map(chr, row)) for row in np.argmax(x, axis=-1) + 65]
        pieces = [text[i : i + n] for text in texts for i in range(len(text) - n + 1)]
        return {piece: count / len(pieces) for piece, count in Counter(pieces).items()}

    for n in range(1, 5):
        p, q = counted(fake, n), counted(real, n)
        keys = sorted({*p, *q})
        expected = jensenshannon([p.get(k, 0) for k in keys], [q.get(k, 0) for k in keys], base=2) ** 2
        assert found[f"js{n}"] == pytest.approx(expected, abs=1e-9)
    assert 0 < found["js1"] < found["js4"] < 1
    assert evaluator.evaluate(lambda n, seed: real, dataset, None) == pytest.approx(dict.fromkeys(found, 0.0))


def test_divergences_of_what_is_no_text_are_refused():
    with pytest.raises(ganlab.IncompatibleError, match=r"counts up to 4 characters in a row, and the samples have"):
        component("evaluators", "ngrams")().evaluate(None, Series(), None)


@pytest.mark.slow
def test_a_character_model_learns_the_pieces_of_sentences(cpus):
    """Stated beforehand, of seed 1: divergences of 1, 2 and 4 characters below .02, .15 and .45 bits."""
    dataset = component("datasets", "characters")()
    architecture = component("architectures", "text_resnet")(channels=32, blocks=1)
    adam = component("optimizers", "adam")(learning_rate=1e-3, beta_1=0.5, beta_2=0.9)
    training = lab.Training(
        lab.experiment(
            dataset=dataset,
            architecture=architecture,
            loss=component("losses", "wasserstein")(),
            constraints=[component("constraints", "gradient_penalty")(weight=10.0)],
            critic_optimizer=adam,
            generator_optimizer=adam,
            batch_size=64,
            critic_steps=5,
            steps=800,
            seed=1,
        )
    ).train(800)
    sample = sampler(training.trainer.experiment, training.trainer.state)
    found = component("evaluators", "ngrams")().evaluate(sample, dataset, None)
    assert found["js1"] < 0.02
    assert found["js2"] < 0.15
    assert found["js4"] < 0.45
