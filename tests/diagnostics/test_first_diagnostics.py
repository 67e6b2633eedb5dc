"""Each first-party diagnostic on critics whose figures are known by hand."""

import io
import types
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from views import Given, component, layer

import ganlab
from ganlab.plugins import manager as plugins

RANDOM = np.random.default_rng(0)


def diagnostic(name, **arguments):
    return component("diagnostics", name, **arguments)


def decoded(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def near(pixels, colour):
    return (np.abs(pixels - colour) < 60).all(axis=-1)


BLUE, ORANGE = (31, 95, 168), (232, 135, 30)


# Gradient norms


def share(norms, weights):
    """One real and one generated example; gradients by activations have these norms, and twice these norms."""
    names = [f"layer_{i}" for i in range(len(norms))]
    return ganlab.LossGradients(
        weights={
            f"{n}/{part}": np.float32([w, 0])
            for n, w in zip(names, weights, strict=True)
            for part in ("kernel", "bias")
        },
        activations={n: np.float32([[0.6 * g, 0.8 * g], [0, 2 * g]]) for n, g in zip(names, norms, strict=True)},
    )


def deep(shares):
    names = [f"layer_{i}" for i in range(len(shares[0].activations))]
    weights = {f"{name}/kernel": np.zeros((2, 1)) for name in names} | {f"{name}/bias": np.zeros(2) for name in names}
    layers = [entry for name in names for entry in (layer(name), layer(f"{name}_relu", "Activation", "relu"))]
    return Given(layers=tuple(layers), weights=weights, shares=shares, replicas=len(shares))


def test_gradient_norms_are_means_over_examples_and_replicas():
    gradients = [share([1.0, 10.0, 100.0], [3.0, 3.0, 3.0]), share([3.0, 30.0, 300.0], [-3.0, 3.0, 0.0])]
    found = diagnostic("gradient_norms").look(deep(gradients))
    # (1 + 2) / 2 and (3 + 6) / 2, and their mean.
    assert found.replicas["activations/layer_0"] == pytest.approx([1.5, 4.5])
    assert found.figures["activations/layer_0"] == pytest.approx(3.0)
    assert found.figures["activations/layer_2"] == pytest.approx(300.0)
    # The norm of the mean of the replicas' gradients, not the mean of the norms; kernel and bias together.
    assert found.figures["weights/layer_0"] == 0.0
    assert found.figures["weights/layer_1"] == pytest.approx(3 * np.sqrt(2))
    assert found.figures["weights/layer_2"] == pytest.approx(1.5 * np.sqrt(2))
    assert found.replicas["weights/layer_2"] == pytest.approx([3 * np.sqrt(2), 0.0])
    assert found.figures["decades_per_layer"] == pytest.approx(1.0)
    assert found.replicas["decades_per_layer"] == pytest.approx([1.0, 1.0])
    assert not any("relu" in name for name in found.figures)


@pytest.mark.parametrize(
    ("base", "layers", "said"),
    [
        (2.0, 4, None),  # 0.9 decades in all
        (9.9, 3, None),  # just under two
        (10.0, 4, "by a factor of 10 a layer: they vanish: the first layers hardly learn"),
        (0.1, 4, "by a factor of 10 a layer: they explode: the first layers learn by leaps"),
    ],
)
def test_gradients_that_vanish_or_explode_are_named(base, layers, said):
    norms = 0.01 * base ** np.arange(layers)
    gradient_norms = diagnostic("gradient_norms")
    complaint = gradient_norms.diagnose(gradient_norms.look(deep([share(norms, np.ones(layers))])).figures)
    assert (complaint is None) if said is None else (said in complaint and "gradient_penalty()]" in complaint)


def test_gradients_that_are_zero_count_as_the_smallest_float():
    found = diagnostic("gradient_norms").look(deep([share([0.0, 1.0], [0.0, 0.0])]))
    assert found.figures["decades_per_layer"] == pytest.approx(-np.log10(1.17549435e-38) + np.log10(1.5), rel=1e-6)


def test_the_picture_over_depth_has_both_curves():
    found = diagnostic("gradient_norms").look(deep([share([1, 10, 100], [1, 1, 1])] * 2))
    pixels = decoded(found.pictures["depth"])
    assert pixels.shape == (450, 700, 3)
    for colour in (BLUE, ORANGE):
        assert near(pixels, colour).sum() > 500
    # On a log scale an exponential is a straight line: its middle mark lies halfway up.
    rows = {x: np.flatnonzero(near(pixels[60:400, x], BLUE)).mean() for x in (104, 378, 652)}
    assert rows[378] == pytest.approx((rows[104] + rows[652]) / 2, abs=3)
    assert rows[104] > rows[652] + 100


def test_a_critic_without_kernels_has_no_depth():
    scales = Given(layers=(layer("scale"),), weights={"scale/kernel": np.ones(2), "scale/bias": np.ones(2)})
    with pytest.raises(ganlab.IncompatibleError, match="finds no layer with a kernel"):
        diagnostic("gradient_norms").look(scales)


# Weights


def test_weights_at_the_limit_are_counted_without_knowing_it():
    kernel = np.float32([[0.01, -0.01, 0.0099], [0.00989, 0.0, 0.002]])
    found = diagnostic("weights").look(Given(weights={"a/kernel": kernel, "a/bias": np.float32([-0.01, 0.001])}))
    assert found.figures["largest"] == pytest.approx(0.01)
    # Three of six, one of two: within 1% of 0.01 is from 0.0099 on.
    assert found.figures["at_largest/a/kernel"] == pytest.approx(3 / 6)
    assert found.figures["at_largest/a/bias"] == pytest.approx(1 / 2)
    assert found.figures["at_largest"] == pytest.approx(4 / 8)
    np.testing.assert_array_equal(found.histograms["a/kernel"], kernel)


@pytest.mark.parametrize(("clipped", "said"), [(0.5, None), (0.6, "60% of the critic's weights are within 1% of")])
def test_clipped_weights_that_pile_up_are_named_and_seen(clipped, said):
    kernel = RANDOM.uniform(-0.009, 0.009, size=1000).astype(np.float32)
    kernel[: int(1000 * clipped)] = np.where(np.arange(int(1000 * clipped)) % 2, 0.01, -0.01)
    weights = diagnostic("weights")
    found = weights.look(Given(weights={"kernel": kernel}))
    complaint = weights.diagnose(found.figures)
    assert (complaint is None) if said is None else (said in complaint and "weight_clipping.limit" in complaint)
    # Two peaks at the ends of the picture, and little between.
    heights = near(decoded(found.pictures["all"])[50:395], BLUE).sum(axis=0)
    (columns,) = np.nonzero(heights > 200)
    assert columns.min() < 120
    assert columns.max() > 640
    assert not ((columns > 130) & (columns < 630)).any()


# Singular values


def orthogonal(n):
    return np.linalg.qr(RANDOM.normal(size=(n, n)))[0]


def test_singular_values_of_kernels_with_known_ones():
    values = np.array([4.0, 2.0, 2.0, 1.0])
    tall = (orthogonal(9)[:, :4] * values) @ orthogonal(4)  # of a convolution: 3 x 3 x 1 to 4 channels
    wide = (orthogonal(4) * values) @ orthogonal(7)[:4]
    effective = {"conv/kernel": tall.reshape(3, 3, 1, 4), "dense/kernel": wide, "dense/bias": np.full(7, 100.0)}
    found = diagnostic("singular_values").look(Given(effective={k: np.float32(v) for k, v in effective.items()}))
    assert set(found.figures) == {
        f"{figure}/{name}/kernel" for figure in ("largest", "stable_rank") for name in ("conv", "dense")
    }
    for name in ("conv", "dense"):
        assert found.figures[f"largest/{name}/kernel"] == pytest.approx(4.0, rel=1e-5)
        assert found.figures[f"stable_rank/{name}/kernel"] == pytest.approx(25 / 16, rel=1e-5)
        np.testing.assert_allclose(np.sort(found.histograms[f"{name}/kernel"]), np.sort(values), rtol=1e-5)


def test_singular_values_of_a_kernel_of_zeros_and_of_one_that_is_not_finite():
    kernels = {"zero": np.zeros((3, 2), np.float32), "nan": np.full((3, 2), np.nan, np.float32)}
    figures = diagnostic("singular_values").look(Given(effective=kernels)).figures
    assert (figures["largest/zero"], figures["stable_rank/zero"]) == (0.0, 0.0)
    assert np.isnan(figures["largest/nan"])


# Slopes


def cone(centre):
    """A critic whose slope at x is twice the distance from a centre."""
    return Given(
        function=lambda x: np.sum((x - centre) ** 2, axis=1),
        gradient=lambda x: 2 * (x - centre),
        real=np.float32([[1, 0], [2, 0], [3, 0], [4, 0]]),
        fake=np.float32([[0, 1], [0, 1], [0, 1], [0, 5]]),
        replicas=2,
    )


def test_slopes_at_real_generated_and_interpolated_examples():
    found = diagnostic("slopes").look(cone(np.zeros(2)))
    assert found.figures["real/mean"] == pytest.approx(5.0)
    assert found.replicas["real/mean"] == pytest.approx([3.0, 7.0])
    assert found.replicas["fake/mean"] == pytest.approx([2.0, 6.0])
    assert (found.figures["real/max"], found.figures["fake/max"]) == pytest.approx((8.0, 10.0))
    # Linear between order statistics: 5% of the way through 2, 4, 6, 8 is 0.15 of a step, and so from above.
    assert (found.figures["real/low"], found.figures["real/high"]) == pytest.approx((2.3, 7.7))
    # One weight an example, on the line between the two.
    weight = np.random.default_rng(3).random((4, 1), np.float32)
    critic = cone(np.zeros(2))
    between = weight * critic.real + (1 - weight) * critic.fake
    expected = 2 * np.linalg.norm(between, axis=1)
    assert found.figures["interpolated/mean"] == pytest.approx(expected.mean(), rel=1e-5)
    assert found.replicas["interpolated/mean"] == pytest.approx([expected[:2].mean(), expected[2:].mean()], rel=1e-5)


@pytest.mark.parametrize(
    ("slope", "target", "said"),
    [
        (2.01, 1.0, "gradient_penalty.weight"),
        (1.99, 1.0, None),
        (0.101, 1.0, None),
        (0.099, 1.0, "weight_clipping.limit"),
        (0.5, 10.0, "tells the generator little"),
        (50.0, None, None),
    ],
)
def test_slopes_far_from_the_target_are_named(slope, target, said):
    complaint = diagnostic("slopes", target=target).diagnose({"interpolated/mean": slope})
    assert (complaint is None) if said is None else said in complaint


# The Lipschitz interval


def test_the_interval_of_a_linear_critic_is_a_point():
    w = np.array([3.0, 4.0])
    x = RANDOM.normal(size=(200, 2)).astype(np.float32)
    critic = Given(
        function=lambda x: x @ w,
        gradient=lambda x: np.broadcast_to(w, x.shape),
        real=x[:100],
        fake=x[100:],
        bounds={"loose": 20.0, "tight": 10.0},
    )
    figures = diagnostic("lipschitz_interval", points=100).look(critic).figures
    assert figures["slopes"] == pytest.approx(5.0)
    # Of 300 pairs in the plane some lie within 1% of the steepest direction: 8 degrees, on a side.
    assert 4.95 < figures["pairs"] <= 5.0 + 1e-4
    assert figures["lower"] == pytest.approx(5.0)
    assert (figures["upper"], figures["ratio"]) == pytest.approx((10.0, 2.0))


def test_pairs_see_a_jump_that_slopes_do_not():
    critic = Given(
        function=lambda x: 100.0 * (x[:, 0] > 0),
        gradient=np.zeros_like,
        real=np.float32([[-1.0]] * 20),
        fake=np.float32([[1.0]] * 20),
    )
    figures = diagnostic("lipschitz_interval", points=20).look(critic).figures
    assert figures["slopes"] == 0.0
    assert figures["pairs"] >= 50.0  # 100 over a distance of 2; interpolated points lie nearer
    assert figures["lower"] == figures["pairs"]
    assert "upper" not in figures


def test_pairs_of_a_conditional_critic_have_one_label():
    slopes = np.array([[1.0, 0.0], [0.0, 3.0]])
    x, labels = RANDOM.normal(size=(100, 2)).astype(np.float32), np.arange(50) % 2
    critic = Given(
        function=lambda x, labels: np.sum(x * slopes[labels], axis=1) + 1000.0 * labels,
        gradient=lambda x, labels: slopes[labels],
        real=x[:50],
        fake=x[50:],
        labels=labels,
        bounds={"certified": 3.0},
    )
    figures = diagnostic("lipschitz_interval", points=50).look(critic).figures
    assert figures["slopes"] == pytest.approx(3.0)
    # Across labels a pair may rise by 1000 whatever the distance, which no certificate speaks of.
    assert 2.9 < figures["pairs"] <= 3.0 + 1e-3
    assert diagnostic("lipschitz_interval").diagnose(figures) is None


def test_a_certificate_that_is_wrong_is_named():
    interval = diagnostic("lipschitz_interval")
    assert interval.diagnose({"lower": 3.0}) is None
    assert interval.diagnose({"lower": 3.0015, "upper": 3.0}) is None
    assert "certifies at most 3:" in interval.diagnose({"lower": 3.01, "upper": 3.0})


# The surface


def plane(function, **arguments):
    points = RANDOM.uniform(-1, 1, size=(60, 2)).astype(np.float32)
    points[:2] = [[-1, -1], [1, 1]]
    critic = Given(function=function, real=points, fake=0.1 * points, dataset=types.SimpleNamespace(sample_shape=(2,)))
    return diagnostic("surface", **arguments).look(critic)


def test_nonlinearity_is_what_a_plane_leaves_unexplained():
    assert plane(lambda x: 2 + 3 * x[:, 0] - x[:, 1]).figures["nonlinearity"] == pytest.approx(0, abs=1e-9)
    assert plane(lambda x: np.full(len(x), 3.0)).figures["nonlinearity"] == 0.0
    assert plane(lambda x: x[:, 0] ** 2).figures["nonlinearity"] == pytest.approx(1.0)
    # On [-s, s]^2 the variance of x is s^2 / 3 and that of x y, which no plane explains, s^4 / 9: s is 1 plus 15%.
    expected = (1.15**4 / 9) / (1.15**2 / 3 + 1.15**4 / 9)
    assert plane(lambda x: x[:, 0] * (1 + x[:, 1])).figures["nonlinearity"] == pytest.approx(expected, rel=0.02)
    assert np.isnan(plane(lambda x: np.where(x[:, 0] > 0, np.nan, 1.0)).figures["nonlinearity"])


def test_the_surface_is_over_the_data_or_the_papers_square():
    asked = []

    def rising(x):
        asked.append(x)
        return x[:, 1]

    pixels = decoded(plane(rising).pictures["scores"])
    assert pixels.shape == (600, 720, 3)
    assert asked[0].shape == (128 * 128, 2)
    assert np.abs(asked[0]).max() == pytest.approx(1.15)
    inside = pixels[60:560, 80:580]
    for colour in (BLUE, ORANGE):
        assert near(inside, colour).sum() > 50
    # Higher scores are darker, and up is up.
    assert inside[:50].mean() < inside[-50:].mean() - 40
    assert len(asked) == 1
    plane(rising, half_width=3.0)
    assert np.abs(asked[-1]).max() == pytest.approx(3.0)
    assert np.abs(asked[-2]).max() == pytest.approx(1.15)  # the measurement is still over the data


def test_images_have_no_surface():
    with pytest.raises(ganlab.IncompatibleError, match=r"the shape \(8, 8, 1\)\. Drop it from experiment.diagnostics"):
        diagnostic("surface").look(Given(dataset=types.SimpleNamespace(sample_shape=(8, 8, 1))))


# Units


def test_units_that_are_dead_or_saturated():
    dense = np.float32([[0, 1, -1, 0.1], [0, 0, -2, 0.1]])  # the first and the third are never positive
    channels = np.zeros((2, 2, 2, 4), np.float32)
    channels[1, 0, 1, 2] = 0.5  # one place of one example is enough
    tanh = np.float32([[0.995, -0.995, 0.5, 1.0], [-1.0, -1.0, 1.0, 0.9]])
    sigmoid = np.float32([[0.004, 0.006], [0.999, 0.5]])
    critic = Given(
        layers=(
            layer("dense", activation="relu"),
            layer("leak", "LeakyReLU", "leaky_relu"),
            layer("conv", "Conv2D", "relu"),
            layer("tanh", "Activation", "tanh"),
            layer("sigmoid", "Activation", "sigmoid"),
            layer("score"),
        ),
        outputs={"dense": dense, "leak": dense, "conv": channels, "tanh": tanh, "sigmoid": sigmoid, "score": dense},
        real=dense[:1],
        fake=dense[1:],
    )
    units = diagnostic("units")
    figures = units.look(critic).figures
    assert figures == {
        "dead/dense": 0.5,
        "dead/leak": 0.5,
        "dead/conv": 0.75,
        "saturated/tanh": 0.5,
        "saturated/sigmoid": 0.5,
    }
    assert "75% of the units of the critic's layer conv are dead" in units.diagnose(figures)
    assert units.diagnose({"dead/dense": 0.5}) is None


def test_a_critic_whose_units_cannot_die():
    with pytest.raises(ganlab.IncompatibleError, match="finds no layer in this critic whose units"):
        diagnostic("units").look(Given(layers=(layer("smooth", activation="softplus"),)))


def test_the_page_lists_every_diagnostic():
    page = (Path(__file__).parents[2] / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    ours = [
        name
        for (kind, name), found in plugins.current().components.items()
        if kind == "diagnostics" and found.plugin.name == "ganlab_diagnostics"
    ]
    assert len(ours) == 9
    assert [name for name in ours if f"| `{name}` | " not in page] == []
