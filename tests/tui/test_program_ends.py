"""What is said where a program gave nothing or could not be started, and what is remembered of it."""

from __future__ import annotations

import pytest

from kerncap.core.program.workload import Command
from kerncap.tui.leaderboard.header import cost_text
from kerncap.tui.services.trouble import sentences
from kerncap.tui.settings import Remembered
from tui.stage import board, five, stage

CUDA = (
    "It is a CUDA program (/home/user/projects/saxpy/build/saxpy holds CUDA kernels), and a simulated AMD "
    "GPU cannot run its kernels. --device cuda watches it, which cannot be used here: there is no "
    "libcuda.so.1: no NVIDIA GPU, or its driver is not installed (see `kerncap doctor`)."
)
MISSING = "program './nope' does not exist"


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40)])
async def test_a_cuda_program_that_fails_is_named_with_the_way_out(size: tuple[int, int]) -> None:
    async with stage(size) as st:
        st.program.prints("no CUDA-capable device is detected")
        st.program.ends(3, reason=CUDA)
        await st.settle()
        told = " ".join(st.text().split())
        assert "The program failed (exit status 3) before any dispatch was seen. " + CUDA in told
        assert "Its last words are in the output pane (o)." in told


async def test_a_program_that_cannot_be_started_ends_its_sentence_and_is_not_remembered() -> None:
    Remembered().set("resume.command", ["./decode", "--tokens", "16"])
    Remembered().set("resume.variables", [["A", "1"]])
    async with stage(command=None) as st:
        st.leaderboard.command = Command(("./nope",))
        st.app.make_program = _failing(st)  # type: ignore[method-assign]
        st.leaderboard.start()
        await st.settle()
        assert st.told() == f"{MISSING}. R names another program."
    assert Remembered().get("resume.command") == ["./decode", "--tokens", "16"]
    assert Remembered().get("resume.variables") == [["A", "1"]]
    async with stage(command=None) as st:
        await st.press("r")
        assert "./decode --tokens 16" in st.text()
        assert "./nope" not in st.text()


def _failing(st):
    """Makes a program that fails as LiveProgram does."""
    from tui.stage import FakeProgram

    class Failing(FakeProgram):
        def start(self) -> None:
            self.fails(MISSING)

    return Failing


async def test_one_that_was_started_is_remembered() -> None:
    async with stage(command=Command(("./other",), (("B", "2"),))) as st:
        await st.show()
    assert Remembered().get("resume.command") == ["./other"]
    assert Remembered().get("resume.variables") == [["B", "2"]]


def test_sentences_have_one_stop_each() -> None:
    assert sentences("one", "two.", "", "three!") == "one. two. three!"
    assert sentences("all of it") == "all of it."
    assert sentences() == ""


def test_of_a_short_run_the_cost_is_a_time_alone() -> None:
    short = board(*five(), elapsed_s=0.04, own_ns=89_520_000)
    assert cost_text(short) == cost_text(short, brief=True) == "cost 89.52 ms"
    assert cost_text(board(*five(), elapsed_s=1.0)) == "cost 0.20% (2.000 ms)"
