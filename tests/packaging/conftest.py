"""Fixtures for the tests of pages."""

import pytest

from ganlab.plugins import manager as plugins


@pytest.fixture
def here(request, tmp_path, monkeypatch):
    """A working directory with the files of the page that a module tests, and no plugins in use yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "_current", None)
    for name, text in request.module.FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path
