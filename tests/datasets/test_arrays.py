import math
import os
import warnings
from fractions import Fraction

import numpy as np
import pytest
import tensorflow as tf
from ganlab_builtin.datasets import Arrays
from ganlab_builtin.datasets.fixed_files import NpyRows

import ganlab

RANDOM = np.random.default_rng(0)
GREY = RANDOM.integers(0, 256, (10, 4, 5), np.uint8)
COLOUR = RANDOM.integers(0, 256, (10, 4, 5, 3), np.uint8)
VECTORS = RANDOM.normal(size=(10, 7)) * 100


@pytest.fixture
def save(tmp_path):
    def write(name="data.npy", **arrays):
        file = tmp_path / name
        if file.suffix == ".npy":
            np.save(file, *arrays.values(), allow_pickle=True)
        else:
            np.savez(file, **arrays)
        return str(file)

    return write


def refused(**arguments):
    with pytest.raises(ganlab.ConfigError) as error:
        Arrays(**arguments)
    return str(error.value)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (GREY, GREY[..., None] / 127.5 - 1),
        (COLOUR, COLOUR / 127.5 - 1),
        (VECTORS, VECTORS),
        (VECTORS.astype(">f8"), VECTORS),
        (np.asfortranarray(VECTORS.astype(np.float32)), VECTORS),
        ((COLOUR / 255).astype(np.float16), COLOUR / 255),
    ],
    ids=["grey bytes", "colour bytes", "float64", "big endian", "Fortran order", "half"],
)
@pytest.mark.parametrize("name", ["data.npy", "data.npz"])
def test_rows_come_by_number(rows, expected, name, save, through_pipeline):
    arrays = Arrays(path=save(name, rows=rows))
    assert (arrays.size, arrays.sample_shape) == (10, expected.shape[1:])
    numbers = [9, 0, 3, 3, 7, 1]
    tolerance = 1e-3 if rows.dtype == np.float16 else 1e-6
    np.testing.assert_allclose(
        through_pipeline(arrays, numbers, batch=3), expected[numbers], rtol=tolerance, atol=tolerance
    )


def test_both_ends_of_bytes_are_exact(save, through_pipeline):
    ends = np.array([[[0, 255]]], np.uint8)
    np.testing.assert_array_equal(through_pipeline(Arrays(path=save(x=ends)), [0], batch=1).ravel(), [-1, 1])


SECONDS, NANOSECONDS = 1_700_000_000, 1_700_000_000_000_000_001


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (np.float64, SECONDS, SECONDS + 1),
        (np.float64, -SECONDS - 0.5, -SECONDS),
        (np.float64, -1e300, 1e300),
        (np.float64, 1e-300, 3e-300),
        (">f8", SECONDS, SECONDS + 60.0),
        (np.float32, 16_777_000.0, 16_777_216.0),
        (np.float16, 2000.0, 2048.0),
        (np.float16, 0.0, 65_504.0),
        (np.uint8, 200, 203),
        (np.int16, -32_768, 32_767),
        (np.uint16, 0, 65_535),
        (np.int32, 2**31 - 9, 2**31 - 1),
        (np.uint32, 2**32 - 9, 2**32 - 1),
        (np.int64, NANOSECONDS, NANOSECONDS + 1000),
        (">i8", NANOSECONDS, NANOSECONDS + 1000),
        (np.int64, -(2**63), 2**63 - 1),
        (np.int64, -(2**63), -(2**63) + 8),
        (np.int64, 2.5, 12.25),
        (np.uint64, 2**64 - 17, 2**64 - 1),
        (np.uint64, 0, 2**64 - 1),
        (np.uint64, -1, 2**64),
    ],
)
@pytest.mark.parametrize("name", ["data.npy", "data.npz"])
def test_normalization_is_exact_before_it_is_rounded(name, dtype, low, high, save, through_pipeline):
    values = [low + Fraction(part, 8) * (Fraction(high) - Fraction(low)) for part in range(9)]
    whole = np.dtype(dtype).kind in "iu"
    if whole:
        least, most = max(math.ceil(low), np.iinfo(dtype).min), min(math.floor(high), np.iinfo(dtype).max)
        values = [min(max(round(value), least), most) for value in values]
    rows = np.array([[value if whole else float(value)] for value in values], dtype)
    arrays = Arrays(path=save(name, rows=rows.reshape(9, 1, 1)), low=low, high=high)
    stored = [Fraction(int(value) if whole else float(value)) for value in rows[:, 0]]
    expected = [float(2 * (value - Fraction(low)) / (Fraction(high) - Fraction(low)) - 1) for value in stored]
    np.testing.assert_allclose(through_pipeline(arrays, range(9), batch=3).ravel(), expected, rtol=0, atol=1e-7)


def test_vectors_may_lie_outside_low_and_high(save, through_pipeline):
    rows = np.array([[NANOSECONDS - 1000], [NANOSECONDS], [NANOSECONDS + 3000]], np.int64)
    arrays = Arrays(path=save(rows=rows), low=NANOSECONDS, high=NANOSECONDS + 1000)
    np.testing.assert_allclose(through_pipeline(arrays, range(3), batch=1).ravel(), [-3, -1, 5])


@pytest.mark.parametrize(
    ("low", "high", "values", "bad"),
    [
        (0.0, 1e-300, [0.0, 1e10], 1),
        (-1e300, 1e300, [0.0, np.inf], 1),
        (0.0, 5e-324, [0.0, 1.0], 0),  # no half of the smallest number
        (0, 1, [0.0, np.nan], 1),
    ],
)
def test_vectors_that_are_not_finite_after_normalization_are_refused(low, high, values, bad, save):
    path = save(rows=np.array(values)[:, None])
    assert f"row {bad} that is not finite in float32" in refused(path=path, low=low, high=high)


def test_vectors_that_float32_cannot_tell_apart_are_warned_of(save):
    rows = np.stack([np.arange(100.0), SECONDS + np.arange(100.0)], axis=1)
    with pytest.warns(UserWarning, match=r"from 1700000000 to 1700000099 in column 1\. .* steps of 128\. Subtract an"):
        Arrays(path=save(rows=rows))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Arrays(path=save(rows=rows - [0, SECONDS]))
        Arrays(path=save(rows=rows), low=0, high=SECONDS)
        Arrays(path=save(rows=rows * [1, 0] + [0, SECONDS]))  # one value: nothing to tell apart


def test_columns_of_unequal_scale_are_warned_of(save, recwarn):
    rows = VECTORS * [1, 1, 1, 1e-6, 1, 0, 1]
    with pytest.warns(UserWarning, match=r"apart in column \d, [\d.e-]+ in column 3, which distances do not show"):
        Arrays(path=save(rows=rows))
    recwarn.clear()
    Arrays(path=save(rows=VECTORS * [1, 1, 1, 1e-2, 1, 0, 1]))
    assert not recwarn


@pytest.fixture(params=["in memory", "on disk"])
def kept(request, monkeypatch):
    if request.param == "on disk":
        monkeypatch.setattr("ganlab_builtin.datasets.fixed_files._KEPT", 0)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("row", [slice(None), slice(3, 7), np.array([9, 0, 0])])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_rows_are_those_of_numpy(row, order, save, tmp_path):
    values = np.array(COLOUR, ">u2", order=order)
    rows = NpyRows("arrays", tmp_path / save(x=values), "data.npy")
    assert (rows.shape, rows.dtype, rows.nbytes, len(rows)) == (values.shape, values.dtype, values.nbytes, 10)
    np.testing.assert_array_equal(rows[row], values[row])


WRITTEN = r"datasets\.arrays\.path = .*data\.npy' has been written since it was opened"


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("count", [0, 3, 10, 200])
@pytest.mark.parametrize("way", ["save", "truncate", "zero", "touch"])
def test_npy_file_that_is_written_during_training_is_noticed(way, count, save, through_pipeline):
    path = save(x=np.zeros((10, 1024)))
    arrays = Arrays(path=path)
    if way == "save":  # in place, after cutting the file to nothing
        np.save(path, np.ones((count, 1024)))
    elif way == "touch":
        os.utime(path)
    else:
        os.truncate(path, 0 if way == "zero" else 128 + 8192 * count - 1)
    with pytest.raises(tf.errors.OpError, match=WRITTEN):
        through_pipeline(arrays, range(10), batch=5)
    with pytest.raises(ganlab.ConfigError, match=WRITTEN):
        arrays.fingerprint()


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("then", [os.unlink, lambda path: os.replace(f"{path}.new", path)])
def test_npy_file_that_is_removed_or_replaced_is_still_read(then, save, through_pipeline, tmp_path):
    path = save(x=VECTORS)
    arrays = Arrays(path=path)
    (tmp_path / "data.npy.new").write_bytes(b"other")
    then(path)
    np.testing.assert_allclose(through_pipeline(arrays, range(10), batch=5), VECTORS, rtol=1e-6)


def test_a_npy_file_stays_on_disk(tmp_path):
    # 64 GiB of rows, of which the file system stores none.
    path = tmp_path / "large.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (2**24, 64, 64)})
        file.truncate(file.tell() + 2**36)
    arrays = Arrays(path=str(path))
    assert arrays.size == 2**24
    assert (arrays.examples(tf.constant([2**24 - 1, 0], tf.int64), 0).numpy() == -1).all()


def test_a_npz_file_of_several_arrays_needs_a_key(save, through_pipeline):
    path = save("data.npz", images=GREY, labels=np.arange(10))
    assert through_pipeline(Arrays(path=path, key="images"), [4], batch=1).shape == (1, 4, 5, 1)
    message = refused(path=path)
    assert message.startswith("datasets.arrays.key = None must name an array of ")
    assert "\n" not in refused(path=save("odd.npz", **{"a\nError: forged": GREY, "b": GREY}))
    assert "which has images, labels." in message
    assert "Did you mean 'images'?" in refused(path=path, key="image")
    assert "datasets.arrays.key = 'x' is for .npz files" in refused(path=save(x=GREY), key="x")


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (np.arange(5.0), "shape (5,); it must be (n, d)"),
        (np.zeros((2, 2, 2, 2, 2)), "shape (2, 2, 2, 2, 2); it must be (n, d)"),
        (np.zeros((0, 3)), "shape (0, 3), which is empty"),
        (np.zeros((3, 0), np.uint8), "shape (3, 0), which is empty"),
        (np.zeros((2, 3, 8, 8), np.uint8), "shape (2, 3, 8, 8), which looks like (n, channels, height, width)"),
        (np.array([["a", "b"]]), "dtype <U1; they must be real numbers"),
        (np.ones((2, 2), bool), "dtype bool; they must be real numbers"),
        (np.ones((2, 2), complex), "dtype complex128; they must be real numbers"),
        (np.array([[1, 2], [3]], dtype=object), "holds Python objects"),
        (np.ones((2, 2), np.int32), "holds int32 values, whose range is unknown"),
        (np.array([[0.0, 1.0], [2.0, np.nan]]), "row 1 that is not finite"),
        (np.array([[0.0, 1.0], [np.inf, 2.0]]), "row 1 that is not finite"),
        (np.array([[0.0, -1e39]]), "row 0 that is not finite in float32"),
        (np.full((2, 2, 2), 255.0), "values from 255 to 255; they must lie in [-1, 1]. Set datasets.arrays.low"),
    ],
)
@pytest.mark.parametrize("name", ["data.npy", "data.npz"])
def test_invalid_arrays_are_refused(rows, rule, name, save):
    path = save(name, rows=rows)
    message = refused(path=path)
    assert message.startswith(f"datasets.arrays.path = {path!r} ")
    assert rule in message


def test_values_are_checked_in_every_chunk(save, monkeypatch):
    monkeypatch.setattr("ganlab_builtin.datasets.arrays._CHUNK_BYTES", 64)
    rows = np.zeros((100, 4))
    rows[97, 2] = np.nan
    assert "row 97 " in refused(path=save(x=rows))


def test_images_outside_low_and_high_are_refused(save):
    message = refused(path=save(x=COLOUR.astype(np.float32)), low=0.0, high=1.0)
    assert f"values from {COLOUR.min()} to {COLOUR.max()}; they must lie in [0, 1]" in message


RAMP, MASKS = np.linspace(0, 1, 80, dtype=np.float32).reshape(5, 4, 4), np.eye(4, dtype=np.uint8)[None]


@pytest.mark.parametrize(
    ("images", "rule", "sound"),
    [
        (RAMP, r"values from 0 to 1, the upper half .*low = 0 and \.high = 1\.", 2 * RAMP - 1),
        (MASKS, "has bytes from 0 to 1, which are nearly black", 0 * MASKS),
    ],
    ids=["upper half", "masks"],
)
def test_images_of_a_part_of_the_range_are_warned_of(save, images, rule, sound):
    path = save(a=images)
    with pytest.warns(UserWarning, match=rule):
        Arrays(path=path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Arrays(path=path, low=0, high=1)
        Arrays(path=save(a=sound))


def test_half_a_range_and_a_range_upside_down_are_refused(save):
    path = save(x=GREY)
    assert "datasets.arrays.high = None must be given too" in refused(path=path, low=0.0)
    assert "datasets.arrays.low = None must be given too" in refused(path=path, high=1.0)
    for low, high in [(2.0, 1.0), (1.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (-math.inf, 0), (0, 10**400)]:
        rule = f"datasets.arrays.low = {low!r} must be finite and below datasets.arrays.high = {high!r}"
        assert rule in refused(path=path, low=low, high=high)


def test_files_that_cannot_be_read_are_refused(tmp_path, save):
    assert "must be a .npy or a .npz file" in refused(path=str(tmp_path / "data.csv"))
    for name in ("data.npy", "data.npz"):
        path = save(name, x=COLOUR)
        for length in (os.path.getsize(path) // 2, 0):
            os.truncate(path, length)
            assert "cannot be read as a numpy file" in refused(path=path)


def test_an_array_larger_than_memory_is_refused_before_it_is_unpacked(save, monkeypatch):
    path = save("zeros.npz", x=np.zeros((2000, 8, 8), np.uint8))
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}.__getitem__)
    message = refused(path=path)
    assert "has 128,128 bytes in 'x', more than this machine's memory of 12,288" in message
    assert "Save it with numpy.save as a .npy file" in message
