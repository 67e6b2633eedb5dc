import os

import numpy as np
import pytest
import tensorflow as tf
from ganlab_builtin.datasets import ImageFolder, pixels
from PIL import Image

import ganlab

RANDOM = np.random.default_rng(0)


def picture(height, width, channels=3):
    shape = (height, width, channels) if channels > 1 else (height, width)
    return RANDOM.integers(0, 256, shape, np.uint8)


def save(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return pixels


def halved(image):
    """Antialiased bilinear at scale 2 by its definition: a triangle two input pixels wide on either side."""
    n = image.shape[0]
    centres, samples = 2 * np.arange(n // 2) + 1.0, np.arange(n) + 0.5
    weights = np.maximum(0, 1 - np.abs(samples[None] - centres[:, None]) / 2)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("ih,jw,hwc->ijc", weights, weights, image)


def test_files_come_in_the_order_of_their_paths_cropped_to_the_central_square(tmp_path, through_pipeline):
    wide = save(tmp_path / "b.png", picture(4, 7))
    tall = save(tmp_path / "a" / "deep" / "x.PNG", picture(9, 4))
    exact = save(tmp_path / "c.bmp", picture(4, 4))
    save(tmp_path / ".thumbs" / "a.png", picture(4, 4))
    save(tmp_path / "._b.png", picture(4, 4))
    (tmp_path / "notes.txt").write_text("no image")
    folder = ImageFolder(path=str(tmp_path), size=4)
    assert (folder.size, folder.sample_shape) == (3, (4, 4, 3))
    images = through_pipeline(folder, [0, 1, 2, 2, 1, 0], batch=3)
    expected = np.stack([tall[2:6], wide[:, 1:5], exact]) / 127.5 - 1
    np.testing.assert_allclose(images, expected[[0, 1, 2, 2, 1, 0]], atol=1e-6)


def test_shrinking_is_antialiased(tmp_path, through_pipeline):
    stripes = save(tmp_path / "a.png", picture(16, 16))
    images = through_pipeline(ImageFolder(path=str(tmp_path), size=8), [0], batch=1)
    np.testing.assert_allclose(images[0], halved(stripes / 127.5 - 1), atol=1e-5)


def test_enlarging_stays_in_the_range(tmp_path, through_pipeline):
    save(tmp_path / "a.png", np.array([[0, 255], [255, 0]], np.uint8))
    images = through_pipeline(ImageFolder(path=str(tmp_path), size=31, channels=1), [0], batch=1)
    assert images.shape == (1, 31, 31, 1)
    assert (images.min(), images.max()) == (-1.0, 1.0)


@pytest.mark.parametrize("channels", [1, 3])
def test_every_format_and_number_of_channels_is_read(channels, tmp_path, through_pipeline):
    colour, grey = (200, 100, 50), 90
    flat = np.full((6, 6, 3), colour, np.uint8)
    alpha = np.full((6, 6, 1), 30, np.uint8)
    other = Image.fromarray(255 - flat)
    save(tmp_path / "a.png", flat)
    save(tmp_path / "b.png", np.concatenate([flat, alpha], axis=2))
    save(tmp_path / "c.jpg", flat, quality=100)
    save(tmp_path / "d.bmp", flat)
    save(tmp_path / "e.gif", flat, save_all=True, append_images=[other, other])
    save(tmp_path / "f.png", np.full((6, 6), grey, np.uint8))
    save(tmp_path / "g.png", np.concatenate([np.full((6, 6, 1), grey, np.uint8), alpha], axis=2))
    save(tmp_path / "h.jpeg", np.full((6, 6), grey, np.uint8), quality=100)
    save(tmp_path / "i.bmp", np.concatenate([flat, alpha], axis=2))
    Image.fromarray(flat).quantize(4).save(tmp_path / "j.bmp")  # with a palette
    save(tmp_path / "k.bmp", np.full((6, 6), grey, np.uint8))
    folder = ImageFolder(path=str(tmp_path), size=6, channels=channels)
    images = (through_pipeline(folder, range(11), batch=11) + 1) * 127.5
    luma = 0.299 * 200 + 0.587 * 100 + 0.114 * 50
    in_colour, in_grey = (colour, (grey,) * 3) if channels == 3 else ((luma,), (grey,))
    expected = np.array([in_grey if i in (5, 6, 7, 10) else in_colour for i in range(11)], np.float32)
    # JPEG and the palette of a GIF are a level or two off.
    np.testing.assert_allclose(images, np.broadcast_to(expected[:, None, None], images.shape), atol=2.0)


@pytest.mark.parametrize("options", [{"quality": 100}, {"quality": 75}, {"quality": 90, "progressive": True}], ids=str)
def test_jpeg_files_are_decoded_as_pillow_does(tmp_path, through_pipeline, options):
    row, column = np.mgrid[:32, :32][..., None] * [1, 2, 5]
    save(tmp_path / "a.jpg", np.uint8(128 + 100 * np.sin(row / 5 + column / 7)), **options)
    images = through_pipeline(ImageFolder(path=str(tmp_path), size=32), [0], batch=1)
    np.testing.assert_allclose((images[0] + 1) * 127.5, np.asarray(Image.open(tmp_path / "a.jpg")), atol=1e-4)


@pytest.mark.parametrize("name", ["a.png", "a.gif", "a.jpg"])
def test_a_picture_that_claims_more_pixels_than_memory_has_is_refused(tmp_path, through_pipeline, name, monkeypatch):
    monkeypatch.setattr(pixels, "MOST_PIXELS", 8 * 9)
    save(tmp_path / name, picture(8, 10))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"cannot read or decode .*, or set"):
        through_pipeline(ImageFolder(path=str(tmp_path), size=8), [0], batch=1)
    monkeypatch.setattr(pixels, "MOST_PIXELS", 8 * 10)
    assert through_pipeline(ImageFolder(path=str(tmp_path), size=8), [0], batch=1).shape == (1, 8, 8, 3)


def test_a_broken_file_is_named_and_the_others_are_not(tmp_path, through_pipeline):
    for name in ("a", "b", "c", "d"):
        save(tmp_path / f"{name}.png", picture(8, 8))
    save(tmp_path / "e.jpg", picture(64, 64))
    # Broken inside, so that the first and last bytes do not show it.
    broken = tmp_path / "b.png"
    broken.write_bytes(broken.read_bytes()[:60] + b"?" * 8 + broken.read_bytes()[68:])
    (tmp_path / "e.jpg").write_bytes(b"\xff\xd8no JPEG at all\xff\xd9")
    folder = ImageFolder(path=str(tmp_path), size=8)
    assert through_pipeline(folder, [0, 2, 3], batch=3).shape == (3, 8, 8, 3)
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        through_pipeline(folder, [0, 1, 2, 4], batch=4)
    assert f"cannot read or decode {broken}, {tmp_path / 'e.jpg'}. Each must be a whole PNG" in str(error.value)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"cannot read or decode .*b\.png"):
        folder.examples(tf.constant([1], tf.int64), 0)
    (tmp_path / "a.png").unlink()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"cannot read or decode .*a\.png"):
        through_pipeline(folder, [0, 2], batch=2)


@pytest.fixture
def thousands(tmp_path):
    """Two thousand small pictures, of which number 1234 is a copy that was cut off."""
    whole = save(tmp_path / "0000.png", picture(8, 8))
    data = (tmp_path / "0000.png").read_bytes()
    for number in range(1, 2000):
        (tmp_path / f"{number:04d}.png").write_bytes(data)
    (tmp_path / "1234.png").write_bytes(data[:-30])
    return whole


def test_one_broken_file_among_thousands_is_named_before_training(tmp_path, thousands):
    with pytest.raises(ganlab.ConfigError) as error:
        ImageFolder(path=str(tmp_path), size=8)
    assert str(error.value) == (
        f"datasets.image_folder.path = {str(tmp_path)!r} has broken files: 1 of 2000 files cannot be decoded: "
        "'1234.png'. Fix or remove them, or leave them out: datasets.image_folder.skip_broken = True, for "
        "'ganlab dataset make' --skip-broken."
    )


def test_skip_broken_leaves_out_broken_files(tmp_path, thousands, through_pipeline):
    (tmp_path / "0007.png").write_bytes(b"")
    broken = (tmp_path / "0009.png").read_bytes()
    (tmp_path / "0009.png").write_bytes(broken[:60] + b"?" * 8 + broken[68:])
    with pytest.warns(UserWarning, match=r"without broken files: 3 of 2000 files cannot be decoded: '0007.png', '0009"):
        folder = ImageFolder(path=str(tmp_path), size=8, skip_broken=True)
    assert (folder.size, folder.skipped) == (1997, 3)
    images = through_pipeline(folder, [6, 7, 8, 1996], batch=4)
    np.testing.assert_allclose(images, np.stack([thousands] * 4) / 127.5 - 1, atol=1e-6)


def test_classes_are_those_of_the_files_that_are_left(tmp_path):
    save(tmp_path / "cats" / "a.png", picture(8, 8))
    save(tmp_path / "dogs" / "a.png", picture(8, 8))
    save(tmp_path / "eels" / "a.png", picture(8, 8))
    (tmp_path / "dogs" / "a.png").write_bytes(b"")
    with pytest.warns(UserWarning, match="dogs/a.png"):
        folder = ImageFolder(path=str(tmp_path), size=8, skip_broken=True)
    assert folder.classes == 2
    np.testing.assert_array_equal(folder.labels(tf.constant([0, 1])), [0, 1])


def test_a_folder_of_nothing_but_broken_files_is_refused_even_so(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(ganlab.ConfigError, match=r"has no file to train on: 1 of 1 files cannot be decoded: 'a\.png'"):
        ImageFolder(path=str(tmp_path), size=8, skip_broken=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.bmp", "a.gif"])
def test_truncated_files_of_every_format_are_found_and_whole_ones_are_not(name, tmp_path):
    save(tmp_path / name, picture(16, 16))
    whole = (tmp_path / name).read_bytes()
    assert ImageFolder(path=str(tmp_path), size=8).size == 1
    if name != "a.bmp":  # of which TensorFlow reads none with bytes behind it
        (tmp_path / name).write_bytes(whole + b"what a camera writes behind its pictures")
        assert ImageFolder(path=str(tmp_path), size=8).size == 1
    for length in (0, 1, 20, len(whole) // 2, len(whole) - 3):
        (tmp_path / name).write_bytes(whole[:length])
        with pytest.raises(ganlab.ConfigError, match="has broken files"):
            ImageFolder(path=str(tmp_path), size=8)


def test_names_need_not_be_text_at_all(tmp_path, through_pipeline):
    folder = os.fsencode(tmp_path) + b"/with space \xff"
    os.mkdir(folder)
    pixels = picture(4, 4)
    with open(folder + b"/\xfe.png", "wb") as file:
        Image.fromarray(pixels).save(file, "png")
    images = through_pipeline(ImageFolder(path=os.fsdecode(folder), size=4), [0], batch=1)
    np.testing.assert_allclose(images[0], pixels / 127.5 - 1, atol=1e-6)


def test_invalid_folders_and_values_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("no image")
    with pytest.raises(ganlab.ConfigError, match=r"has no image: no \.png, \.jpg, .* in or below it"):
        ImageFolder(path=str(tmp_path))
    with pytest.raises(ganlab.ConfigError, match=r"datasets\.image_folder\.channels = 4 must be 1 \(grey\) or 3"):
        ImageFolder(path=str(tmp_path), channels=4)
