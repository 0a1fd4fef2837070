"""Nothing that the panes say is cut off at their side; what is code may be, and scrolls."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len
from workbench_stage import Bench, FakeBench, Result, failing, workbench

from kerncap.core.build.diagnostics import parse
from kerncap.core.build.triton_pinned import Pinned
from kerncap.tui.workbench import configuration_text
from kerncap.tui.workbench.lines import LineView, fold
from kerncap.tui.workbench.texts import messages

SIZES = [(80, 24), (100, 30), (110, 30), (120, 40), (200, 50)]
LONG = "static_cast<float>(some_quite_long_name_of_a_function(first_argument, second_argument)) + undeclared"
CLANG = (
    f"kernel_variant.cpp:7:100: error: use of undeclared identifier 'undeclared'\n"
    f"    7 |     out[i] = {LONG};\n      | {' ' * (4 + len('out[i] = ') + len(LONG) - 10)}^~~~~~~~~~\n"
)
NVCC = f'a.cu(7): error: identifier "undeclared" is undefined\n      x = {LONG};\n{" " * len(LONG)}^\n'


PINNED = Pinned(
    (1024, 1, 1),
    {f"BLOCK_SIZE_{i}": "128" for i in range(6)},
    {"num_warps": "4", "num_stages": "3"},
    problem="pinned() in kernel_variant.py cannot be read: it is no dictionary any more",
)


def cut(view: LineView) -> list[str]:
    """Lines that are longer than the view."""
    lines = ["".join(str(piece[0]) for piece in line).rstrip() for line in view.lines]
    return [line for line in lines if cell_len(line) > view.scrollable_content_region.width]


def failed() -> dict[str, object]:
    """A validation that says all that it can."""
    document = failing()
    region = {
        **document["regions"][0],
        "tolerated": 1234567,
        "signed_zeros": 12345,
        "masked_bytes": 1 << 30,
        "new_nans": 123456,
    }
    return {
        **document,
        "regions": [region, document["regions"][1]],
        "masked_bytes": 1 << 30,
        "skipped_bytes": 1 << 31,
        "warnings": ["a warning that says in many words what nobody would have thought of before " * 2],
    }


async def pane(bench: Bench, key: str) -> LineView:
    await bench.pilot.press(key)
    await bench.pilot.pause()
    await bench.pilot.pause()
    name = {"3": "timing", "4": "validation", "5": "diff"}[key]
    view = bench.screen.views.view(name)
    assert view.display
    return view


@pytest.mark.parametrize("size", SIZES)
async def test_timing_and_validation_have_every_word(out: Path, size: tuple[int, int]) -> None:
    results = (Result(1000), Result(512345.678, "FAIL", failed()))  # type: ignore[arg-type]
    async with workbench(out, FakeBench(*results), size=size) as bench:
        await bench.attempts(1)
        assert cut(await pane(bench, "3")) == []
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        view = await pane(bench, "3")
        assert cut(view) == []
        assert "its time does not count: FAIL 10 and 10 samples, noise 0.1 %" in " ".join(view.text.split())
        view = await pane(bench, "4")
        assert cut(view) == []
        assert "12345 signed zeros" in " ".join(view.text.split())
        view = await pane(bench, "5")
        titles = [line for line in cut(view) if line[:1].isalpha()]
        assert titles == []
        assert "(d: against another)" in " ".join(view.text.split())


@pytest.mark.parametrize("width", [50, 57, 77, 97])
def test_the_configuration_pane_has_every_word(width: int) -> None:
    lines = configuration_text._pinned(PINNED, width)
    texts = ["".join(str(piece[0]) for piece in line).rstrip() for line in lines]
    assert max(map(cell_len, texts)) <= width
    assert "what ran; pinned() in kernel_variant.py has it" in " ".join(" ".join(texts).split())


def test_a_line_is_folded_between_words_and_keeps_its_styles() -> None:
    line = [("one two ", "bad"), ("three  four", "dim"), (" five", "")]
    assert fold(line, 40) == [line]
    assert fold(line, 13) == [[("one two ", "bad"), ("three", "dim")], [("four", "dim"), (" five", "")]]
    assert fold([("abcdefghij", "")], 4) == [[("abcd", "")], [("efgh", "")], [("ij", "")]]
    assert fold([], 10) == [[]]


@pytest.mark.parametrize("output", [CLANG, NVCC])
@pytest.mark.parametrize("width", [51, 76, 77])
def test_the_caret_is_in_view_below_what_it_points_to(output: str, width: int) -> None:
    made = messages(parse(output), "", "", show_raw=False, current=0, width=width)
    lines = ["".join(str(piece[0]) for piece in line) for line in made.lines]
    at = next(i for i, line in enumerate(lines) if "^" in line and "'" not in line)
    column = lines[at].index("^")
    assert column < width - 4
    assert lines[at - 1][column:].startswith("undeclared"[: max(1, width - column)])
    assert "…" in lines[at - 1]


def test_a_caret_that_is_in_view_anyway_changes_nothing() -> None:
    output = "a.cpp:1:5: error: no\n    1 |     x;\n      |     ^\n      |     y\n"
    made = messages(parse(output), "", "", show_raw=False, current=0, width=76)
    assert "".join(str(piece[0]) for piece in made.lines[-3]) == "        1 |     x;"
    assert len(made.lines) == 7


async def test_the_lines_of_a_message_are_in_view_with_it() -> None:
    view = LineView(id="v")
    view.lines = [[("", "")]] * 40
    seen: list[int] = []
    view.scroll_to = lambda x=None, y=None, **_: seen.append(y)  # type: ignore[method-assign,assignment]
    view.reveal(9, 13)  # the first twelve lines are in view
    view.reveal(3, 7)
    view.reveal(9, 39)  # as far as its first line stays in view
    assert seen == [2, 9]
