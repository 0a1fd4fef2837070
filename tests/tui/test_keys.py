"""The registry: one table for bindings, help, palette and configuration."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from kerncap.tui.actions import REGISTRY, Action, bindings, keymap_problems, keys_of, shown_key
from kerncap.tui.settings import Remembered, Settings, config_path
from kerncap.tui.widgets.bars import StatusLine
from kerncap.tui.workbench.engine import Engine, Facts, Opened
from kerncap.tui.workbench.screen import WorkbenchScreen
from tui.stage import five, stage


async def test_help_lists_every_action_with_its_keys() -> None:
    async with stage((120, 60)) as st:
        await st.press("question_mark")
        text = "\n".join(str(w.render()) for w in st.screen.query("Static"))
        for name in ("leaderboard", "app"):
            for action in REGISTRY[name].actions:
                assert action.title in text
                for key in keys_of(REGISTRY[name], action, {}):
                    assert shown_key(key) in text
        await st.press("escape")
        assert st.screen is st.leaderboard


async def test_page_keys_where_the_palette_has_no_line_yet() -> None:
    from textual.command import CommandList

    async with stage() as st:
        await st.show(*five())
        await st.press("colon")
        found = st.app.screen.query_one(CommandList)
        for _ in range(100):
            if found.option_count:
                break
            await st.pilot.pause(0.02)
        found._index_to_line.clear()  # as it is between the entries' coming and their being laid out
        st.app.screen._action_command_list("page_up")
        await st.press("pagedown", "escape")
        assert st.app.is_running


async def test_every_action_is_in_the_palette_and_runs_from_there() -> None:
    async with stage() as st:
        await st.show(*five())
        await st.press("colon")
        from kerncap.tui.palette import ActionProvider

        provider = ActionProvider(st.leaderboard)
        hits = [hit async for hit in provider.discover()]
        titles = " ".join(str(hit.text) for hit in hits)
        for name in ("leaderboard", "app"):
            for action in REGISTRY[name].actions:
                assert action.title in titles or action.name == "palette"
        await st.press(*"freeze", "down")
        for _ in range(10):
            await st.pilot.pause(0.05)
        await st.press("enter", "enter")
        assert st.leaderboard.table.frozen


async def test_keys_and_theme_come_from_one_toml(own_home: Path) -> None:
    path = config_path()
    path.parent.mkdir(parents=True)
    path.write_text('theme = "nord"\nrefresh_hz = 3\n[keys]\n"leaderboard.freeze" = "z"\napp.quit = "Q"\n')
    async with stage(settings=Settings.load()) as st:
        await st.show(*five())
        assert st.app.theme == "nord"
        assert st.program.hertz == 3
        await st.press("f")
        assert not st.leaderboard.table.frozen
        await st.press("z")
        assert st.leaderboard.table.frozen
        assert " z freeze" in st.text()
        await st.press("q")
        assert not st.program.ended_now
        await st.press("Q")
        assert st.program.ended_now


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("theme = 3", "theme = 3 is not of type str"),
        ("colour = true", "colour is no setting"),
        ("refresh_hz = 1000", "outside 0.2 to 30"),
        ("mouse = 1", "mouse = 1 is not of type bool"),
        ("[keys]\nx = 3", "no string of keys"),
        ("= nonsense", "is not used"),
        ('theme = "no-such"', "theme 'no-such' is not known"),
        ('[keys]\n"leaderboard.no_such" = "z"', "leaderboard.no_such is no action"),
        ('[keys]\n"leaderboard.freeze" = "p"', "key p means both"),
    ],
)
async def test_what_is_wrong_in_the_configuration_is_said_and_the_rest_holds(
    text: str, sentence: str
) -> None:
    path = config_path()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    async with stage(settings=Settings.load()) as st:
        await st.show(*five())
        assert sentence in st.told()
        assert "mul_mat_vec_q" in st.text()


async def test_what_is_wrong_in_it_stays_over_a_workbench_that_is_opened_at_once(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "start", lambda _: None)
    path = config_path()
    path.parent.mkdir(parents=True)
    path.write_text('poll_ms = 99999999\n[keys]\n"workbench.nothing" = "x"\n')
    settings = Settings.load()
    assert settings.poll_ms == 60_000
    async with stage(settings=settings, workbench=own_home / "isolated", command=None) as st:
        await st.until_true(lambda: len(st.app.screen_stack) == 2)
        bench = cast(WorkbenchScreen, st.app.screen)
        facts = Facts("k", "k", "gfx942", iterations=(), problems=("an attempt is damaged",))
        bench.post_message(Opened(facts))
        await st.settle()
        told = bench.query_one(StatusLine).text
        assert "poll_ms = 99999999 is outside 10 to 60000 (0: " in told
        assert "workbench.nothing" in told
        assert "an attempt is damaged" in told
        bench.post_message(Opened(Facts("k", "k", "gfx942", problems=("another",))))
        await st.settle()
        assert bench.query_one(StatusLine).text == "another."


@pytest.mark.parametrize(("poll", "kept"), [(1, 10), (10, 10), (-5, 10), (60_000, 60_000), (0, None)])
def test_how_often_files_are_looked_for_has_limits(own_home: Path, poll: int, kept: int | None) -> None:
    path = own_home / "tui.toml"
    path.write_text(f"poll_ms = {poll}\n")
    settings = Settings.load(path)
    assert settings.poll_ms == kept
    assert bool(settings.problems) == (poll not in (10, 60_000, 0))


async def test_the_configuration_can_be_read_again_while_it_runs() -> None:
    async with stage() as st:
        path = config_path()
        await st.app.run_action("write_config")
        assert path.read_text().startswith("# The terminal UI")
        path.write_text('theme = "gruvbox"\n[keys]\n"leaderboard.freeze" = "z"\n')
        await st.app.run_action("reload")
        await st.settle()
        assert st.app.theme == "gruvbox"
        await st.press("z")
        assert st.leaderboard.table.frozen


def test_a_commented_configuration_is_valid(own_home: Path) -> None:
    from kerncap.tui.settings import TEMPLATE

    path = own_home / "tui.toml"
    path.write_text("\n".join(line.removeprefix("# ") for line in TEMPLATE.splitlines()[1:]))
    settings = Settings.load(path)
    assert settings.problems == ()
    assert settings.editor == "vim"
    assert settings.keymap == {"leaderboard.filter": "slash,f3"}


def test_two_actions_cannot_have_one_key() -> None:
    with pytest.raises(ValueError, match="means both"):
        bindings("broken", "Broken", (Action("a", "x", "A"), Action("b", "x", "B")))
    assert "broken" not in REGISTRY


def test_no_screen_has_a_key_twice_with_those_that_apply_everywhere() -> None:
    import kerncap.tui.screens.captures
    import kerncap.tui.workbench.screen  # noqa: F401

    everywhere = {key for action in REGISTRY["app"].actions for key in action.keys.split(",") if key}
    for name, group in REGISTRY.items():
        if name == "app":
            continue
        for action in group.actions:
            assert not everywhere & set(action.keys.split(",")), (name, action.name)
        assert keymap_problems({}, group) == []
        # ctrl+a and ctrl+b are the prefixes of screen and tmux.
        assert not {"ctrl+a", "ctrl+b", "shift+enter", "ctrl+enter"} & {
            key for action in group.actions for key in action.keys.split(",")
        }


def test_refresh_is_lower_over_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.load().refresh_hz == 4
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 2 10.0.0.2 22")
    assert Settings.load().refresh_hz == 2


def test_a_damaged_memory_is_forgotten(own_home: Path) -> None:
    path = own_home / "state.json"
    path.write_text("{not json")
    memory = Remembered(path)
    assert memory.get("leaderboard.sort", "total") == "total"
    memory.set("leaderboard.sort", "mean")
    assert Remembered(path).get("leaderboard.sort", "total") == "mean"
    path.write_text('{"leaderboard.sort": 7}')
    assert Remembered(path).get("leaderboard.sort", "total") == "total"


async def test_no_color_uses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage() as st:
        await st.show(*five())
        assert st.app.no_color
        assert st.app.theme.startswith("ansi-")
        colours = set()
        for strip in st.screen._compositor.render_strips():
            for segment in strip.apply_filter(st.app._filters[-1], st.screen.background_colors[1]):
                style = segment.style
                if style is not None:
                    colours |= {c.name for c in (style.color, style.bgcolor) if c is not None}
        assert colours <= {"default"}


async def test_G_goes_to_the_end_of_the_help() -> None:
    async with stage((80, 24)) as st:
        await st.press("question_mark")
        assert "NAME:" not in st.text()
        await st.press("G")
        assert "NAME:" in st.text()
        await st.press("home")
        assert "NAME:" not in st.text()
