"""A URL in the place of a path is refused by its name, before anything is created."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from command_lines import every_command
from ganlab_time_travel import fork

import ganlab
from ganlab.bounds import Local
from ganlab.cli import cli
from ganlab.cli.options import RunsPath
from ganlab.plugins import manager as plugins
from ganlab.plugins.annotations import annotation
from ganlab.support.atomic import new_file, new_folder
from ganlab.support.paths import is_url, local

URLS = ["gs://bucket/x", "s3://bucket/x", "https://host/x.npz", "file:///x", "abfs+ssl://c@a/x", "GS://b"]
URLS.append(Path("gs://b/x"))
PATHS = ["x", "/x", "./gs:/x", "C:/x", "a:b", "runs/gs:/x", "~/x", "gs:", "", Path("x"), 3, None]

TOY = """
include 'base/toy.gin'
experiment.dataset = @datasets.gaussian_ring()
experiment.steps = 1
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.gin").write_text(TOY)
    yield tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["toy.gin"]


def test_urls_are_known_by_their_scheme():
    assert [url for url in URLS if not is_url(url)] == []
    assert [path for path in PATHS if is_url(path)] == []


def test_every_path_of_the_command_line_is_checked():
    found = 0
    for _, command in every_command():
        for parameter in command.params:
            if isinstance(parameter.type, click.Path):
                found += 1
                unknown = ["-", "no://bucket/x"] + ["memory://bucket/x"] * (not isinstance(parameter.type, RunsPath))
                for given in unknown:
                    with pytest.raises(click.BadParameter, match=f"^{given} is (a URL|standard input)"):
                        parameter.type.convert(given, parameter, click.Context(command))
    assert found > 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "run --gin toy.gin --runs {url}",
        "run --gin {url}",
        "run --gin toy.gin --param experiment.start_from='{url}'",
        "run --gin toy.gin --param experiment.dataset=@datasets.arrays() --param datasets.arrays.path='{url}'",
        "run --gin toy.gin --param experiment.dataset=@datasets.image_folder() "
        "--param datasets.image_folder.path='{url}'",
        "sweep --gin {url}",
        "sweep --gin toy.gin --param experiment.start_from='{url}'",
        "benchmark --suite {url}",
        "benchmark --quick --constraint r1 --against {url}",
        "compare {url}",
        "compare runs/*/a {url}",
        "tensorboard {url}",
        "evaluate --folder . --against {url} --evaluator kid --size 8",
        "verify --gin {url}",
        "plan --gin {url} --topology cpu",
        "config show --gin {url}",
        "sweep --gin toy.gin --runs {url}",
        "sweep --resume {url}",
        "best {url}",
        "benchmark --quick --constraint r1 --runs {url}",
        "benchmark --resume {url}",
        "runs rm {url}",
        "runs show {url}",
        "fork {url} --at 1",
    ],
)
def test_commands_refuse_urls_and_create_nothing(here, line):
    for scheme in ("no", "memory") if not line.startswith("run --gin toy.gin --runs") else ("no",):
        result = CliRunner().invoke(cli, line.format(url=f"{scheme}://bucket/x").split())
        assert result.exit_code == 2, result.output
        assert f"{scheme}://bucket/x" in result.stderr or f"{scheme}:/bucket/x" in result.stderr
        assert any(text in result.stderr for text in ("URL", "memory://bucket/x has no run", "/x is not a run."))


@pytest.mark.parametrize(
    "use",
    [
        lambda url: ganlab.Run(Path(url)),
        lambda url: ganlab.compare(Path(url)),
        lambda url: ganlab.train(None, url),
        lambda url: fork(None, url, at=1),
        ganlab.use_plugin_file,
        lambda url: ganlab.sweep("toy.gin", runs=url),
        lambda url: ganlab.sweep(url),
        lambda url: ganlab.sweep("toy.gin", plugin_file=url),
        lambda url: ganlab.benchmark("quick", constraints="r1", runs=url),
        lambda url: ganlab.benchmark(url),
        lambda url: ganlab.verify(url),
        lambda url: ganlab.component("datasets", "arrays")(path=url),
        lambda url: new_file(url).__enter__(),
        lambda url: new_folder(url).__enter__(),
        lambda url: local(url, "anything"),
    ],
)
def test_functions_refuse_urls_and_create_nothing(here, use):
    with pytest.raises(ganlab.GanlabError, match="URL"):
        use("gs://bucket/x")
    with pytest.raises(ganlab.GanlabError, match="URL"):
        use(Path("gs://bucket/x"))


def test_every_path_of_a_component_is_marked():
    words = ("path", "folder", "file", "dir", "cache", "statistics")
    found = 0
    for component in plugins.current().components.values():
        for name in component.factory.signature.parameters:
            hint = annotation(component.factory.make, name)
            if set(name.split("_")) & set(words) and "str" in str(hint):
                found += 1
                assert repr(Local()) in str(hint), f"{component.factory}.{name}: {hint}"
    assert found >= 7
