import warnings

import numpy as np
import pytest
from ganlab_builtin.datasets import Arrays

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


def test_low_and_high_become_minus_1_and_1(save, through_pipeline):
    levels = np.array([[[0, 1000], [2000, 4000]]], np.int16)
    arrays = Arrays(path=save(x=levels), low=0, high=4000)
    np.testing.assert_allclose(through_pipeline(arrays, [0], batch=1).ravel(), [-1, -0.5, 0, 1])


def test_a_npy_file_stays_on_disk(save):
    assert isinstance(Arrays(path=save(x=COLOUR))._rows, np.memmap)


def test_a_npz_file_of_several_arrays_needs_a_key(save, through_pipeline):
    path = save("data.npz", images=GREY, labels=np.arange(10))
    assert through_pipeline(Arrays(path=path, key="images"), [4], batch=1).shape == (1, 4, 5, 1)
    message = refused(path=path)
    assert message.startswith("datasets.arrays.key = None must name an array of ")
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


def test_images_in_the_upper_half_of_the_range_are_warned_of(save):
    path = save(a=np.linspace(0, 1, 5 * 4 * 4, dtype=np.float32).reshape(5, 4, 4))
    with pytest.warns(UserWarning, match=r"values from 0 to 1, the upper half .*low = 0 and \.high = 1\."):
        Arrays(path=path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Arrays(path=path, low=0.0, high=1.0)
        Arrays(path=save(a=np.linspace(-1, 1, 5 * 4 * 4, dtype=np.float32).reshape(5, 4, 4)))


def test_half_a_range_and_a_range_upside_down_are_refused(save):
    path = save(x=GREY)
    assert "datasets.arrays.high = None must be given too" in refused(path=path, low=0.0)
    assert "datasets.arrays.low = None must be given too" in refused(path=path, high=1.0)
    assert "datasets.arrays.low = 2.0 must be finite and below datasets.arrays.high = 1.0" in refused(
        path=path, low=2.0, high=1.0
    )


def test_files_that_cannot_be_read_are_refused(tmp_path, save):
    assert "is not there: no file" in refused(path=str(tmp_path / "none.npy"))
    assert "must be a .npy or a .npz file" in refused(path=str(tmp_path / "data.csv"))
    for name in ("data.npy", "data.npz"):
        whole = (tmp_path / save(name, x=COLOUR)).read_bytes()
        broken = tmp_path / f"broken{name}"
        broken.write_bytes(whole[: len(whole) // 2])
        assert "cannot be read as a numpy file" in refused(path=str(broken))
        broken.write_bytes(b"")
        assert "cannot be read as a numpy file" in refused(path=str(broken))
