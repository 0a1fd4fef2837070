"""Editing: in place, in the user's editor, in a split of tmux."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from workbench_stage import workbench

from kerncap.tui.settings import Settings
from kerncap.tui.widgets.bars import KeyBar
from kerncap.tui.workbench import editor


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


async def test_edit_here_save_and_leave(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        bench.source.chmod(0o640)
        await bench.pilot.press("i", "slash", "slash", "b", "q", "enter")
        assert bench.screen.views.source.editing
        assert bench.app.is_running
        await bench.pilot.press("ctrl+s")
        await bench.attempts(2)
        assert bench.source.read_text().startswith('//bq\n#include "scale.h"')
        assert bench.source.stat().st_mode & 0o777 == 0o640
        await bench.pilot.press("escape")
        await bench.until(lambda: not bench.screen.views.source.editing)
        assert "//bq" in bench.shows("source")


async def test_what_is_not_saved_is_asked_about(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        before = bench.source.read_text()
        await bench.pilot.press("i", "x", "escape")
        assert bench.screen.views.source.editing
        assert "Not saved" in bench.told
        await bench.pilot.press("escape")
        await bench.until(lambda: not bench.screen.views.source.editing)
        assert bench.source.read_text() == before
        assert not bench.shows("source").split(" 1 ")[1].startswith("x")


async def test_a_file_that_changed_meanwhile_is_not_written_over_at_once(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        await bench.pilot.press("i", "slash", "slash", "m", "enter")
        bench.edit("i < n", "i + 1 <= n")  # by another editor
        await bench.pilot.press("ctrl+s")
        assert "has changed on disk" in bench.told
        assert "//m" not in bench.source.read_text()
        await bench.pilot.press("ctrl+s")
        assert bench.source.read_text().startswith("//m\n")


async def test_the_users_editor_is_waited_for_without_blocking(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    vim = script(
        tmp_path / "vim",
        f'echo "$@" > {tmp_path}/arguments; while [ ! -e {go} ]; do sleep 0.02; done\n'
        'sed -i "s/i < n/i + 1 <= n/" "$2"',
    )
    monkeypatch.setenv("EDITOR", str(vim))
    async with workbench(out) as bench:
        await bench.attempts(1)
        await bench.pilot.press("1")
        await bench.pilot.press("down", "down")
        import asyncio

        editing = asyncio.ensure_future(bench.screen.action_edit())
        await bench.until((tmp_path / "arguments").exists)
        assert (tmp_path / "arguments").read_text().split() == ["+3", str(bench.source)]
        assert not editing.done()
        go.touch()
        await asyncio.wait_for(editing, 10)
        await bench.attempts(2)
        assert "i + 1 <= n" in bench.shows("source")


@pytest.mark.parametrize(
    ("body", "sentence"), [("exit 7", "ended with status 7"), (None, "is not installed. Set EDITOR")]
)
async def test_an_editor_that_fails_is_a_sentence(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str | None, sentence: str
) -> None:
    path = tmp_path / "editor"
    if body:
        script(path, body)
    monkeypatch.setenv("VISUAL", str(path))
    async with workbench(out) as bench:
        await bench.attempts(1)
        await bench.pilot.press("e")
        await bench.until(lambda: sentence in bench.told)
        assert ": is not" not in bench.told  # the name is the sentence's subject


async def test_inside_tmux_it_is_a_split(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "tmux", f'printf "%s\\n" "$@" > {tmp_path}/arguments')
    script(tmp_path / "vim", "")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    monkeypatch.setenv("TMUX_PANE", "%7")
    monkeypatch.setenv("EDITOR", "vim -n")
    async with workbench(out, size=(200, 50)) as bench:
        await bench.attempts(1)
        await bench.pilot.press("e")
        await bench.until(lambda: "in a split" in bench.told)
    words = (tmp_path / "arguments").read_text().splitlines()
    assert words[:6] == ["split-window", "-h", "-c", str(out), "-t", "%7"]
    assert words[6].startswith("sh -c ")
    assert words[6].endswith(f" vim -n +1 {out}/kernel_variant.cpp")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("exit 3", "ended at once, with status 3. Set EDITOR, or `editor` in tui.toml; `i` edits here."),
        ("exit 0", "ended at once; a save by what it started is noticed all the same."),
        ("kill -9 $$", "ended at once, with status 137."),
    ],
)
async def test_an_editor_in_a_split_that_ends_at_once_is_told(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, sentence: str
) -> None:
    # As tmux does: what is to run is one text for a shell, and is not waited for.
    script(tmp_path / "tmux", 'for last; do :; done; sh -c "$last" >/dev/null 2>&1 &')
    script(tmp_path / "an editor", body)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMUX", "x")
    monkeypatch.setenv("TMPDIR", str(out))
    monkeypatch.setattr(tempfile, "tempdir", None)
    async with workbench(out, settings=Settings(editor="'an editor'")) as bench:
        await bench.attempts(1)
        await bench.pilot.press("e")
        await bench.until(lambda: f"an editor {sentence}" in bench.told)
        assert not list(out.glob("kerncap-editor-*"))


async def test_an_editor_in_a_split_that_stays_is_left_alone(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "tmux", 'for last; do :; done; sh -c "$last" >/dev/null 2>&1 &')
    script(tmp_path / "ed", f"while [ ! -e {tmp_path}/end ]; do sleep 0.05; done; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMUX", "x")
    monkeypatch.setenv("TMPDIR", str(out))
    monkeypatch.setattr(tempfile, "tempdir", None)
    async with workbench(out, settings=Settings(editor="ed")) as bench:
        await bench.attempts(1)
        await bench.pilot.press("e")
        await bench.until(lambda: "in a split" in bench.told)
        await bench.until(lambda: not list(out.glob("kerncap-editor-*")), limit_s=10)
        (tmp_path / "end").touch()
        assert "in a split" in bench.told
        assert not list(out.glob("kerncap-editor-*"))


async def test_tmux_says_why_it_cannot(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "tmux", 'echo "no space for new pane" >&2; exit 1')
    script(tmp_path / "vim", "")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMUX", "x")
    async with workbench(out, settings=Settings(editor="vim")) as bench:
        await bench.attempts(1)
        await bench.pilot.press("e")
        await bench.until(lambda: "tmux: no space for new pane" in bench.told)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["nvim"], ["nvim", "+9", "/a b/k.cpp"]),
        (["/usr/bin/hx"], ["/usr/bin/hx", "/a b/k.cpp:9"]),
        (["code", "-n"], ["code", "-n", "--wait", "-g", "/a b/k.cpp:9"]),
        (["unknown"], ["unknown", "/a b/k.cpp"]),
    ],
)
def test_how_editors_go_to_a_line(words: list[str], command: list[str]) -> None:
    assert editor.command(words, Path("/a b/k.cpp"), 9) == command


def test_which_editor() -> None:
    both = {"VISUAL": "nano -l", "EDITOR": "ed"}
    assert editor.editor_words("hx", both) == ["hx"]
    assert editor.editor_words(None, both) == ["nano", "-l"]
    assert editor.editor_words("  ", {"EDITOR": "'my editor' -x"}) == ["my editor", "-x"]
    assert editor.editor_words(None, {})[0] in ("vim", "vi", "nano")


async def test_at_80_columns_the_key_bar_has_what_is_hard_to_guess(out: Path) -> None:
    async with workbench(out, size=(80, 24)) as bench:
        await bench.attempts(1)
        bar = str(bench.screen.query_one(KeyBar).render())
        for word in ("b build", "e edit", "u revert", "c compare", "f file", "P patch", "esc back", "? help"):
            assert word in bar
        assert len(bar.rstrip()) <= 80
