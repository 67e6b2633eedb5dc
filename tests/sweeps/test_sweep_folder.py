from dataclasses import replace

import pytest
from ganlab_sweep import Configuration, Sweep

from ganlab import RunError

INFO = {"asked": {"seeds": [0]}, "proposals": [], "trials": {}}
TWO = [Configuration("a=1", {"x.a": "1"}, "# one\n"), Configuration("a=2", {"x.a": "2"}, "# two\n")]


def test_a_new_sweep_is_read_back(tmp_path):
    made = Sweep.create(tmp_path / "runs" / "s", INFO, TWO)
    read = Sweep(tmp_path / "runs" / "s")
    assert read.info == made.info
    assert read.configurations() == TWO
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["s"]
    assert read.gin("a=1").read_text() == "# one\n"
    assert read.run("a=1", 3) == read.path / "a=1" / "s3"


def test_a_sweep_that_cannot_be_created_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        Sweep.create(tmp_path / "s", {**INFO, "no json": object()}, TWO)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"cannot be made: (Not a directory|File exists)\. Choose another --runs\."):
        Sweep.create(tmp_path / "file" / "s", INFO, TWO)


def test_only_one_process_holds_a_sweep_and_it_rereads_the_file(tmp_path):
    first = Sweep.create(tmp_path / "s", INFO, [])
    second = Sweep(tmp_path / "s")
    second.request = replace(second.request, seeds=[7])
    with first.locked():
        with pytest.raises(RunError, match="Another process is working on the sweep"), second.locked():
            pass
        first.add(TWO[0])
        first.save()
    with second.locked():
        assert second.configurations() == TWO[:1]
        assert second.request.seeds == [7]


@pytest.mark.parametrize("name", ["trials/base-s0.log", "a=1", "a=1/s0", "trials"])
def test_a_sweep_that_would_write_elsewhere_is_refused_and_links_to_it_are_followed(tmp_path, name):
    path = Sweep.create(tmp_path / "s", INFO, TWO).path
    (tmp_path / "latest").symlink_to("s")
    (path / "a=2").symlink_to("trials")
    with Sweep(tmp_path / "latest").locked():
        pass
    (tmp_path / "outside").mkdir()
    if name == "trials":
        (path / name).rename(path / "moved")
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).symlink_to(tmp_path / "outside")
    with pytest.raises(RunError, match=f"{name} is a link to .*outside, out of"), Sweep(path).locked():
        pass


@pytest.mark.parametrize(("text", "message"), [(None, "No sweep at"), ("{", "is not JSON"), ("{}", "asked is missing")])
def test_invalid_sweeps_are_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(RunError, match=message):
        Sweep(tmp_path)
