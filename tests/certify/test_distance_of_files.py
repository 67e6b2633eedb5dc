"""`ganlab distance`: an interval for the distance between the distributions of samples in files."""

import io
import json
import math
import struct
import zipfile

import numpy as np
import pytest
from command_lines import invoke
from ganlab_certify import sample_distance
from ganlab_certify.two_samples import _tests
from scipy import stats

import ganlab


def ball(random, n, dims):
    """Uniform in the unit ball."""
    x = random.normal(size=(n, dims))
    return x / np.linalg.norm(x, axis=1, keepdims=True) * random.uniform(size=(n, 1)) ** (1 / dims)


def shifted(law, dims):
    """A law against itself moved by the same in each direction."""

    def draw(random, n):
        move = random.exponential()
        x, y = law(random, n, dims), law(random, n + int(random.integers(n)), dims)
        return x + move, y, move * math.sqrt(dims)

    return draw


def scaled_on_a_line(random, n):
    s = 1 + random.exponential()
    return random.normal(size=n), s * random.normal(size=n), (s - 1) * math.sqrt(2 / math.pi)


def product(random, n):
    """One coordinate exponential of two scales, and the others the same: no plan gains by moving these."""
    s = 1 + random.uniform()
    x, y = random.uniform(size=(2, n, 3))
    x[:, 0], y[:, 0] = random.exponential(size=n), s * random.exponential(size=n)
    return x, y, s - 1


def from_the_centre(random, n):
    """All mass moves along rays, of which the distance from the centre is a potential; E |x| = d / (d + 1)."""
    s = 1 + random.exponential()
    return s * ball(random, n, 3), ball(random, n, 3), (s - 1) * 3 / 4


def in_pairs(random, n):
    x = ball(random, n, 8)
    return x * (1.0 + random.uniform(size=(n, 1))), x, 0.5 * 8 / 9


def about_atoms(random, n):
    corners = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    return corners.repeat(5, axis=0), corners[random.integers(4, size=n)] + 0.6 * ball(random, n, 2), 0.4


LAWS = {
    "uniform": lambda random, n, dims: random.uniform(size=(n, dims)),
    "normal": lambda random, n, dims: random.normal(size=(n, dims)),
    "exponential": lambda random, n, dims: random.exponential(size=(n, dims)),
}
# Draws both samples and knows the distance; and what is known of how they were drawn.
PAIRS = {
    "uniform in 1": (shifted(LAWS["uniform"], 1), {}),
    "uniform in 3": (shifted(LAWS["uniform"], 3), {}),
    "normal in 2": (shifted(LAWS["normal"], 2), {}),
    "exponential in 1": (shifted(LAWS["exponential"], 1), {}),
    "scaled": (scaled_on_a_line, {}),
    "product": (product, {}),
    "rays": (from_the_centre, {}),
    "same": (lambda random, n: (*random.normal(size=(2, n, 2)), 0.0), {}),
    "pairs": (in_pairs, {"paired": True}),
    "atoms": (about_atoms, {"whole": True}),
}


@pytest.mark.parametrize(
    "seeds", [pytest.param(1, id="ten pairs"), pytest.param(20, id="200 pairs", marks=pytest.mark.slow)]
)
def test_the_distance_lies_inside_for_most_pairs(seeds):
    held = []
    for number, (draw, options) in enumerate(PAIRS.values()):
        for seed in range(seeds):
            random = np.random.default_rng([number, seed])
            x, y, truth = draw(random, 80 if seeds == 1 else int(random.integers(100, 600)))
            found = sample_distance(x, y, **options).interval
            held.append(found.lower <= truth <= found.upper)
    # At least 95% are promised; fewer than this are a matter of one in a thousand then.
    assert sum(held) >= stats.binom.ppf(0.001, len(held), 0.95)


@pytest.mark.slow
def test_an_interval_is_as_wide_as_one_of_a_run_that_draws_half_as_many():
    x, y, truth = shifted(LAWS["uniform"], 1)(random := np.random.default_rng(0), 2048)
    found = sample_distance(x, y, box=(-1, 4)).interval
    y = random.permutation(y)[:2048]
    halves = [ganlab.transport.Samples(x[part], y[part]) for part in (slice(1024, None), slice(1024))]
    same = ganlab.transport.w1_interval(*halves, diameter=5.0)
    assert found.lower <= truth <= found.upper < 1.3 * truth
    assert found.upper - found.lower == pytest.approx(same.upper - same.lower, rel=0.1)


def test_figures_of_samples_are_scipys_and_the_definitions():
    random = np.random.default_rng(0)
    x, y = random.normal(size=60), random.normal(size=60) + 0.5
    found = sample_distance(x, y)
    assert found.exact_w1 == pytest.approx(stats.wasserstein_distance(x, y))
    assert found.sliced_w1 == pytest.approx(found.exact_w1)  # every direction of a line is the line
    assert found.energy_distance == pytest.approx(stats.energy_distance(x, y) ** 2)
    both = [*x, *y]
    apart = [abs(a - b) for a in both for b in both if a != b]
    assert found.mmd_bandwidth == pytest.approx(np.median(apart))

    def kernel(a, b):
        return np.mean([math.exp(-((s - t) ** 2) / (2 * found.mmd_bandwidth**2)) for s in a for t in b])

    assert found.mmd_squared == pytest.approx(kernel(x, x) + kernel(y, y) - 2 * kernel(x, y))


def test_p_values_of_equal_distributions_are_uniform_and_of_unequal_ones_small():
    random = np.random.default_rng(0)
    few = {False: [], True: []}
    for _ in range(60):
        x = random.normal(size=(20, 1))
        # The mean of x less that of -x varies twice as much as among independent rows: swaps in pairs know that.
        for paired, y in ((False, random.normal(size=(20, 1))), (True, -x)):
            found = _tests(x, y, random, paired=paired)
            few[paired].append([found["energy_p"] <= 0.1, found["mmd_p"] <= 0.1])
    for counts in few.values():
        assert (np.sum(counts, axis=0) <= stats.binom.ppf(0.999, 60, 0.1)).all()
    wrong = [_tests(x := random.normal(size=(20, 1)), -x, random, paired=False)["energy_p"] <= 0.1 for _ in range(60)]
    assert sum(wrong) > stats.binom.ppf(0.999, 60, 0.1)
    apart = _tests(random.normal(size=(50, 2)), random.normal(size=(50, 2)) + 1, random, paired=False)
    assert apart["energy_p"] == apart["mmd_p"] == 0.001


def run(*arguments):
    result = invoke("distance", *arguments)
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def test_the_command_reads_arrays_and_prints_both_ways(tmp_path):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(200, 2)), random.normal(size=(100, 2)).astype(np.float32) + 3
    np.save(tmp_path / "a.npy", np.asfortranarray(x))
    np.savez_compressed(tmp_path / "b.npz", samples=y, latents=np.ones((100, 7)))
    code, text, _ = run(tmp_path / "a.npy", tmp_path / "b.npz", "--json")
    found = json.loads(text)
    assert (code, found["rows"], found["compared"]) == (0, [200, 100], [100, 100])
    assert found["lower"] < 3 * math.sqrt(2) < found["upper"]
    again = sample_distance(x, y)
    assert (found["upper"], found["energy_p"]) == (again.interval.upper, again.energy_p)
    code, text, _ = run(tmp_path / "a.npy", tmp_path / "b.npz", "--box", -9, 9)
    assert code == 0
    assert "- Every value of both distributions lies in [-9, 9]." in text
    assert [line.split()[0] for line in text.splitlines()[-4:]] == ["exact", "sliced", "energy", "squared"]
    bytes_ = random.integers(256, size=(2, 32, 4, 4), dtype=np.uint8)
    for name, pixels in zip("cd", bytes_, strict=True):
        np.save(tmp_path / f"{name}.npy", pixels)
    assert "lies in [0, 255]" in run(tmp_path / "c.npy", tmp_path / "d.npy")[1]


def test_folders_of_images_are_those_of_evaluate(tmp_path):
    import tensorflow as tf

    pixels = np.random.default_rng(0).integers(256, size=(2, 16, 4, 4, 3), dtype=np.uint8)
    for folder, images in zip("ab", pixels, strict=True):
        (tmp_path / folder).mkdir()
        for number, image in enumerate(images):
            (tmp_path / folder / f"{number:02}.png").write_bytes(tf.io.encode_png(image).numpy())
    np.save(tmp_path / "b.npy", pixels[1] / 127.5 - 1)
    plain = sample_distance(*(images / 127.5 - 1 for images in pixels))
    for second in ("b", "b.npy"):
        code, text, error = run(tmp_path / "a", tmp_path / second, "--json")
        assert code == 0, error
        found = json.loads(text)
        assert found["rows"] == [16, 16]
        assert found["exact_w1"] == pytest.approx(plain.exact_w1, rel=1e-6)
    np.save(tmp_path / "c.npy", pixels[1])
    assert "bytes and other numbers are of two scales" in run(tmp_path / "a", tmp_path / "c.npy")[2]


def npy(shape, dtype="'<f8'", *, data=b"", length=None):
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\2\0" + struct.pack("<I", length or len(header)) + header + data


def zipped(*members, fill=0):
    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for number, member in enumerate(members):
            archive.writestr(f"{number}.npy", member + bytes(fill))
    return file.getvalue()


HOSTILE = {
    "objects.npy": (npy("(20,)", "'|O'", data=b"cos\nsystem\n(S'exit'\ntR."), "dtype object, not real numbers"),
    "code.npy": (npy("__import__('os')._exit(0)"), "damaged"),
    "large.npy": (npy("(1000000, 1000000)"), "takes 8,000,000,000,000 bytes"),
    "header.npy": (npy("(2,)", length=2**31), "header claims 2,147,483,648 bytes"),
    "negative.npy": (npy("(-2, -2)"), "without a row or without a number"),
    "cut.npy": (npy("(20, 2)", data=bytes(99)), "needs 320 bytes and has 99"),
    "infinite.npy": (
        npy("(20, 1)", data=np.r_[np.zeros(19), np.inf].tobytes()),
        "row 19 has a value that is not finite",
    ),
    "nan.npy": (npy("(20, 1)", "'<f2'", data=np.r_[np.nan, np.zeros(19)].astype("<f2").tobytes()), "row 0 has a value"),
    "text.npz": (b"hello", "damaged"),
    "bomb.npz": (zipped(npy("(500000000,)"), fill=2**24), "takes 4,000,000,000 bytes"),
    "several.npz": (zipped(npy("(20,)"), npy("(20,)")), "but '0', '1'; name one with --key"),
    "wide.npy": (npy("(20, 3)", data=bytes(480)), "have the shape (2,), and those of"),
    "few.npy": (npy("(3, 2)", data=bytes(48)), "100 and 3 rows are too small"),
    "folder": (None, "no image"),
    "absent.npy": (None, "No such file"),
    "x.txt": (b"", "its ending is not .npy or .npz"),
}


def test_hostile_files_end_in_one_sentence(tmp_path):
    np.save(tmp_path / "good.npy", np.zeros((100, 2)))
    (tmp_path / "folder").mkdir()
    for name, (data, message) in HOSTILE.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        code, text, error = run(tmp_path / "good.npy", tmp_path / name)
        assert (code, text) == (2, ""), name
        assert message in error, (name, error)
        assert error.startswith("Error: ")
        assert len(error) < 500 + len(str(tmp_path)), error


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ((100, 90), {"paired": True}, "100 and 90 rows are not pairs"),
        ((100, 100), {"paired": True, "whole": True}, "the first one whole, are not pairs"),
        ((16_385, 100), {"whole": True}, "16,385 rows is too large"),
        ((100, 100), {"box": (0.0, 1.0)}, "between -1 and -1, outside the box from 0 to 1"),
        ((100, 100), {"box": (1.0, 1.0)}, "the lower one first"),
        ((100, 100), {"confidence": 1.0}, "confidence = 1.0 must be"),
    ],
)
def test_refusals_of_settings(rows, options, message):
    with pytest.raises(ganlab.GanlabError, match=message):
        sample_distance(*(np.full((n, 2), -1.0) for n in rows), **options)
