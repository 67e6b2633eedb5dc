"""Relative paths of data: taken from the working directory, which the error names if nothing is there."""

import numpy as np
import pytest

import ganlab


@pytest.fixture
def data(tmp_path):
    """An array and a folder with a picture, in their own folder."""
    import keras

    folder = tmp_path / "data"
    (folder / "pictures").mkdir(parents=True)
    np.save(folder / "rows.npy", np.zeros([4, 2], np.float32))
    keras.utils.save_img(folder / "pictures" / "a.png", np.zeros([8, 8, 3]), scale=False)
    return folder


def made(name, path):
    return ganlab.component("datasets", name)(path=str(path))


@pytest.mark.parametrize(("name", "path"), [("arrays", "rows.npy"), ("image_folder", "pictures")])
def test_the_folder_that_was_searched_is_reported(data, monkeypatch, name, path):
    monkeypatch.chdir(data)
    assert made(name, path).size
    monkeypatch.chdir(data.parent)
    with pytest.raises(ganlab.ConfigError) as caught:
        made(name, path)
    assert f"no {'file' if name == 'arrays' else 'folder'} {str(data.parent / path)!r}." in str(caught.value)
    assert f"A relative path is taken from the working directory, {str(data.parent)!r}, and not" in str(caught.value)
    with pytest.raises(ganlab.ConfigError) as caught:
        made(name, data / "none" / path)
    assert "relative" not in str(caught.value)


def test_the_folder_that_was_searched_for_weights_is_reported(data, monkeypatch):
    monkeypatch.chdir(data)
    said = r"no file '.*/data/none\.h5'; a relative path is taken from the working"
    with pytest.raises(ganlab.ConfigError, match=said):
        ganlab.component("features", "inception")(path="none.h5")
