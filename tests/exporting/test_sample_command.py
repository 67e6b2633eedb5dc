"""`ganlab sample`: pictures and numbers, equal to those of training, and its refusals."""

import errno
import os
import re
import shutil

import numpy as np
import pytest
from command_lines import mistake_in
from PIL import Image

import ganlab as lab


@pytest.mark.slow
def test_picture_equals_the_one_of_training(ganlab, digits, tmp_path):
    output = ganlab("sample", digits, "-o", "grid.png")
    assert output == "Wrote grid.png: 64 samples of seed 3 at step 4.\n"
    assert (tmp_path / "grid.png").read_bytes() == (digits / "samples" / "step-00000004.png").read_bytes()
    assert ganlab("sample", digits, "-o", "grid.png", "--checkpoint", 2, "-n", 64, "--seed", 3).endswith("step 2.\n")
    assert (tmp_path / "grid.png").read_bytes() == (digits / "samples" / "step-00000002.png").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grid.png"]


def test_rows_and_columns_arrange_the_picture(ganlab, digits, tmp_path):
    # A tile is 8 pixels, enlarged 8 times, with a gap of 2 pixels around it.
    for arguments, rows, columns, tiles in (
        (("--rows", 2, "--columns", 5), 2, 5, 10),
        (("--columns", 5, "-n", 7), 2, 5, 7),
        (("--rows", 3, "-n", 7), 3, 3, 7),
    ):
        ganlab("sample", digits, "-o", "grid.png", *arguments)
        drawn = np.asarray(Image.open(tmp_path / "grid.png").convert("L"))
        assert drawn.shape == (rows * 66 + 2, columns * 66 + 2)
        firsts = drawn[2::66, 2::66][:rows, :columns].ravel()
        assert (firsts[tiles:] == 128).all()


def test_numbers_are_samples_and_latents_without_pickles(ganlab, digits, tmp_path):
    ganlab("sample", digits, "-o", "s.npz", "-n", 10, "--seed", 1, "--truncation", 0.7)
    with np.load(tmp_path / "s.npz", allow_pickle=False) as kept:
        assert set(kept) == {"samples", "latents"}
        assert (kept["samples"].shape, kept["latents"].shape) == ((10, 8, 8, 1), (10, 5))
        assert kept["samples"].dtype == kept["latents"].dtype == np.float32
        assert np.abs(kept["latents"]).max() <= 0.7
        generated = lab.Run(digits).generator()(kept["latents"])
        np.testing.assert_allclose(generated, kept["samples"], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_points_and_interpolations_are_drawn_in_the_plane(ganlab, points, tmp_path):
    assert "1000 samples" in ganlab("sample", points, "-o", "points.png")
    assert "40 samples" in ganlab("sample", points, "-o", "ways.PNG", "--interpolate", "--rows", 5)
    pictures = [(tmp_path / name).read_bytes() for name in ("points.png", "ways.PNG")]
    for png in pictures:
        assert png.startswith(b"\x89PNG")
        assert [int.from_bytes(png[i : i + 4], "big") for i in (16, 20)] == [600, 600]
    assert pictures[0] != pictures[1]


@pytest.mark.slow
def test_interpolated_numbers_go_row_by_row(ganlab, points, tmp_path):
    ganlab("sample", points, "-o", "ways.npz", "--interpolate", "--rows", 2, "--columns", 3)
    ganlab("sample", points, "-o", "ends.npz", "-n", 4)
    with np.load(tmp_path / "ways.npz") as ways, np.load(tmp_path / "ends.npz") as ends:
        np.testing.assert_array_equal(ways["latents"][[0, 2, 3, 5]], ends["latents"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "grid.jpg"), "must end in .png, for a picture, .npz, for numbers, .txt, for texts, or in nothing"),
        (("-o", "grid"), "Only images go into a folder"),
        (("-o", "nowhere/grid.png"), "there is no folder nowhere"),
        (("-o", "x.png", "--interpolate", "-n", 5), "pass --rows and --columns instead of -n"),
        (("-o", "x.png", "--interpolate", "--columns", 1), "needs --columns 2 or more"),
        (("-o", "x.npz", "--rows", 2), "arrange a picture"),
        (("-o", "x.png", "-n", 9, "--rows", 2, "--columns", 4), "-n 9 samples do not fit into 2 rows of 4"),
        (("-o", "x.png", "--truncation", 0), "0.0 is not in the range x>=0.01"),
        (("-o", "x.png", "--rows", 2), "arrange images"),
        (("-o", "x.png", "--checkpoint", 3), "those that are kept are of 2, 4"),
    ],
)
@pytest.mark.usefixtures("ganlab")
def test_mistakes_are_one_message_and_leave_nothing(points, tmp_path, arguments, message):
    assert message in mistake_in(tmp_path, "sample", points, *arguments)


def test_missing_run_checkpoint_or_picture_is_reported(ganlab, points, tmp_path):
    assert "Did you mean 'one'?" in ganlab("sample", points.with_name("oen"), "-o", "x.png", code=2)
    copy = lab.Run(shutil.copytree(points, tmp_path / "copy"))
    copy.update(sample_shape=[5])
    assert "Samples of shape (5,) have no picture" in ganlab("sample", copy.path, "-o", "x.png", code=2)
    copy.update(sample_shape=[2])
    shutil.rmtree(copy.path / "checkpoints")
    gone = "copy (completed) has no checkpoints any more: they were removed, or left out of an archive."
    assert gone in ganlab("sample", copy.path, "-o", "x.npz", code=2)
    copy.update(checkpointed=False, status="running")
    assert "has no checkpoint yet" in ganlab("sample", copy.path, "-o", "x.npz", code=2)
    copy.update(status="diverged")
    assert "diverged, and has no finite checkpoint" in ganlab("sample", copy.path, "-o", "x.npz", code=2)


def test_a_checkpoint_with_a_wrong_bit_is_reported_in_a_sentence(ganlab, points, tmp_path):
    copy = shutil.copytree(points, tmp_path / "copy")
    (data,) = (copy / "checkpoints" / "step-00000004").glob("variables.data*")
    written = bytearray(data.read_bytes())
    written[len(written) // 2] ^= 1
    data.write_bytes(written)
    said = ganlab("sample", copy, "-o", "x.npz", code=2)
    assert said.splitlines()[-1] == (
        f"Error: The checkpoint {copy / 'checkpoints' / 'step-00000004'} is damaged: {data.name} is not what was "
        "written. Choose another step; there are 2, 4."
    )
    ganlab("sample", copy, "-o", "x.npz", "--checkpoint", 2)


@pytest.mark.parametrize("command", ["sample", "certify"])
def test_networks_that_the_checkpoint_does_not_hold_are_refused_before_they_take_memory(
    ganlab, points, tmp_path, capfd, command
):
    copy = shutil.copytree(points, tmp_path / "copy")
    given = ("-o", "x.npz") if command == "sample" else ()
    text = (copy / "config.gin").read_text()
    for width, reason in (
        (9, "/hidden_1/kernel is float32 of shape (3, 16), where float32 of shape (3, 9) is needed."),
        (10**6, " bytes it is smaller than the networks that the experiment's file asks for."),
    ):
        (copy / "config.gin").write_text(re.sub(r"(mlp.width = )\d+", rf"\g<1>{width}", text))
        said = ganlab(command, copy, *given, code=2)
        assert "step-00000004 does not fit this experiment: " in said
        assert said.endswith(f"{reason}\n")
    assert "WARNING" not in capfd.readouterr().err


@pytest.mark.parametrize("ending", ["png", "npz"])
def test_full_disk_keeps_the_existing_file(ganlab, points, tmp_path, monkeypatch, ending):
    target = tmp_path / f"old.{ending}"
    target.write_text("older")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    message = ganlab("sample", points, "-o", target, "-n", 3, code=2)
    assert f"{target} cannot be written: No space left on device" in message
    assert target.read_text() == "older"
    assert list(tmp_path.iterdir()) == [target]
