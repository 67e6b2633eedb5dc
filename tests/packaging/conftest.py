import pytest


@pytest.fixture
def here(request, tmp_path, monkeypatch, fresh_plugins):
    """A working directory with the files of the page that a module tests, and no plugins in use yet."""
    monkeypatch.chdir(tmp_path)
    for name, text in request.module.FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path
