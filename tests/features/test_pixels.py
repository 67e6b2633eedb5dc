import numpy as np
from labelled import Images

import ganlab


def test_pixels_are_the_examples_in_a_row():
    pixels, x = ganlab.component("features", "pixels")(), np.arange(24.0).reshape(2, 3, 4, 1)
    pixels.prepare(Images())
    np.testing.assert_array_equal(pixels.embed(x), np.arange(24.0).reshape(2, 12))
    assert pixels.probabilities(x) is None
