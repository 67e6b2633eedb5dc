"""`ganlab evaluate --folder`: images in place of samples, against numpy."""

import json
import re

import numpy as np
import pytest
from command_lines import command
from PIL import Image

pytestmark = pytest.mark.usefixtures("cpus", "fresh_plugins")


# 40 real images and 30 darker ones.
RANDOM = np.random.default_rng(0)
REAL, FAKE = (RANDOM.integers(0, most, (n, 12, 12, 3), dtype=np.uint8) for n, most in ((40, 255), (30, 200)))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The folders of both, in subfolders."""
    root = tmp_path_factory.mktemp("images")
    for name, images in (("real", REAL), ("fake", FAKE)):
        for i, image in enumerate(images):
            path = root / name / f"{i // 20}" / f"{i:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
    (root / "odd").mkdir()
    (root / "odd" / "a.png").write_bytes(b"not an image")
    return root


PIXELS = [
    "--evaluator=published_scores",
    "--param=evaluators.published_scores.features=@features.pixels()",
    *(
        f"--param=evaluators.published_scores.{name}={value}"
        for name, value in {"samples": 30, "splits": 0, "subsets": 1, "subset_size": 30, "nearest": 30}.items()
    ),
]

MANY = [option.replace("samples=30", "samples=31") for option in PIXELS]

WEIGHTS = ["--weights", "w.pth", "--metrics", "fid"]


def test_the_figures_are_those_of_the_images(root):
    found = json.loads(command("evaluate", "--folder", root / "fake", "--against", root / "real", "--json", *PIXELS))
    x, y = (images.reshape(len(images), -1) / 127.5 - 1 for images in (FAKE, REAL))
    from scipy.linalg import sqrtm

    cross = 2 * np.real(np.trace(sqrtm(np.cov(x.T) @ np.cov(y.T))))
    expected = np.sum((x.mean(0) - y.mean(0)) ** 2) + np.trace(np.cov(x.T)) + np.trace(np.cov(y.T)) - cross
    figures = found["evaluation"]
    # The root of a singular product is where scipy's differs by its own rounding.
    assert figures["published_scores/frechet_distance"] == pytest.approx(expected, rel=2e-3)
    assert (figures["published_scores/samples"], figures["published_scores/real_examples"]) == (30, 40)
    assert (found["images"], found["shape"]) == (30, [12, 12, 3])


def test_some_images_are_of_all_classes(tmp_path):
    for i in range(40):
        (tmp_path / f"{i // 20}").mkdir(exist_ok=True)
        Image.new("RGB", (4, 4), (250, 250, 250) if i < 20 else (5, 5, 5)).save(tmp_path / f"{i // 20}" / f"{i}.png")
    half = [option.replace("30", "20") for option in PIXELS]
    found = json.loads(command("evaluate", "--folder", tmp_path, "--against", tmp_path, "--json", *half))
    # Twenty of one class would be 46 from the forty, in mean alone.
    assert found["evaluation"]["published_scores/frechet_distance"] < 10


def test_a_table_says_what_was_measured(root):
    said = command("evaluate", "--folder", root / "fake", "--against", root / "real", "--size", 8, *PIXELS)
    assert "30 images as 8 x 8 x 3, against" in said
    assert "frechet_distance" in said


def test_a_dataset_may_be_the_reference(root):
    patches = ["--param", "datasets.photo_patches.side=12", "--param", "datasets.photo_patches.size=50"]
    said = command(
        "evaluate", "--folder", root / "fake", "--against", "@datasets.photo_patches()", *patches, "--json", *PIXELS
    )
    assert json.loads(said)["evaluation"]["published_scores/real_examples"] == 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name a run, or a folder of images by --folder, and not both"),
        (["RUN", "--folder", "{fake}"], "and not both"),
        (["--folder", "{fake}"], "--folder needs --against"),
        (["--folder", "{fake}", "--against", "{real}"], "--folder needs --against"),
        (["--folder", "{fake}", "--against", "{real}", "--save", *PIXELS], "are for runs"),
        (["RUN", "--against", "{real}"], "--against, --size, .* are for --folder"),
        (["RUN", "--weights", "w.pth"], "are for --folder"),
        (["--folder", "{fake}", "--against", "{real}", *PIXELS, "--metrics", "fid"], "are for --weights"),
        (["--folder", "{fake}", "--against", "{real}", *PIXELS, "--weights", "w.pth"], "either --weights or"),
        (["--folder", "{fake}", "--against", "{real}", *WEIGHTS], "w.pth' is not there"),
        (["--folder", "{fake}", "--against", "{real}", *WEIGHTS, "--metrics", "fid,mmd"], "there is no 'mmd'"),
        (["--folder", "{fake}", "--against", "a.npz", *WEIGHTS, "--metrics", "is,kid"], "kid compares images"),
        (["--folder", "{fake}", "--against", "a.npz", *WEIGHTS, "--save-statistics", "b.npz"], "Leave one of them"),
        (["--folder", "{real}/none", "--against", "{real}", *PIXELS], "is not there"),
        (["--folder", "{fake}", "--against", "{real}/none", *PIXELS], "is not there"),
        (["--folder", "{real}/../odd", "--against", "{real}", *PIXELS], "cannot be decoded"),
        (["--folder", "{fake}", "--against", "@datasets.nothing()", *PIXELS], "nothing"),
        (["--folder", "{fake}", "--against", "{real}", *MANY], "asks for .* samples, and .* has 30 images"),
        (["--folder", "{fake}", "--against", "{real}", "--evaluator", "nothing"], "nothing"),
        (["--folder", "{fake}", "--against", "{real}", *PIXELS, "--param", "experiment.stepz=3"], "stepz"),
    ],
)
def test_mistakes_are_one_message(root, arguments, message):
    said = command("evaluate", *(a.format(fake=root / "fake", real=root / "real") for a in arguments), code=2)
    assert said.startswith("Error: ")
    assert re.search(message, said)


def test_too_few_images_name_the_evaluator_that_asks_for_more(root):
    patches = ["--param=datasets.photo_patches.side=12", "--param=datasets.photo_patches.size=400"]
    asked = ["--folder", root / "fake", "--against", "@datasets.photo_patches()", *patches, "--evaluator", "kid"]
    said = command("evaluate", *asked, code=2)
    assert "evaluators.kid asks for" in said
    remedy = re.search(r"--param (evaluators\.kid\.samples=30)\.", said)[1]
    assert json.loads(command("evaluate", *asked, "--param", remedy, "--json"))["images"] == 30


@pytest.mark.slow
def test_published_scores_of_a_file_of_weights(root, tmp_path):
    from ganlab_builtin.features import inception_2015

    random, arrays = np.random.default_rng(0), {}
    for name, shape in inception_2015.shapes().items():
        scale = np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0.1
        arrays[name] = (random.normal(0, scale, shape) + name.endswith(("running_var", "bn.weight"))).astype(np.float32)
        if name.endswith("running_var"):
            arrays[name] = np.abs(arrays[name]) + 0.1
    np.savez(tmp_path / "w.npz", **arrays)
    weights = ["--folder", root / "fake", "--weights", tmp_path / "w.npz", "--json"]
    few = [f"--param=evaluators.published_scores.{text}" for text in ("subsets=2", "subset_size=20", "splits=2")]
    kept = tmp_path / "real.npz"
    whole = json.loads(command("evaluate", *weights, "--against", root / "real", "--save-statistics", kept, *few))[
        "evaluation"
    ]
    names = {name.removeprefix("published_scores/") for name in whole}
    assert names >= {"frechet_distance", "kernel_distance", "inception_score", "precision", "density", "samples"}
    facts = json.loads(str(np.load(kept)["ganlab"]))
    assert facts["features"]["network"] == "inception-2015-12-05"
    assert facts["features"]["resizing"] == "tensorflow"

    # The file in place of the images: the same distance, and nothing that needs images.
    again = json.loads(command("evaluate", *weights, "--against", kept, "--metrics", "fid"))["evaluation"]
    assert set(again) == {f"published_scores/{name}" for name in ("frechet_distance", "samples", "real_examples")}
    assert again["published_scores/frechet_distance"] == pytest.approx(whole["published_scores/frechet_distance"])
    assert again["published_scores/real_examples"] == 40
    clean = "--param=features.inception.resizing='clean'"
    said = command("evaluate", *weights, "--against", kept, "--metrics", "fid", clean, code=2)
    assert "was made with other features" in said
    assert "'resizing': 'tensorflow'" in said


def test_progress_is_reported_with_the_time_left():
    from ganlab_evaluate.counting import Counting

    times, said = iter([0.0, 4.0, 12.0, 13.0, 30.0]), []
    counting = Counting("images", 1000, said.append, lambda: next(times))
    for _ in range(5):
        counting.add(100)
    # 200 in 12 s leave 800 of them, 48 s; 400 in 30 s leave 600, 45 s.
    assert said == ["images: 200 of 1,000 (20%), 48.0 s left", "images: 400 of 1,000 (40%), 45.0 s left"]
