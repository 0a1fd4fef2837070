"""The extract dialog: what it asks, refuses, shows and leaves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kerncap.core.errors import UsageError
from kerncap.core.extract.capture_run import Progress
from kerncap.core.extract.extract import ExtractResult
from kerncap.core.extract.extract_running import _not_again
from kerncap.core.program.control import CaptureRequest
from kerncap.tui.extract.form import free_output, parse_grid
from kerncap.tui.extract.progress import bytes_text
from kerncap.tui.messages import ExtractionEnded, ExtractionProgress
from tui.stage import Stage, kernel, stage


def running(st: Stage) -> None:
    """The program has a session, as a real one has."""
    st.program.session = SimpleNamespace(directory=Path("/nowhere/session"))


def result(where: Path, verdict: str = "IDENTICAL", **more: Any) -> ExtractResult:
    source = SimpleNamespace(
        variant="kernel_variant.hip", files=["a", "b"], language="hip", reason=None, to_json=dict
    )
    values: dict[str, Any] = {
        "output": str(where),
        "kernel": "mul_mat_vec_q",
        "symbol": "mul_mat_vec_q",
        "id": "0" * 16,
        "dispatch": 12,
        "device": "sim:gfx942",
        "arch": "gfx942",
        "grid": (8192, 1, 1),
        "block": (64, 1, 1),
        "regions": 7,
        "bytes": 123_456_789,
        "bytes_on_disk": 120_000_000,
        "changed_bytes": 4096,
        "snapshot_s": 0.25,
        "source": source,
        "baseline": {"verdict": verdict},
    }
    return ExtractResult(**{**values, **more})


async def opened(st: Stage) -> None:
    await st.show()
    running(st)
    await st.press("e")


async def test_the_next_dispatch_of_the_running_program_is_one_key_away(own_home: Path) -> None:
    async with stage() as st:
        await opened(st)
        text = st.text()
        assert "(•) the next" in text
        assert "(•) the program that runs" in text
        assert "isolated/mul_mat_vec_q" in text
        assert "GB free" in text
        await st.press("enter")
        wanted = st.extractions[0].wanted
        assert st.extractions[0].started
        assert wanted.kernel_id == st.leaderboard.table.selected.id  # type: ignore[union-attr]
        assert wanted.session == Path("/nowhere/session")
        assert wanted.dispatch == 0
        assert wanted.output == Path("isolated/mul_mat_vec_q")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_progress_in_bytes_with_rate_and_time_left(size: tuple[int, int]) -> None:
    async with stage(size) as st:
        await opened(st)
        await st.press("enter")
        dialog = st.screen
        dialog.post_message(ExtractionProgress(Progress("waiting", dispatches=7)))
        await st.settle()
        assert "waiting for the dispatch" in st.text()
        st.clock[0] = 2.0
        dialog.post_message(ExtractionProgress(Progress("saving", 2_000_000_000, 8_000_000_000, 1.0)))
        await st.settle()
        text = st.text()
        assert "2.00 GB of 8.00 GB, 2.00 GB/s, 3 s left" in text
        assert "2.0 s" in text  # how long it waited
        assert "esc cancels" in text


def test_bytes_before_anything_is_known() -> None:
    assert bytes_text(Progress("waiting")) == ""
    assert bytes_text(Progress("saving", 0, 500, 0.0)) == "0 B of 500 B"


async def test_escape_cancels_and_says_that_nothing_is_left() -> None:
    async with stage() as st:
        await opened(st)
        await st.press("enter", "escape")
        assert st.extractions[0].cancelled
        assert "cancelling" in st.text()
        await st.press("escape")  # a second time changes nothing
        st.screen.post_message(ExtractionEnded(None, "cancelled", cancelled=True))
        await st.settle()
        assert st.screen is st.leaderboard
        assert "nothing was left" in st.told()


async def test_the_result_opens_the_workbench(own_home: Path) -> None:
    async with stage() as st:
        await opened(st)
        await st.press("enter")
        where = own_home / "isolated/mul_mat_vec_q"
        st.screen.post_message(ExtractionEnded(result(where)))
        await st.settle()
        text = st.text()
        assert "IDENTICAL" in text
        assert "7 regions, 123.5 MB" in text
        assert "(120.0 MB on disk)" in text
        assert "changed   4.1 KB by the dispatch" in text
        assert "kernel_variant.hip and 1 more file" in text
        assert "more files" not in text
        await st.press("enter")
        assert st.opened == [where]


async def test_the_result_on_an_nvidia_gpu_is_in_blocks_of_threads(own_home: Path) -> None:
    async with stage() as st:
        await opened(st)
        await st.press("enter")
        taken = result(own_home / "isolated/saxpy", device="cuda:0", arch="sm_90")
        st.screen.post_message(ExtractionEnded(taken))
        await st.settle()
        assert "128 x 1 x 1 blocks of 64 x 1 x 1 threads (8192 in all)" in st.text()


async def test_a_result_without_source_says_what_enter_does(own_home: Path) -> None:
    async with stage() as st:
        await opened(st)
        await st.press("enter")
        where = own_home / "isolated/mul_mat_vec_q"
        nothing = SimpleNamespace(variant=None, files=[], reason="It was not looked for.", to_json=dict)
        st.screen.post_message(ExtractionEnded(result(where, source=nothing)))
        await st.settle()
        assert "enter replays it: there is no source to edit" in st.text()
        assert "opens the workbench" not in st.text()
        await st.press("enter")
        assert st.opened == [where]


async def test_a_failure_is_a_sentence_and_the_form_is_there_again() -> None:
    async with stage() as st:
        await opened(st)
        await st.press("enter")
        ident = st.extractions[0].wanted.kernel_id
        st.program.session = None  # the program has ended
        st.screen.post_message(
            ExtractionEnded(None, f"every program has ended, and {ident} was not launched")
        )
        await st.settle()
        assert "every program has ended, and mul_mat_vec_q was not launched" in st.text()
        await st.press("enter")
        text = st.text()
        assert "(•) a rerun of it" in text
        assert "(•) number" in text
        await st.press("enter")
        wanted = st.extractions[1].wanted
        assert wanted.session is None
        assert wanted.dispatch == 1


async def test_the_nth_dispatch_with_a_grid_by_a_rerun(own_home: Path) -> None:
    async with stage() as st:
        await opened(st)
        await st.press("right")  # number
        await st.press("tab", "backspace", *"123")
        await st.press("tab", *"512x2")
        await st.press("tab", "right")  # a rerun
        await st.press("tab", *str(own_home))
        await st.press("enter")
        wanted = st.extractions[0].wanted
        assert wanted.dispatch == 123
        assert wanted.grid == (512, 2, 1)
        assert wanted.session is None
        assert wanted.source_dir == own_home


async def test_what_cannot_be_is_said_beside_the_field(own_home: Path) -> None:
    (own_home / "isolated/mul_mat_vec_q").mkdir(parents=True)
    async with stage() as st:
        await opened(st)
        assert "isolated/mul_mat_vec_q-2" in st.text()  # never over an earlier one
        await st.press("right", "tab", "backspace", *"3", "enter")
        assert "dispatch 3 is over (10 were launched)" in st.text()
        assert not st.extractions
        await st.press("backspace", *"99", "tab", *"0", "enter")
        assert "is not one to three positive numbers" in st.text()
        await st.press("backspace", "tab", "tab", *"/no/such", "enter")
        assert "source directory /no/such does not exist" in st.text()
        assert not st.extractions


async def test_a_key_pressed_too_soon_opens_one_dialog() -> None:
    async with stage() as st:
        await st.show()
        running(st)
        await st.press("e", "e", "enter")
        assert len(st.app.screen_stack) == 2


async def test_without_a_program_or_kernel_it_says_so() -> None:
    async with stage(command=None) as st:
        await st.press("e")
        assert "no kernel" in st.told()


async def test_leaving_ends_an_extraction() -> None:
    async with stage() as st:
        await opened(st)
        await st.press("enter")
        st.app.close_down()
        assert st.extractions[0].cancelled
        assert st.program.ended_now


async def test_the_slowest_so_far_is_a_rerun_of_its_number() -> None:
    async with stage() as st:
        slow = kernel(0, calls=50, slowest_dispatch=33)
        await st.show(slow, allocated=5_000_000)
        running(st)
        await st.press("e")
        text = st.text()
        assert "slowest (#33, 3.000 us)" in text
        assert "at most 5.0 MB, all that the program allocated" in text
        await st.press("left")
        assert "(•) a rerun of it" in st.text()
        await st.press("enter")
        assert st.extractions[0].wanted.dispatch == 33
        assert st.extractions[0].wanted.session is None


async def test_more_than_the_disk_holds_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kerncap.core.loop.captures.free_bytes", lambda path: 100_000_000)
    async with stage() as st:
        await st.show(allocated=64_000_000_000)
        running(st)
        await st.press("e")
        assert "at most 64.00 GB" in st.text()
        assert st.screen.query_one("#room").has_class("-tight")


def test_grids() -> None:
    assert parse_grid("", "threads") is None
    assert parse_grid(" 512, 2 ", "threads") == (512, 2, 1)
    for bad in ("a", "1,2,3,4", "0", "-1"):
        with pytest.raises(UsageError, match=r"three positive numbers \(threads: 512"):
            parse_grid(bad, "threads")


def test_a_free_name_for_the_output(own_home: Path) -> None:
    assert free_output(own_home / "a") == own_home / "a"
    (own_home / "a").mkdir()
    (own_home / "a-2").symlink_to("nowhere")
    assert free_output(own_home / "a") == own_home / "a-3"


async def waits(st: Stage, seconds: float) -> str:
    """The dispatch has not come for so long."""
    st.screen.post_message(ExtractionProgress(Progress("waiting")))
    await st.settle()
    st.clock[0] += seconds
    await st.pilot.pause(0.6)  # the dialog looks every quarter of a second
    await st.settle()
    return " ".join(st.text().replace("│", " ").split())


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_kernel_that_is_not_launched_again_can_be_had_by_a_rerun(size: tuple[int, int]) -> None:
    async with stage(size) as st:
        once = kernel(0, calls=1)
        await st.show(once)
        running(st)
        await st.press("e", "enter")
        assert "It was launched" not in await waits(st, 1.0)
        await st.show(once)  # the program goes on
        text = await waits(st, 8.5)
        assert "It was launched once so far, and not since this was asked for." in text
        assert "r captures one by a rerun, from the start." in text
        assert "r by a rerun instead esc cancels" in text
        await st.press("r")
        assert st.extractions[0].cancelled
        assert "cancelling" in st.text()
        st.screen.post_message(ExtractionEnded(None, "cancelled", cancelled=True))
        await st.settle()
        wanted = st.extractions[1].wanted
        assert wanted.session is None
        assert wanted.dispatch == 1
        assert wanted.output == st.extractions[0].wanted.output
        text = await waits(st, 9.0)
        assert "It was launched" not in text  # which is of the other run
        assert "r by a rerun" not in text
        await st.press("r")
        assert not st.extractions[1].cancelled


async def test_launches_that_are_others_are_counted(own_home: Path) -> None:
    async with stage() as st:
        await st.show(kernel(0, calls=10))
        running(st)
        await st.press("e", "right", "tab", "backspace", *"99", "enter")
        await st.show(kernel(0, calls=12))
        text = await waits(st, 5.0)
        assert "It was launched 12 times so far; dispatch 99 is waited for." in text


async def test_after_the_end_of_the_program_r_is_a_rerun() -> None:
    async with stage() as st:
        await opened(st)
        await st.press("enter")
        st.program.session = None
        st.screen.post_message(ExtractionEnded(None, "every program of the session has ended"))
        await st.settle()
        assert "r captures one by a rerun" in st.text()
        await st.press("r")
        assert st.extractions[1].wanted.session is None
        assert st.extractions[1].wanted.dispatch == 1


async def test_one_dispatch_is_no_dispatches() -> None:
    async with stage() as st:
        await opened(st)
        await st.press("enter")
        st.screen.post_message(ExtractionProgress(Progress("waiting", dispatches=1)))
        await st.settle()
        assert "1 dispatch so far" in st.text()


def test_the_end_of_all_programs_says_how_often_it_was_launched() -> None:
    once = kernel(0, "saxpy", calls=1)
    request = CaptureRequest("saxpy", Path("out"), nth=0)
    assert "saxpy was not launched again (once in all); another run" in _not_again("saxpy", request, [once])
    third = CaptureRequest("saxpy", Path("out"), nth=3, grid=(64, 1, 1))
    text = _not_again("saxpy", third, [once])
    assert "was not launched again as dispatch 3 with the grid 64x1x1 (once in all)" in text
    assert "saxpy was not launched at all" in _not_again("saxpy", request, [])
