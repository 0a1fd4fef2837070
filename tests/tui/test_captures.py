"""The captures screen, on directories as extraction leaves them and on damaged ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from kerncap.core.loop.captures import Listed
from tui.stage import Stage, stage


def listed(directory: Path, name: str = "mul_mat_vec_q", **more: Any) -> Listed:
    values: dict[str, Any] = {
        "directory": directory,
        "kernel": name,
        "symbol": name,
        "arch": "gfx942",
        "simulated": True,
        "bytes": 1000,
        "bytes_on_disk": 2000,
        "created": "2026-01-02T03:04:05Z",
        "verdict": "IDENTICAL",
        "problem": None,
    }
    return Listed(**{**values, **more})


def damaged(where: Path) -> None:
    (where / "capture").mkdir(parents=True)
    (where / "capture/manifest.json").write_text(json.dumps({"schema": "kerncap-capture/nonsense"}))


async def opened(st: Stage, *captures: Listed) -> None:
    """The screen with a list that the test gives."""
    await st.press("c")
    await st.app.workers.wait_for_complete()
    await st.settle()
    if captures:
        st.screen.table.take(list(captures))
        await st.settle()


async def test_nothing_there_is_said() -> None:
    async with stage(command=None) as st:
        await opened(st)
        assert "No capture here yet" in st.text()
        await st.press("escape")
        assert st.screen is st.leaderboard


async def test_a_capture_is_listed_with_size_arch_kernel_and_verdict(own_home: Path) -> None:
    for size in ((80, 24), (120, 40), (200, 50)):
        async with stage(size, command=None) as st:
            (own_home / "isolated/a").mkdir(parents=True, exist_ok=True)
            await opened(st, listed(own_home / "isolated/a", "f[abi:cxx11](int)"))
            text = st.text()
            for part in (
                "f[abi:cxx11](int)",
                "gfx942 (simulated)" if size[0] > 80 else "gfx942 sim",
                "2.0 KB",
                "IDENTICAL",
            ):
                assert part in text


async def test_enter_opens_the_workbench(own_home: Path) -> None:
    where = own_home / "isolated/a"
    where.mkdir(parents=True)
    async with stage(command=None) as st:
        await opened(st, listed(where))
        await st.press("enter")
        assert st.opened == [where]


async def test_a_damaged_one_says_why_and_is_not_opened(own_home: Path) -> None:
    damaged(own_home / "isolated/broken")
    async with stage(command=None) as st:
        await opened(st)
        assert "damaged" in st.text()
        await st.press("e")
        assert not st.opened
        assert "manifest.json" in str(st.screen.query_one("StatusLine").text)
        await st.press("i")
        assert "This capture cannot be used" in st.text()


async def test_a_directory_removed_while_open_is_a_sentence(own_home: Path) -> None:
    where = own_home / "isolated/a"
    where.mkdir(parents=True)
    async with stage(command=None) as st:
        await opened(st, listed(where))
        shutil.rmtree(where)
        await st.press("enter")
        assert not st.opened
        assert "is gone" in st.text()
        assert st.app.is_running


async def test_deleting_asks_and_no_is_the_first_answer(own_home: Path) -> None:
    damaged(own_home / "isolated/broken")
    async with stage(command=None) as st:
        await opened(st)
        await st.press("x")
        assert "cannot be brought back" in st.text()
        await st.press("enter")
        assert (own_home / "isolated/broken").is_dir()
        await st.press("x", "y")
        await st.app.workers.wait_for_complete()
        await st.settle()
        assert not (own_home / "isolated/broken").exists()
        assert list((own_home / "isolated").iterdir()) == []
        assert "is deleted" in str(st.screen.query_one("StatusLine").text)


async def test_another_folder_can_be_looked_at(own_home: Path) -> None:
    damaged(own_home / "elsewhere/x")
    async with stage(command=None) as st:
        await opened(st)
        await st.press("o", *["backspace"] * 20)
        await st.press(*"nowhere", "enter")
        assert "nowhere is no directory" in st.text()
        await st.press(*["backspace"] * 20)
        await st.press(*"elsewhere", "enter")
        await st.app.workers.wait_for_complete()
        await st.settle()
        assert st.screen.table.keys == ["elsewhere/x"]


async def test_instances_are_told_apart_by_arguments_and_id(own_home: Path) -> None:
    for size in ((80, 24), (100, 30), (120, 40)):
        async with stage(size, command=None) as st:
            names = [f"void red::block_sum<float, {n}>(float const*, float*, int)" for n in (128, 256)]
            both = [
                listed(own_home / f"isolated/{i}", "block_sum", demangled=name, id=f"{i}a59fb0123456789")
                for i, name in enumerate(names)
            ]
            await opened(st, *both)
            text = st.text()
            assert "block_sum<float, 128>" in text
            assert "block_sum<float, 256>" in text
            assert ("0a59fb" in text) is (size[0] >= 100)
