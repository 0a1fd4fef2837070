"""The leaderboard: every key, with a program that the test drives."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path

import pytest
import xxhash
from textual import events
from textual.keys import key_to_character

from kerncap.core.code.telling import Described
from kerncap.tui.leaderboard.detail import arguments
from kerncap.tui.leaderboard.header import State
from kerncap.tui.leaderboard.ranking import Filter, Sort, name_order, ordered
from kerncap.tui.services.source_sites import Found
from kerncap.tui.widgets.bars import StatusLine
from tui.stage import NAMES, board, five, kernel, stage

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "source"))

from hip_tree import DEVICE_H, FLAGS, Tree, clang


def key_event(key: str) -> events.Key:
    return events.Key(key, key_to_character(key))


def order(st) -> list[str]:
    return [k.name for k in st.leaderboard.table.shown]


async def test_the_hottest_kernel_is_first_and_the_header_says_what_runs() -> None:
    async with stage() as st:
        await st.show(*reversed(five()))
        assert order(st) == list(NAMES)
        text = st.text()
        assert "./decode --tokens 16" in text
        assert "running" in text
        assert "sim:gfx942" in text
        assert "50 dispatches" in text
        assert "cost 0.20%" in text
        assert "simulated" in text


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_names_with_brackets_appear_whole(size: tuple[int, int]) -> None:
    async with stage(size) as st:
        await st.show()
        text = st.text()
        assert "a[/b]c" in text
        assert "f[abi:cxx11]" in text
        if size[0] >= 200:
            assert "f[abi:cxx11](int)[with T = float]" in text
        await st.press("down", "w")
        assert "f[abi:cxx11](int)[with T = float]" in st.text()


@pytest.mark.parametrize(
    ("key", "first", "last"),
    [
        ("t", 0, 4),
        ("m", 0, 4),
        ("i", 0, 4),
        ("a", 0, 4),
        ("N", 4, 3),
        ("l", 4, 0),
    ],
)
async def test_single_letters_sort_and_again_turn_round(key: str, first: int, last: int) -> None:
    async with stage() as st:
        await st.show()
        if key == "t":
            await st.press("n")  # the default is total: from another one to it
        await st.press(key)
        assert order(st)[0] == NAMES[first]
        assert order(st)[-1] == NAMES[last]
        await st.press(key)
        assert order(st)[0] == NAMES[last]


async def test_sorting_by_calls_and_by_kind() -> None:
    async with stage() as st:
        await st.show(kernel(0, "a", calls=1), kernel(1, "b", calls=30), kernel(2, "__amd_copy", calls=7))
        await st.press("n")
        assert order(st) == ["b", "__amd_copy", "a"]
        await st.press("K")
        assert order(st) == ["a", "b", "__amd_copy"]


async def test_equal_kernels_do_not_jump_about() -> None:
    async with stage() as st:
        same = [kernel(i, f"k{i}") for i in range(9)]
        await st.show(*same)
        before = order(st)
        await st.show(*reversed(same))
        assert order(st) == before


async def test_sort_and_layout_are_remembered() -> None:
    async with stage() as st:
        await st.press("m", "m", "w", "o")
    async with stage() as st:
        assert st.leaderboard.table.sort == Sort("mean", True)
        assert st.leaderboard.table.wide
        assert not st.leaderboard.query_one("#output").display


async def test_filter_as_it_is_typed_inverse_and_away() -> None:
    async with stage() as st:
        await st.show()
        await st.press("slash", *"MUL")
        assert order(st) == []
        await st.press("backspace", "backspace", "backspace", *"mul|rms")
        assert order(st) == [NAMES[0], NAMES[3]]
        assert "2 of 5 kernels" in st.text()
        await st.press("enter")
        await st.press("slash", "home", "exclamation_mark", "enter")
        assert order(st) == [NAMES[1], NAMES[2], NAMES[4]]
        assert "/!mul|rms" in st.text()
        await st.press("escape")
        assert len(order(st)) == 5
        assert st.app.is_running  # escape never quits


async def test_keys_typed_at_once_go_where_they_are_meant() -> None:
    async with stage() as st:
        await st.show()
        # Without a pause between them: x would stop the program, e open the dialog.
        for key in ("slash", "x", "slash", "e"):
            st.app.post_message(key_event(key))
        await st.settle()
        assert st.leaderboard.table.filter.text == "x/e"
        assert not st.program.stopped
        for key in ("enter", "f"):
            st.app.post_message(key_event(key))
        await st.settle()
        assert st.leaderboard.table.frozen
        assert st.leaderboard.table.filter.text == "x/e"


async def test_a_filter_that_is_no_expression_says_so_and_changes_nothing() -> None:
    async with stage() as st:
        await st.show()
        await st.press("slash", *"rms")
        await st.press("left_parenthesis")
        assert order(st) == [NAMES[3]]
        assert "no regular expression" in st.text()
        await st.press("escape")
        assert len(order(st)) == 5


def test_filters_know_case_only_where_it_is_given() -> None:
    one = kernel(0, "MulMat")
    assert Filter.parse("mulmat").fits(one)
    assert not Filter.parse("mulMat").fits(one)
    assert not Filter.parse("!mulmat").fits(one)
    assert Filter.parse("!").fits(one)


async def test_keys_act_on_the_kernel_whatever_has_moved() -> None:
    async with stage() as st:
        await st.show()
        await st.press("down", "down")
        chosen = st.leaderboard.table.selected
        assert chosen is not None
        assert chosen.name == NAMES[2]
        grown = five()
        grown[2] = kernel(2, calls=1000, mean_ns=90000)
        await st.show(*grown)
        assert order(st)[0] == NAMES[2]
        selected = st.leaderboard.table.selected
        assert selected is not None
        assert selected.id == chosen.id
        await st.press("space")
        assert st.leaderboard.table.marked == {chosen.id}


async def test_the_cursor_is_on_the_first_row_until_it_is_moved() -> None:
    async with stage() as st:
        await st.show(kernel(1, "early"))
        await st.show(kernel(1, "early"), kernel(2, "hotter", calls=99))
        assert st.leaderboard.table.selected.name == "hotter"  # type: ignore[union-attr]


async def test_a_frozen_order_stays_while_figures_go_on() -> None:
    async with stage() as st:
        await st.show()
        await st.press("f")
        grown = [*five(), kernel(9, "new", calls=10000, mean_ns=90000)]
        grown[4] = kernel(4, calls=9000, mean_ns=90000)
        await st.show(*grown)
        assert order(st) == [*NAMES, "new"]
        assert "ORDER FROZEN" in st.text()
        assert "9000" in st.text()
        await st.press("f")
        assert order(st)[0] == "new"


async def test_a_paused_view_stands_still_and_catches_up() -> None:
    async with stage() as st:
        await st.show()
        await st.press("p")
        await st.show(*five(7), elapsed_s=9.0)
        text = st.text()
        assert "PAUSED" in text
        assert "1.0 s" in text
        assert "50 dispatches" in text
        await st.press("p")
        assert "350 dispatches" in st.text()
        assert "9.0 s" in st.text()


async def test_marks_choose_what_is_saved(own_home: Path) -> None:
    async with stage() as st:
        await st.show()
        await st.press("space", "space", "s")
        await st.press(*["backspace"] * 40)
        await st.press(*"out.json", "enter")
        document = json.loads((own_home / "out.json").read_text())
        assert [k["name"] for k in document["kernels"]] == list(NAMES[:2])
        assert document["kernels"][0]["percent"] == pytest.approx(100 * 9000 / 18500, abs=0.01)
        assert document["clock"] == "simulated"
        await st.press("u", "s")
        await st.press(*["backspace"] * 40)
        await st.press(*"out.csv", "enter")
        rows = list(csv.DictReader((own_home / "out.csv").read_text().splitlines()))
        assert [row["name"] for row in rows] == list(NAMES)
        assert rows[0]["grid"] == "8192x1x1"
        assert "5 kernels saved" in st.told()


async def test_saving_never_overwrites_and_says_why_not(own_home: Path) -> None:
    (own_home / "there.json").write_text("mine")
    async with stage() as st:
        await st.show()
        await st.press("s")
        await st.press(*["backspace"] * 40)
        await st.press(*"there.json", "enter")
        assert "exists already" in st.text()
        await st.press("escape")
    assert (own_home / "there.json").read_text() == "mine"


async def test_copy_goes_to_the_clipboard_and_to_a_file() -> None:
    async with stage() as st:
        await st.show()
        await st.press("down", "y")
        assert st.app.clipboard == NAMES[1]
        path = st.app.remembered.path.with_name("copied.txt")
        assert path.read_text() == NAMES[1] + "\n"
        assert str(path)[:20] in st.told()


async def test_stop_then_run_again() -> None:
    async with stage() as st:
        await st.show()
        await st.press("x")
        assert st.program.stopped
        assert st.leaderboard.heading.state is State.STOPPING
        st.program.ends(143, "SIGTERM")
        await st.settle()
        assert "stopped (ended by SIGTERM)" in st.text()
        await st.press("r")
        assert len(st.programs) == 2
        assert st.leaderboard.heading.state is State.RUNNING
        assert order(st) == []
        st.programs[0].figures(*five())  # late news of the first run change nothing
        await st.settle()
        assert order(st) == []
        await st.press("r")
        assert len(st.programs) == 2
        assert "runs already" in st.told()


async def test_another_program_can_be_named() -> None:
    async with stage(command=None) as st:
        assert "Press r to run a program" in st.text()
        assert "▼total" in st.text()
        await st.press("r")
        assert "enter takes it   esc goes back" in st.text()
        await st.press(*"./a", "space", "'", *"b|c", "'")
        await st.press("enter")
        assert st.programs[0].command.arguments == ("./a", "b|c")


async def test_a_command_that_needs_a_shell_is_refused_in_place() -> None:
    async with stage(command=None) as st:
        await st.press("r", *"a", "space", "vertical_line", "space", *"b", "enter")
        assert not st.programs
        assert "not run by a shell" in st.text()


async def test_panes_come_and_go() -> None:
    async with stage() as st:
        await st.show()
        assert "symbol" in st.text()
        assert "output of the program" in st.text()
        await st.press("d", "o")
        assert "symbol" not in st.text()
        assert "output of the program" not in st.text()


async def test_small_terminals_begin_without_panes() -> None:
    async with stage((80, 24)) as st:
        await st.show()
        assert "symbol" not in st.text()
        await st.press("d")
        assert "symbol" in st.text()


async def test_a_terminal_of_40_by_10_works() -> None:
    async with stage((40, 10)) as st:
        await st.show()
        await st.press("down", "e", "escape", "question_mark", "escape", "colon", "escape")
        assert "a[/b]c" in st.text()


async def test_a_pane_that_was_left_on_does_not_take_a_small_terminal() -> None:
    async with stage((120, 40)) as st:
        await st.press("d", "d", "o", "o")  # chosen, not by size
        assert st.app.remembered.get("leaderboard.detail") == "on"
    async with stage((40, 10)) as st:
        await st.show()
        assert sum(name[:9] in st.text() for name in ("rms_norm", "a[/b]c", "mul<", "f[abi:")) >= 3
        st.program.prints("one", "two")
        for keys in ("d", "o", "d"):
            await st.press(keys)
            assert "mul_mat" in st.text()  # the row under the cursor, at least
        assert "name" in st.text()
    async with stage((120, 40)) as st:
        await st.show()
        assert "symbol" in st.text()  # as it was chosen


async def test_the_detail_pane_has_everything() -> None:
    async with stage() as st:
        await st.show()
        text = st.text()
        for part in (
            NAMES[0],
            "_Z0k",
            "8192 x 1 x 1 work-items in 128 workgroups",
            "40 VGPRs and 32 SGPRs allocated",
            "LDS 4096 B",
        ):
            assert part in text
        assert "takes    void const*, float*, int" in text
        assert "8.192 us to 16.38 us" in text


async def test_kernels_of_one_name_are_told_apart_by_their_code() -> None:
    long = "void ns::" + "a_name_that_does_not_fit_" * 8 + "(int)"
    twins = [kernel(i, long, code_hash=f"{i}23456789abcdef0", mean_ns=9000 - i) for i in (1, 2)]
    async with stage() as st:
        await st.show(*twins, kernel(3, "other", mean_ns=10))
        rows = [line for line in st.text().splitlines() if " hip " in line and "a_name" in line]
        assert ["(code 123456)" in row for row in rows] == [True, False]
        assert ["(code 223456)" in row for row in rows] == [False, True]
        assert "other (code" not in " ".join(st.text().split())


async def test_tuned_candidates_are_told_apart_by_their_configuration() -> None:
    tuned = [kernel(i, "matmul_kernel", code_hash=f"{i}23456789abcdef0", mean_ns=9000 - i) for i in (1, 2)]
    described = {
        k.id: Described(f"BM={m}, num_warps={w}, num_stages=3", {"BM": m, "num_warps": w, "num_stages": "3"})
        for k, m, w in zip(tuned, ("64", "128"), ("4", "8"), strict=True)
    }
    async with stage((140, 30)) as st:
        await st.show(*tuned, kernel(3, "other"), described=described)
        text = " ".join(st.text().split())
        assert "matmul_kernel (BM=64 num_warps=4) hip" in text
        assert "matmul_kernel (BM=128 num_warps=8) hip" in text
        assert "BM=64, num_warps=4, num_stages=3" in text  # in full beside the ranking
    # Cut, it would tell nothing: in a narrower terminal it is the first that tells, then the code object.
    async with stage((100, 30)) as st:
        await st.show(*tuned, kernel(3, "other"), described=described)
        assert "matmul_kernel (BM=128) " in " ".join(st.text().split())
    for one in described.values():
        one.values["BM"] *= 8  # type: ignore[index]
    async with stage((80, 24)) as st:
        await st.show(*tuned, kernel(3, "other"), described=described)
        rows = [line for line in st.text().splitlines() if "matmul" in line]
        assert [("(code 123456)" in row, "(code 223456)" in row) for row in rows[:2]] == [
            (True, False),
            (False, True),
        ]


async def test_the_detail_pane_speaks_of_an_nvidia_gpu_as_cuda_does() -> None:
    devices = ("0\tsm_90\tnvptx64-nvidia-cuda--sm_90\tNVIDIA H200",)
    async with stage() as st:
        await st.show(kernel(0, dynamic_lds_bytes=9000), devices=devices, simulated=False)
        text = st.text()
        for part in (
            "128 x 1 x 1 blocks of 64 x 1 x 1 threads (8192 in all)",
            "40 registers a thread, shared memory 4096 B (as launched: 9000 B) a block, local memory 0 B a",
        ):
            assert part in text
        await st.press("e")
        assert "any; the last was 8192,1,1 threads" in st.text()


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("rms_norm", ""),
        ("void ns::mul<(type)39>(int*, float (&)[4])", "int*, float (&)[4]"),
        ("void (anonymous namespace)::k<(3>2)>(int)", "int"),
        ("f[abi:cxx11](int)[with T = float]", "int"),
        ("broken(", ""),
    ],
)
def test_parameters_in_a_name(name: str, takes: str) -> None:
    assert arguments(kernel(1, name), Found()) == takes


async def test_where_it_is_written_and_what_it_takes_come_from_the_source(own_home: Path) -> None:
    source = (
        '#include "device.h"\n\nextern "C" __global__ void __launch_bounds__(64)\n'
        "    rms_norm(const float* __restrict__ x,\n             float* out, int n) { out[n] = x[0]; }\n"
    )
    tree = Tree(own_home / "tree").write({"src/device.h": DEVICE_H, "src/k.hip": source})
    made = tree.captured("src/k.hip", ["-Isrc"], "k.hsaco")
    (tree.root / "build").mkdir()
    shutil.copy(made, tree.root / "build/k.hsaco")
    tree.database([("../src/k.hip", [*clang(), *FLAGS, "-c", "../src/k.hip", "-o", "k.o"])])
    runs = kernel(
        1, "rms_norm", symbol="rms_norm", code_hash=f"{xxhash.xxh64_intdigest(made.read_bytes()):016x}"
    )
    other = kernel(2, "rms_norm", symbol="rms_norm", calls=1)
    async with stage(source_dir=tree.root) as st:
        await st.show(runs, other)
        await st.until("k.hip:4")
        assert "takes    const float* __restrict__ x, float* out, int n" in st.text()
        await st.press("down")  # of the same name, and its code is from elsewhere
        await st.until("1 file defines this name, not proven to be what runs")
        assert "k.hip" not in st.text()
        assert "const float* __restrict__" not in st.text()


async def test_program_output_is_shown_without_markup() -> None:
    async with stage() as st:
        st.program.prints("plain", "[bold]not markup[/bold] [/x]", skipped=3)
        await st.settle()
        text = st.text()
        assert "[bold]not markup[/bold] [/x]" in text
        assert "3 lines came too fast" in text
        assert "5 lines" in text


async def test_the_end_is_told_with_its_reason() -> None:
    async with stage() as st:
        await st.show()
        st.program.prints("boom")
        st.program.ends(139, "SIGSEGV")
        await st.settle()
        assert "failed: ended by SIGSEGV" in st.text()
        assert "after 50 dispatches" in st.told()
        await st.press("r")
        st.program.ends(0, reason="./decode loaded no GPU runtime")
        await st.settle()
        assert "No dispatch was seen. ./decode loaded no GPU runtime" in st.told()


async def test_the_detail_pane_ends_with_the_last_figures() -> None:
    async with stage() as st:
        await st.show(*five(1))
        await st.show(*five(7))  # no time has passed since
        assert "calls    10, 10 of them timed" in st.text()
        st.program.ends(0)
        await st.settle()
        assert "calls    70, 70 of them timed" in st.text()


async def test_a_paused_detail_pane_is_of_the_same_moment_as_the_ranking() -> None:
    async with stage() as st:
        await st.show(*five(1))
        await st.show(*five(7))  # too soon for the detail pane
        await st.press("p")
        assert "calls    70, 70 of them timed" in st.text()
        await st.show(*five(9), elapsed_s=9.0)
        st.program.ends(0)
        await st.settle()
        assert "calls    70, 70 of them timed" in st.text()
        await st.press("p")
        assert "calls    90, 90 of them timed" in st.text()


async def test_a_program_that_cannot_start_is_a_sentence() -> None:
    async with stage() as st:
        st.program.fails("program './decode' does not exist.")
        await st.settle()
        assert "does not exist" in st.text()
        assert st.app.is_running


async def test_refresh_rate_can_be_changed() -> None:
    async with stage() as st:
        await st.press("plus")
        assert st.program.hertz == 8.0
        await st.press("minus", "minus")
        assert st.program.hertz == 2.0
        assert "2 times a second" in st.told()


async def test_quitting_ends_the_program() -> None:
    async with stage() as st:
        await st.press("q")
        assert st.program.ended_now
    assert st.app.return_code == 0


async def test_only_changed_lines_are_drawn() -> None:
    async with stage() as st:
        await st.show()
        table = st.leaderboard.table
        drawn = []
        table.refresh = lambda *regions, **_: drawn.extend(regions)  # type: ignore[method-assign,assignment]
        changed = five()
        changed[3] = kernel(3, calls=11, mean_ns=2000)
        table.take(board(*changed))
        rows = {region.y for region in drawn}
        assert 4 in rows  # its own line
        table.take(board(*changed))
        drawn.clear()
        table.take(board(*changed, elapsed_s=1.2))
        assert drawn == []


async def test_a_thousand_kernels_scroll() -> None:
    async with stage() as st:
        many = [kernel(i, f"kernel_{i:04}", calls=2000 - i) for i in range(1000)]
        await st.show(*many)
        await st.press("end")
        assert "kernel_0999" in st.text()
        await st.press("home", "pagedown")
        assert "kernel_0999" not in st.text()


async def test_hints_lead_to_the_demonstrations_kernel_wherever_it_ranks() -> None:
    async with stage(guided=True) as st:

        def selected() -> str:
            found = st.leaderboard.table.selected
            assert found is not None
            return found.name

        def hint() -> str:
            return str(st.leaderboard.query_one(StatusLine).render())

        for calls in (1, 1000, 1):  # the two change places all the time
            await st.show(kernel(1, "other", calls=99), kernel(2, "mul_mat_vec_q", calls=calls))
            assert selected() == "mul_mat_vec_q"
            assert "Press e to take mul_mat_vec_q out of the running program" in hint()
        await st.press("up")
        assert "mul_mat_vec_q with ↑ ↓" in hint()
        await st.show(kernel(1, "other", calls=99), kernel(2, "mul_mat_vec_q", calls=1000))
        assert selected() == "other"  # the user has moved it
        await st.press("up")
        st.program.ends(0)
        await st.settle()
        assert "Press e to take mul_mat_vec_q out of a rerun" in hint()


async def test_without_the_guide_the_cursor_stays_on_the_first_row() -> None:
    async with stage() as st:
        await st.show(kernel(1, "other", calls=99), kernel(2, "mul_mat_vec_q"))
        assert st.leaderboard.table.selected.name == "other"  # type: ignore[union-attr]


def test_an_order_of_other_kernels_loses_none() -> None:
    old, new = [kernel(i, f"k{i}") for i in range(3)], [kernel(i, f"n{i}") for i in range(10, 13)]
    assert len(ordered(new, Sort(), name_order(old))) == 3


async def test_the_output_pane_is_as_high_as_it_needs_up_to_a_limit() -> None:
    async with stage() as st:
        pane = st.leaderboard.query_one("#output")
        st.program.prints("one line")
        await st.settle()
        assert pane.size.height == 3
        st.program.prints(*(f"line {i}" for i in range(4)))
        await st.settle()
        assert pane.size.height == 7
        st.program.prints(*(f"line {i}" for i in range(500)))
        await st.settle()
        assert pane.size.height == 8
        assert "line 499" in st.text()
        st.program.ends(0)
        await st.press("r")
        assert pane.size.height == 3


@pytest.mark.parametrize("size", [(120, 24), (80, 24), (200, 50)])
async def test_the_detail_pane_has_the_whole_width_at_once(size: tuple[int, int]) -> None:
    async with stage(size) as st:
        await st.show()
        pane = st.leaderboard.query_one("#detail")
        if pane.display:
            await st.press("d")
        await st.press("d")
        line = next(line for line in st.text().splitlines() if "8192 x 1 x 1 work-items" in line)
        assert "in 128 workgroups" in line
        where = Found(
            note="12 files define this name, not proven to be what runs; extraction asks the compiler"
        )
        st.leaderboard._sources[st.leaderboard.table.selected.id] = where  # type: ignore[union-attr]
        await st.show(*five(2), elapsed_s=2.0)
        await st.press("down", "up")
        assert where.note in " ".join(pane.text.split())
        assert max(map(len, pane.text.splitlines())) <= pane.size.width
