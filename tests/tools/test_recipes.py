"""The published files are held against the facts of their sources, and deviations that are planted are found."""

import sys

import pytest
import recipes
from auditing import table, verdicts

from ganlab import config

pytestmark = pytest.mark.usefixtures("cpus")

FILES = {path.stem: path for path in config.shipped_gin_files() if path.parent.name == "published"}


def audit(path, folder=None):
    return verdicts.audit(path, table.Table.of(path.stem, folder or table.FOLDER))


# Of several programs, with small networks.
QUICK = ("gngan_cifar10_cnn", "mimicry_sngan_32", "r3gan_cifar10", "wgan_gp_mnist")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in FILES]
)
def test_published_file_equals_its_source_or_says_what_differs(name):
    rows = audit(FILES[name])
    assert not [str(row) for row in rows if row.failed]
    assert len({row.fact for row in rows}) == len(rows) >= 25


@pytest.mark.parametrize(
    ("name", "there", "planted", "found"),
    [
        ("gngan_cifar10_cnn", "beta_1 = 0.0", "beta_1 = 0.5", {"generator.beta_1", "critic.beta_1"}),
        ("gngan_cifar10_cnn", "experiment.generator_batch_size = 128\n", "", {"generator.batch"}),
        ("gngan_cifar10_cnn", "sndcgan.biases = 'all'", "sndcgan.doubling = 'plain'", {"critic.maps"}),
        ("gngan_cifar10_cnn", "optimizers.adam.corrected_epsilon = True\n", "", {"critic.first_epsilon"}),
        ("gngan_cifar10_resnet", "varied.flip = True", "varied.dequantize = True", {"data.flip", "data.black"}),
        ("gngan_cifar10_resnet", "'he_normal'", "'xavier'", {"generator.start.project", "critic.start.score"}),
        ("gngan_cifar10_resnet", "experiment.ema_buffers = True\n", "", {"ema.buffers"}),
        ("gngan_cifar10_resnet", "experiment.ema_start = 1\n", "", {"ema.rate.1"}),
        ("gngan_cifar10_resnet", "schedule = 'linear'", "schedule = 'cosine'", {"generator.last_rate"}),
        ("mimicry_sngan_64", "'train+validation+test'", "'train'", {"data.split"}),
        ("mimicry_sngan_64", "pooling = 'sum'", "pooling = 'mean'", {"critic.pooling"}),
        ("mimicry_wgan_gp_32", "weight = 10.0", "weight = 1.0", {"constraints.gradient_penalty.weight"}),
        (
            "mimicry_wgan_gp_32",
            "experiment.loss",
            "constraints.gradient_penalty.every = 4\nexperiment.loss",
            {"constraints.gradient_penalty.every"},
        ),
        (
            "mimicry_sngan_32",
            "experiment.loss",
            "experiment.augmentations = [@augmentations.diff_augment()]\nexperiment.loss",
            {"augmentations", "augmentations.diff_augment.policy"},
        ),
        (
            "r3gan_cifar10",
            "gamma/schedules.cosine.end = 0.005",
            "gamma/schedules.cosine.end = 0.05",
            {"constraints.r1.gamma.39062"},
        ),
        (
            "wgan_gp_mnist",
            "experiment.steps",
            "experiment.precision = 'mixed_bfloat16'\nexperiment.steps",
            {"experiment.precision"},
        ),
        ("wgan_mnist", "rmsprop.rho = 0.9", "rmsprop.rho = 0.99", {"critic.rho"}),
        # What the head says.
        ("mimicry_sngan_128", "12.93 +- 0.04", "12.93", {"published.fid"}),
        ("mimicry_wgan_gp_48", "biases start at zero; ", "", {"generator.start.biases"}),
        ("wgan_gp_cifar10_dcgan", "What differs: ", "What differs: images are mirrored; ", {"head"}),
    ],
)
@pytest.mark.slow
def test_planted_deviation_is_found(tmp_path, name, there, planted, found):
    text = FILES[name].read_text()
    assert there in text
    copy = tmp_path / f"{name}.gin"
    copy.write_text(text.replace(there, planted))
    assert {row.fact for row in audit(copy) if row.failed} >= found


@pytest.mark.parametrize(
    ("fact", "verdict"),
    [
        ('critic.beta_1 = [0.5, "train.py:63"]', "DIFFERS"),
        ('critic.beta_1 = [0.5, "train.py:63", "words that are not there"]', "UNDISCLOSED"),
        ('critic.beta_1 = [0.0, "train.py:63", "table 2 of the paper"]', "NEEDLESS WORDS"),
        ('critic.beta = [0.5, "train.py:63"]', "NO PROBE"),
    ],
)
def test_wrong_facts_fail(tmp_path, fact, verdict):
    (tmp_path / "facts.toml").write_text(f'program = "owner/name@0123456"\n[gngan_cifar10_cnn]\n{fact}\n')
    rows = {row.fact: row.verdict for row in audit(FILES["gngan_cifar10_cnn"], tmp_path)}
    assert rows[fact.split(" =")[0]] == verdict
    assert rows["generator.maps"] == "NO ROW"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("[0.0]", "must be"),
        ('[0.0, "somewhere"]', "names no line"),
        ('[0.0, "train.py:6 and more"]', "names no line"),
        ('[0.0, "owner/name@HEAD train.py:6"]', "names no line"),
    ],
)
def test_facts_need_a_line_of_a_pinned_source(tmp_path, row, message):
    (tmp_path / "facts.toml").write_text(f'program = "owner/name@0123456"\n[some_file]\ncritic.beta_1 = {row}\n')
    with pytest.raises(ValueError, match=message):
        table.Table.of("some_file", tmp_path)


def test_command_exits_with_1_on_a_deviation(tmp_path, monkeypatch, capsys):
    copy = tmp_path / "wgan_mnist.gin"
    copy.write_text(FILES["wgan_mnist"].read_text())
    monkeypatch.setattr(sys, "argv", ["recipes.py", str(copy)])
    assert recipes.main() == 0
    assert "1 files" in capsys.readouterr().out
    copy.write_text(FILES["wgan_mnist"].read_text().replace("= 200000", "= 100000"))
    assert recipes.main() == 1
    assert "updates.steps" in capsys.readouterr().out.rpartition("FAILED")[2]
