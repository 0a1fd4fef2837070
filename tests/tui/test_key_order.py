"""Keys that come in one piece, as over a slow link, go where they are meant."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual import events
from textual.keys import key_to_character
from textual.message import Message

from kerncap.tui.app import KerncapApp
from kerncap.tui.terminal_input import EscapeFirstParser
from tui.stage import Stage, stage
from tui.terminal import Terminal, needs_tmux


async def at_once(st: Stage, *keys: str) -> None:
    """All keys are there before the first is looked at."""
    for key in keys:
        st.app.post_message(events.Key(key, key_to_character(key) if len(key) > 1 else key))
    await st.settle()


def running(st: Stage) -> None:
    st.program.session = SimpleNamespace(directory=Path("/nowhere/session"))


async def test_the_extract_dialog_filled_in_without_a_pause() -> None:
    async with stage() as st:
        await st.show()
        running(st)
        # From the ranking: the next dispatch with a grid of 77 work-items.
        await at_once(st, "e", "tab", "7", "7", "enter")
        await st.until_true(lambda: st.extractions)
        assert st.extractions[0].wanted.grid == (77, 1, 1)
        assert st.extractions[0].wanted.dispatch == 0


async def test_a_choice_that_enables_the_next_field() -> None:
    async with stage() as st:
        await st.show()
        running(st)
        await at_once(st, "e", "right", "tab", "backspace", "9", "9", "enter")
        await st.until_true(lambda: st.extractions)
        assert st.extractions[0].wanted.dispatch == 99


async def test_a_filter_then_a_key_of_the_ranking() -> None:
    async with stage() as st:
        await st.show()
        await at_once(st, "slash", *"rms", "enter", "f", "slash", "backspace", "enter", "space")
        await st.until_true(lambda: st.leaderboard.table.filter.text == "rm")
        assert st.leaderboard.table.marked
        assert st.leaderboard.table.frozen


async def test_no_key_overtakes_one_on_its_way_back_from_the_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    may_go = []

    async with stage() as st:
        await st.show()
        take_back = type(st.app).post_message

        def post(app: KerncapApp, message: Message) -> bool:
            taken = take_back(app, message)
            if isinstance(message, events.Key) and message.is_forwarded:  # it is acted on later
                may_go.append((message.key, app._key_may_go()))
            return taken

        monkeypatch.setattr(type(st.app), "post_message", post)
        await at_once(st, "f", "slash", "r")
        await st.until_true(lambda: st.leaderboard.table.filter.text == "r")
        assert st.leaderboard.table.frozen
        assert may_go == [("f", False)]


async def test_a_filter_line_that_is_opened_again_before_textual_knew_it_was_closed() -> None:
    async with stage() as st:
        await st.show()
        await st.press("slash", "r")
        field = st.app.focused
        assert field is not None
        field.post_message(events.Hide())  # comes once the screen was drawn without it
        await st.press("m")
        assert st.app.focused is field
        assert st.leaderboard.table.filter.text == "rm"


async def test_a_question_answered_before_it_is_drawn(own_home: Path) -> None:
    async with stage() as st:
        await st.show()
        await at_once(st, "s", *["backspace"] * 40, *"a.csv", "enter")
        await st.until_true(lambda: (own_home / "a.csv").exists())
        await at_once(st, "question_mark", "escape", "p")
        await st.until_true(lambda: st.leaderboard.heading.paused)


@pytest.mark.parametrize(
    ("pieces", "keys"),
    [
        (["\x1bf"], ["escape", "f"]),
        (["\x1b", "N"], ["escape", "N"]),
        (["\x1b?\x1b/\x1b1x"], ["escape", "question_mark", "escape", "slash", "escape", "1", "x"]),
        (["\x1b\x1bq"], ["escape", "escape", "q"]),
        (["\x1b[A\x1bOB\x1b[1;3D"], ["up", "down", "alt+left"]),
        (["\x1b", "[A"], ["up"]),
    ],
)
def test_escape_and_the_next_key_are_two(pieces: list[str], keys: list[str]) -> None:
    parser = EscapeFirstParser()
    found = [event for piece in pieces for event in parser.feed(piece)]
    assert [event.key for event in found if isinstance(event, events.Key)] == keys


@needs_tmux
@pytest.mark.timeout(120)
def test_escape_and_a_key_at_once_in_a_terminal(own_home: Path) -> None:
    with Terminal(
        [sys.executable, "-m", "kerncap", "tui", "--device", "sim:gfx942"], directory=own_home
    ) as there:
        there.wait("Press r to run")
        there.keys("?")
        there.wait(r"keys \(esc closes\)")
        there.keys("Escape", "c")
        there.wait("captures in ")
        there.keys("Escape", "q")
        assert there.exit_status() == 0
