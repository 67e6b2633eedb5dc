"""The commit of a stranger's repository is read, and its configuration is not obeyed."""

import os
import subprocess

import pytest

from ganlab.runs.repository import git_state


@pytest.fixture
def git(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def git(*arguments):
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always")
        done = subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git.folder = folder
    return git


def commit(git, *arguments):
    git("init", "--quiet", *arguments)
    (git.folder / "code.py").write_text("1\n")
    (git.folder / ".gitattributes").write_text("*.py filter=own diff=own ident\n")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    return git("rev-parse", "HEAD")


def test_commit_and_changes_of_tracked_files_are_reported(git, monkeypatch):
    assert git_state(git.folder) is None
    git("init", "--quiet")
    assert git_state(git.folder) is None  # no commit yet
    made = commit(git)
    (git.folder / "runs").mkdir()
    (git.folder / "runs" / "run.json").write_text("{}")
    assert git_state(git.folder / "runs") == {"commit": made, "dirty": False}
    (git.folder / "code.py").write_text("2\n")
    assert git_state(git.folder) == {"commit": made, "dirty": True}
    monkeypatch.setenv("PATH", str(git.folder))
    assert git_state(git.folder) is None
    assert git_state(git.folder / "nowhere") is None


COMMANDS = (
    "core.fsmonitor",
    "filter.own.clean",
    "filter.own.smudge",
    "filter.own.process",
    "diff.own.textconv",
    "diff.external",
    "core.pager",
    "pager.status",
    "core.sshCommand",
    "core.editor",
    "credential.helper",
    "core.alternateRefsCommand",
)


@pytest.mark.parametrize("setting", COMMANDS)
def test_no_command_of_the_repository_is_executed(git, setting):
    made = commit(git)
    git("config", setting, f"touch {git.folder / 'executed'}; cat")
    git("config", "filter.own.required", "true")
    os.utime("code.py", (1, 1))  # git reads the file again
    assert git_state(git.folder) == {"commit": made, "dirty": False}
    (git.folder / "code.py").write_text("2\n")
    assert git_state(git.folder) == {"commit": made, "dirty": True}
    assert not (git.folder / "executed").exists()


@pytest.mark.parametrize("setting", ["core.fsmonitor", "filter.own.clean"])
def test_git_itself_would_execute_it(git, setting):
    commit(git)
    git("config", setting, f"touch {git.folder / 'executed'}; cat")
    os.utime("code.py", (1, 1))
    git("status")
    assert (git.folder / "executed").exists()


def test_hooks_and_included_settings_are_not_executed(git):
    made = commit(git)
    hook = git.folder / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {git.folder / 'executed'}\n")
    hook.chmod(0o755)
    (git.folder / "more").write_text(f"[core]\nfsmonitor = touch {git.folder / 'executed'}\n")
    git("config", "include.path", str(git.folder / "more"))
    os.utime("code.py", (1, 1))
    assert git_state(git.folder) == {"commit": made, "dirty": False}
    assert not (git.folder / "executed").exists()


def test_settings_of_submodules_are_not_obeyed(git):
    commit(git)
    git("clone", "--quiet", ".", "../other")
    git("submodule", "--quiet", "add", "../other", "inner")
    git("commit", "--quiet", "-m", "second")
    git("-C", "inner", "config", "core.fsmonitor", f"touch {git.folder / 'executed'}")
    assert git_state(git.folder) == {"commit": git("rev-parse", "HEAD"), "dirty": False}
    inside = git_state(git.folder / "inner")
    assert not (git.folder / "executed").exists()
    assert inside == {"commit": git("-C", "../other", "rev-parse", "HEAD"), "dirty": False}


def test_a_packed_a_detached_and_a_linked_commit_are_read(git):
    first = commit(git)
    git("gc", "--quiet")
    git("pack-refs", "--all")
    assert git_state(git.folder) == {"commit": first, "dirty": False}
    (git.folder / "code.py").write_text("2\n")
    git("commit", "--quiet", "--all", "-m", "second")
    git("checkout", "--quiet", first)
    assert git_state(git.folder) == {"commit": first, "dirty": False}
    git("worktree", "add", "--quiet", "../linked", "HEAD@{1}")
    linked = git.folder.parent / "linked"
    assert git_state(linked) == {"commit": git("rev-parse", "HEAD@{1}"), "dirty": False}
    (linked / "code.py").write_text("3\n")
    assert git_state(linked)["dirty"]
    assert not git_state(git.folder)["dirty"]
    (git.folder / "code.py").write_text("4\n")
    git("add", "code.py")
    assert git_state(git.folder)["dirty"]


def test_a_repository_of_longer_hashes_is_read(git):
    made = commit(git, "--object-format=sha256")
    assert len(made) == 64
    assert git_state(git.folder) == {"commit": made, "dirty": False}


@pytest.mark.parametrize(
    "head", ["ref: ../secret", "ref: refs/heads/\0", "ref: HEAD", "x" * 40, "", "ref: /etc/passwd", "ref: refs"]
)
def test_an_invalid_head_is_no_commit(git, head):
    commit(git)
    (git.folder / "secret").write_text("a" * 40)
    (git.folder / ".git" / "HEAD").write_text(head)
    assert git_state(git.folder) is None


@pytest.mark.parametrize("text", ["gitdir: nowhere", "", "gitdir: \0"])
def test_an_invalid_link_to_a_repository_is_none(git, text):
    (git.folder / ".git").write_text(text)
    assert git_state(git.folder) is None
