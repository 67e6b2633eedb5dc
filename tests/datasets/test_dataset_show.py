"""`ganlab dataset show`: a picture of the examples that training will see."""

import functools

import numpy as np
import pytest
from command_lines import command, mistake_in
from PIL import Image


@pytest.fixture
def here(tmp_path, monkeypatch, fresh_plugins):
    """Red and blue pictures in folders of two classes, and their experiment."""
    monkeypatch.chdir(tmp_path)
    for name, colour in (("blue", (0, 0, 255)), ("red", (255, 0, 0))):
        (tmp_path / "colours" / name).mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (30, 20), colour).save(tmp_path / "colours" / name / f"{i}.png")
    (tmp_path / "colours.gin").write_text(
        "include 'quickstart.gin'\n"
        "experiment.dataset = @datasets.image_folder()\n"
        "datasets.image_folder.path = 'colours'\n"
        "datasets.image_folder.size = 16\n"
    )
    return tmp_path


def test_picture_has_a_row_for_each_class(here):
    printed = command("dataset", "show", "colours.gin", "-o", "grid.png")
    assert printed == (
        "Wrote grid.png: 6 of 6 examples of shape (16, 16, 3), with values from -1 to 1, a row for each of 2 classes.\n"
    )
    pixels = np.asarray(Image.open(here / "grid.png"))
    height, width, _ = pixels.shape
    assert width > 4 * height
    middles = pixels[[height // 4, 3 * height // 4]][:, [width // 20, width - width // 20]]
    assert middles.tolist() == [[[0, 0, 255]] * 2, [[255, 0, 0]] * 2]


def test_settings_can_be_overridden(here):
    grey = ("--param", "datasets.image_folder.channels=1", "--param", "datasets.image_folder.size=8")
    assert "of shape (8, 8, 1)" in command("dataset", "show", "--gin", "colours.gin", *grey, "-o", "grid.png")


def test_points_are_drawn_in_the_plane(here):
    assert "1,000 examples of shape (2,)" in command("dataset", "show", "eight_gaussians", "-o", "ring.png")
    assert Image.open(here / "ring.png").size == (600, 600)


def test_a_dataset_may_show_its_examples_as_texts(here):
    assert "64" in command("dataset", "show", "methods/characters", "-o", "texts.png")
    assert Image.open(here / "texts.png").mode == "L"


def test_mistakes_leave_no_file(here):
    mistake = functools.partial(mistake_in, here, "dataset", "show")
    assert "name a FILE, for example 'ganlab dataset show quickstart'" in mistake("-o", "a.png")
    assert mistake("quickstart", "-o", "a.jpg") == "-o a.jpg must end in .png."
    np.save(here / "rows.npy", np.zeros((4, 7)))
    rows = ("--param", "experiment.dataset=@datasets.arrays()", "--param", "datasets.arrays.path='rows.npy'")
    assert mistake("quickstart", *rows, "-o", "a.png") == (
        "Examples of shape (7,) have no picture: only images of 1 or 3 channels, points in the plane and what a "
        "dataset shows do."
    )
