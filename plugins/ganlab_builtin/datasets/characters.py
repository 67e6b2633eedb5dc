"""Short sentences of a small grammar as one-hot characters, for models of text."""

from __future__ import annotations

import functools
import itertools

import numpy as np

import ganlab
from ganlab.lazy import tensorflow as tf

_ARTICLES = ("a", "the")
_ADJECTIVES = ("", "big ", "red ", "old ")
_NOUNS = ("cat", "dog", "bird", "fox")
_VERBS = ("sees", "likes", "meets")
_END = "`"


@functools.cache
def _sentences() -> list[str]:
    nouns = [f"{a} {j}{n}" for a, j, n in itertools.product(_ARTICLES, _ADJECTIVES, _NOUNS)]
    return [" ".join(words) for words in itertools.product(nouns, _VERBS, nouns)]


class Characters(ganlab.Dataset):
    """The 3072 sentences "<noun> <verb> <noun>" of 12 words, one character a row, as one and zeros.

    A noun has an article and perhaps an adjective: "the old cat likes a dog". Sentences end in "`", as those of the
    character model of Gulrajani et al., "Improved training of Wasserstein GANs" (2017), up to 31 characters. A
    generator ends in a softmax over characters; the most likely one is shown.

    Attributes:
        alphabet: The characters by their number; the first ends a sentence.
        sentences: The sentences by their number.
    """

    def __init__(self) -> None:
        """Lists the sentences."""
        self.sentences = _sentences()
        self.alphabet = _END + "".join(sorted(set("".join(self.sentences))))
        length = max(map(len, self.sentences))
        self.size, self.sample_shape = len(self.sentences), (length, len(self.alphabet))
        self._numbers = np.array(
            [[self.alphabet.index(c) for c in text.ljust(length, _END)] for text in self.sentences], np.uint8
        )

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The sentences with these numbers, `(n, 31, 19)` float32."""
        del seed
        return tf.one_hot(tf.gather(tf.constant(self._numbers), numbers), len(self.alphabet))

    def show(self, x: np.ndarray) -> list[str]:
        """The most likely characters, without those that end a sentence."""
        symbols = np.asarray(list(self.alphabet))[np.argmax(x, axis=-1)]
        return ["".join(row).rstrip(_END) for row in symbols]
