"""Pictures of samples in a report: the newest of each run, small enough, and nothing that is not a picture."""

import base64
import io

import numpy as np
import pytest
from ganlab_compare import compare, to_html
from PIL import Image
from reports import read
from synthetic import add_samples, write_run

from ganlab.telemetry.plots import image_grid


def samples_of(folder):
    return read(to_html(compare([folder]))).one("section", id="samples")


def test_the_newest_samples_of_each_run_are_in_the_page(tmp_path):
    run = write_run(tmp_path / "s0")
    add_samples(run, step=20)
    newest = add_samples(run, step=100_000, png=image_grid(np.ones((9, 8, 8, 3), np.float32)))
    write_run(tmp_path / "s1", seed=1)  # has none

    image = samples_of(tmp_path).one("img")

    assert base64.b64decode(image.attributes["src"].removeprefix("data:image/png;base64,")) == newest
    assert "seed 0, step 100000" in image.attributes["alt"]


def test_large_pictures_are_scaled_down(tmp_path):
    noise = np.random.default_rng(0).uniform(-1, 1, (16, 128, 128, 3)).astype(np.float32)
    png = image_grid(noise)
    assert len(png) > 700_000
    add_samples(write_run(tmp_path / "s0"), png=png)

    source = samples_of(tmp_path).one("img").attributes["src"]

    kind, _, data = source.partition(";base64,")
    assert kind == "data:image/jpeg"
    assert 20_000 < len(data) <= 300_000
    whole, smaller = Image.open(io.BytesIO(png)), Image.open(io.BytesIO(base64.b64decode(data)))
    assert smaller.width / smaller.height == pytest.approx(whole.width / whole.height, rel=0.01)
    assert smaller.width >= whole.width / 4


@pytest.mark.parametrize(
    "content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n" + bytes(400_000), b"<script>alert(1)</script>"]
)
def test_files_that_are_not_pictures_are_left_out(tmp_path, content):
    add_samples(write_run(tmp_path / "s0"), png=content)

    assert not read(to_html(compare([tmp_path]))).all(id="samples")
