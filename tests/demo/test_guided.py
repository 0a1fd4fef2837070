"""The demonstration on a terminal: what is said of places, which are not where it was called."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from kerncap.cli.demo_command import _where_captures_are
from tui.conftest import own_home  # noqa: F401
from tui.stage import stage


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment that was not activated."""
    folder = tmp_path / "the venv/bin"
    folder.mkdir(parents=True)
    (folder / "activate").touch()
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    return folder


def test_at_the_end_it_says_how_to_go_on_without_kerncap_in_path(venv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kerncap demo/isolated"
    (folder / "mul_mat_vec_q/capture").mkdir(parents=True)
    assert _where_captures_are(folder) == (
        f"The captures are in {folder}: `kerncap tui --open '{folder}/mul_mat_vec_q'` goes on with one; "
        f"first `. '{venv}/activate'`, since kerncap is not in PATH."
    )
    (folder / "rms_norm/capture").mkdir(parents=True)
    assert "`kerncap tui --open DIR` goes on with one; first" in _where_captures_are(folder)


def test_with_kerncap_in_path_nothing_is_to_be_done_first(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/kerncap")
    assert _where_captures_are(tmp_path).endswith("`kerncap tui --open DIR` goes on with one.")


@pytest.mark.parametrize("guided", [True, False])
async def test_dialogs_show_whole_paths(guided: bool, own_home: Path) -> None:  # noqa: F811
    (own_home / "isolated").mkdir()
    async with stage((200, 50), guided=guided) as st:
        await st.show()
        before = f"{own_home}/" if guided else ""
        await st.press("e")
        assert st.screen.query_one("#output").value == f"{before}isolated/mul_mat_vec_q"
        await st.press("escape", "s")
        assert st.screen.query_one("Input").value.startswith(f"{before}kernels-")
        await st.press("escape", "c", "o")
        assert st.screen.query_one("Input").value == f"{before}isolated"
