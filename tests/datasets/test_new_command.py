"""`ganlab new`: an experiment for a user's own images or arrays, which is right, complete, and trains."""

import functools
import struct
import zlib

import numpy as np
import pytest
from command_lines import command, mistake_in
from ganlab_builtin import own_data
from PIL import Image

from ganlab import config
from ganlab.engine import compose, make

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, fresh_plugins):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mistake(here):
    """The message of a wrong `ganlab new`: one line, exit code 2, and no new files."""
    return functools.partial(mistake_in, here, "new")


@pytest.fixture
def flowers(here):
    """Twelve pictures of 20 x 16 pixels in the folders of two classes, one PNG and one JPEG after the other."""
    for i in range(12):
        place = here / "flowers" / ("daisy" if i < 5 else "rose") / f"{i}.{('png', 'jpg')[i % 2]}"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(RANDOM.integers(0, 256, (16, 20, 3), np.uint8)).save(place)
    return here / "flowers"


def arguments(file="flowers.gin"):
    return config.load([str(file)]).arguments


def facts(folder):
    """What `ganlab new` prints about a folder, without what it writes."""
    return "\n".join(own_data.look_at_images(str(folder), size=None, use_classes=True).facts)


def test_class_folders_become_a_conditional_experiment(flowers):
    printed = command("new", "--images", "flowers")
    assert "12 images, colour, 20 x 16 pixels; 6 JPEG, 6 PNG." in printed
    assert "2 classes of 5 to 7: daisy, rose." in printed
    assert "central square of each, resized to 16 x 16" in printed
    assert "\n  ganlab run flowers.gin\n" in printed
    made = arguments()
    assert made["dataset"].arguments == {"path": str(flowers), "size": 16, "channels": 3}
    assert (made["architecture"].name, made["architecture"].arguments["labels"]) == ("dcgan", "projection")
    assert "# Classes: 0 daisy, 1 rose." in (flowers.parent / "flowers.gin").read_text()
    assert [part.name for part in made["augmentations"]] == ["diff_augment"]


def test_classes_can_be_ignored(flowers):
    printed = command("new", "--images", "flowers", "--no-classes", "--size", "8", "-o", "plain.gin")
    made = arguments("plain.gin")
    assert "classes" not in printed
    assert "labels" not in made["architecture"].arguments
    assert made["dataset"].arguments["size"] == 8
    assert "augmentations" not in made  # of eight pixels they would leave little


def assert_trains(file, small):
    settings = ("experiment.steps=4", "experiment.batch_size=8", small)
    printed = command("run", file, *(word for value in settings for word in ("--param", value)))
    assert "Completed at step 4 of 4" in printed
    assert "sliced_wasserstein/distance" in printed


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--no-classes", "--size", "32")], ids=["classes", "none"])
def test_first_run_on_own_pictures_trains(flowers, cpus, options):
    command("new", "--images", "flowers", *options)
    assert_trains("flowers.gin", "architectures.dcgan.channels=4")


@pytest.mark.parametrize(
    ("sides", "size"),
    [([48, 48], 48), ([28], 28), ([500, 500], 64), ([100, 50, 33], 32), ([31, 33], 32), ([9, 10], 8), ([5, 6, 6], 6)],
)
def test_size_is_that_of_the_images_or_the_next_smaller_usual_one(sides, size):
    assert own_data._fitting(sides) == size


def test_grey_pictures_saved_in_colour_get_one_channel(here):
    (here / "grey").mkdir()
    for i in range(3):
        Image.fromarray(np.repeat(RANDOM.integers(0, 256, (9, 9, 1), np.uint8), 3, axis=2)).save(f"grey/{i}.jpg")
    assert "3 images, grey, 9 x 9 pixels" in command("new", "--images", "grey")
    assert arguments("grey.gin")["dataset"].arguments["channels"] == 1


def test_tiny_pictures_get_dense_networks(here):
    (here / "tiny").mkdir()
    Image.new("RGB", (6, 6)).save("tiny/0.png")
    command("new", "--images", "tiny")
    made = arguments("tiny.gin")
    assert (made["architecture"].name, made["dataset"].arguments["size"]) == ("mlp", 6)
    assert "evaluators" not in made  # of one image there are no halves to compare


def picture_that_claims(width, height):
    """A PNG of a few bytes whose header has any size."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def test_broken_files_are_named_and_left_out(flowers):
    (flowers / "rose" / "cut.png").write_bytes((flowers / "rose" / "6.png").read_bytes()[:60])
    (flowers / "rose" / "vast.png").write_bytes(picture_that_claims(60_000, 60_000))
    (flowers / "rose" / "other.webp").touch()
    printed = command("new", "--images", "flowers")
    assert "2 of 14 files cannot be decoded: 'rose/cut.png', 'rose/vast.png'." in printed
    assert "1 file (.webp) will not be read" in printed
    assert "12 images" in printed
    assert arguments()["dataset"].arguments["skip_broken"] is True


def test_folders_that_are_no_classes_are_noticed(flowers, mistake):
    (flowers / "daisy").rename(flowers / "train")
    (flowers / "rose").rename(flowers / "test")
    message = mistake("--images", "flowers")
    assert "are test, train: parts of a set, and not classes" in message
    assert "--no-classes" in message


def test_classes_one_folder_deeper_are_noticed(flowers):
    flowers.rename("jpg")
    flowers.mkdir()
    (flowers.parent / "jpg").rename(flowers / "jpg")
    assert f"Perhaps you mean --images {flowers / 'jpg'}." in facts(flowers)


def test_a_picture_beside_the_classes_is_named(flowers):
    (flowers / "rose" / "6.png").rename(flowers / "6.png")
    Image.new("RGB", (9, 9)).save(flowers / "daisy" / "more.png")
    (flowers / "tulip").mkdir()
    Image.new("RGB", (9, 9)).save(flowers / "tulip" / "one.png")
    printed = facts(flowers)
    assert "no classes, although it has 3 subfolders: not every image is in one of them, '6.png'" in printed


def test_strange_names_stay_data(here):
    folder = here / "it's\n\x1b[31mred\\"
    folder.mkdir()
    Image.new("RGB", (9, 9)).save(folder / "\x1b[2J.png")
    printed = command("new", "--images", folder, "-o", "strange.gin")
    assert "\x1b" not in printed + (here / "strange.gin").read_text()
    assert arguments("strange.gin")["dataset"].arguments["path"] == str(folder)
    assert make(arguments("strange.gin")["dataset"]).size == 1


def test_nothing_is_overwritten_and_nothing_is_left_behind(flowers, here, mistake):
    (here / "flowers.gin").write_text("mine")
    assert mistake("--images", "flowers") == (
        "flowers.gin exists, and is not overwritten. Choose another name with -o FILE."
    )
    (here / "link.gin").symlink_to(here / "nowhere")
    assert mistake("--images", "flowers", "-o", "link.gin").startswith("link.gin exists")
    assert mistake("--images", "flowers", "-o", "a.txt") == "-o a.txt must end in .gin, as experiment files do."
    assert mistake("--images", "flowers", "-o", "no/a.gin") == "-o no/a.gin: there is no folder no. Make it first."
    # Whole at both ends and broken inside, in a folder too large to decode every file of.
    (flowers / "daisy" / "0.png").write_bytes(picture_that_claims(9, 9))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(own_data, "_DECODED", 1)
        assert "0.png" in mistake("--images", "flowers", "-o", "new.gin")
    assert (here / "flowers.gin").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Name your data: either --images DIR or --array FILE."),
        (["--images", "a", "--array", "b"], "Name your data: either --images DIR or --array FILE."),
        (["--images", "a", "--key", "x"], "--key is for --array: leave it out."),
        (["--array", "a.npy", "--size", "32"], "--size is for --images: leave it out."),
        (["--array", "a.npz", "--labels", "y", "--no-classes"], "names classes, and --no-classes ignores them"),
        (["--images", "https://a.b/c"], "is a URL"),
        (["--images", "nowhere"], "is not there: no folder"),
        (["--array", "nowhere.npy"], "is not there: no file"),
        (["--array", "a.csv"], "must be a .npy or a .npz file"),
    ],
)
def test_mistakes(mistake, options, message):
    assert message in mistake(*options)


def test_largest_array_and_its_classes_are_found(here):
    x, y = RANDOM.integers(0, 256, (30, 10, 12), np.uint8), RANDOM.integers(0, 3, 30)
    np.savez(here / "set.npz", x_test=x[:9], y_test=y[:9], x_train=x, y_train=y)
    printed = command("new", "--array", "set.npz")
    assert "30 images of 10 x 12 pixels, grey." in printed
    assert "Of x_test, x_train this is x_train; --key chooses another." in printed
    made = arguments("set.gin")["dataset"].arguments
    assert made == {"path": str(here / "set.npz"), "key": "x_train", "labels": "y_train"}
    for words, labels in (("--no-classes", None), ("--key=x_test", "y_test")):
        command("new", "--array", "set.npz", words, "-o", f"{labels}.gin")
        assert arguments(f"{labels}.gin")["dataset"].arguments.get("labels") == labels


@pytest.mark.parametrize(
    ("name", "values", "bounds"),
    [
        ("unit", RANDOM.uniform(0, 1, (8, 8, 8, 3)), (0.0, 1.0)),
        ("bytes_as_floats", RANDOM.uniform(0, 255, (8, 8, 8, 3)).astype(np.float32), (0.0, 255.0)),
        ("whole", RANDOM.integers(0, 256, (8, 8, 8)).astype(np.int64), (0.0, 255.0)),
        ("other", np.linspace(-3, 7, 8 * 64).reshape(8, 8, 8), (-3.0, 7.0)),
        ("symmetric", RANDOM.uniform(-1, 1, (8, 8, 8)), None),
        ("rounded", np.linspace(-1e-9, 1.0000002, 8 * 64).reshape(8, 8, 8), (0.0, 1.0)),
        ("sixteen", np.linspace(0, 16, 8 * 64).reshape(8, 8, 8), (0.0, 16.0)),
        ("uint8", RANDOM.integers(0, 256, (8, 8, 8), np.uint8), None),
        ("points", RANDOM.normal(size=(9, 2)), None),
        ("spectra", np.linspace(0, 90, 9 * 5).reshape(9, 5), (0.0, 90.0)),
    ],
)
def test_values_become_minus_one_to_one(here, name, values, bounds):
    np.save(here / f"{name}.npy", values)
    settings = own_data.look_at_array(f"{name}.npy", key=None, labels=None, use_classes=True).settings
    assert (settings.get("low"), settings.get("high")) == (bounds or (None, None))


def test_vectors_get_dense_networks(here):
    rows = np.linspace(0, 90, 40 * 5).reshape(40, 5)
    np.savez(here / "spectra.npz", intensity=rows, kind=np.arange(40) % 4)
    printed = command("new", "--array", "spectra.npz")
    assert "40 vectors of 5." in printed
    experiment = compose(config.load(["spectra.gin"]))
    assert (type(experiment.architecture).__name__, experiment.architecture.labels) == ("MLP", "projection")
    examples = np.asarray(experiment.dataset.examples(np.arange(40), 0))
    np.testing.assert_allclose(examples, rows / 45 - 1, atol=1e-6)
    assert "4 classes of 10 each" in printed


def test_whole_numbers_that_are_no_classes_are_left_out(here):
    np.savez(here / "set.npz", x=RANDOM.normal(size=(6, 3)), year=1_900_000 + np.arange(6))
    data = own_data.look_at_array("set.npz", key=None, labels=None, use_classes=True)
    assert (data.labelled, data.settings) == (False, {"path": "set.npz", "key": "x"})
    assert any(fact.startswith("year are not classes") for fact in data.facts)


def test_arrays_that_are_left_out_are_named_with_the_reason(here):
    kind = np.arange(40) % 4
    others = {"energy": kind / 3, "long": np.arange(41), "names": kind.astype(str)}
    np.savez(here / "set.npz", x=RANDOM.normal(size=(40, 5)), kind=kind, **others, one_hot=np.eye(4, dtype=int)[kind])
    printed = command("new", "--array", "set.npz")
    assert (
        "Left out: energy (not stored as whole numbers; datasets.arrays.conditions takes it), long (not 40 rows), "
        "names (not stored as whole numbers), one_hot (several numbers a row). Classes are one whole number a row."
    ) in " ".join(printed.split())
    assert arguments("set.gin")["dataset"].arguments["labels"] == "kind"


@pytest.mark.slow
def test_first_run_on_own_vectors_trains(here, cpus):
    np.savez(here / "spectra.npz", intensity=RANDOM.normal(size=(40, 5)), kind=np.arange(40) % 4)
    command("new", "--array", "spectra.npz")
    assert_trains("spectra.gin", "architectures.mlp.width=8")


def test_a_torn_array_is_refused_by_its_dataset(here, mistake):
    np.savez(here / "set.npz", x=RANDOM.normal(size=(50, 50)))
    (here / "set.npz").write_bytes((here / "set.npz").read_bytes()[:4000])
    assert "cannot be read as a numpy file" in mistake("--array", "set.npz")
    (here / "objects.npy").write_bytes(b"")
    np.save(here / "objects.npy", np.array([[1], [1, 2]], object), allow_pickle=True)
    assert "holds Python objects" in mistake("--array", "objects.npy")
