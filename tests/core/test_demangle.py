"""Names for a person, and where they are shown."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

import pytest

from kerncap.cli.entry import run
from kerncap.core.code import demangle
from kerncap.core.code.demangle import demangled, shown_names

CUBIN = Path(__file__).parent / "cubins/kernels.cubin"
LARGE = "_Z5large3BigcPs"


def test_a_cubins_kernels_are_shown_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", str(CUBIN)]) == 0
    shown = capsys.readouterr().out
    assert "  large(Big, char, short*)\n" in shown
    assert "  void (anonymous namespace)::hidden<float>(float*, int)\n" in shown
    assert "_Z" not in shown
    assert run(["inspect", "--json", str(CUBIN)]) == 0
    (code,) = json.loads(capsys.readouterr().out)["code_objects"]
    names = {kernel["name"]: kernel["demangled"] for kernel in code["kernels"]}
    assert names[LARGE] == "large(Big, char, short*)"  # by either it can be named
    assert [v["demangled"] for v in code["variables"]] == ["factors", "counter"]


def test_what_is_no_mangled_name_stays_as_it_is() -> None:
    for name in (
        "twin",
        "",
        "_Z",
        "_Zéé",
        "_Z3add\0",
        "_Z" + "N" * 30_000,
        "_Z1f" + "P" * 19_000 + "i",
        "_Z\ud800",
    ):
        assert demangled(name) == name
    assert demangled("_Z3éée".encode().decode()) == "_Z3éée"


def test_a_name_that_doubles_with_each_of_its_parts_stays_as_it_is() -> None:
    def pairs_of_pairs(levels: int) -> str:
        digits = "0123456789ABCDEFGHIJ"
        return "_Z1f1AIiiE" + "".join(f"S_IS{digit}_S{digit}_E" for digit in digits[:levels])

    assert demangled(pairs_of_pairs(2)).endswith(
        ", A<A<A<int, int>, A<int, int> >, A<A<int, int>, A<int, int> > >)"
    )
    assert demangled(pairs_of_pairs(18)) == pairs_of_pairs(18)


def bomb(levels: int) -> str:
    """f(A, P<A, A>, P<P<A, A>, P<A, A>>, ...): its last parameter has 2 to the `levels` A."""

    parts = [f"S{digit}_" for digit in "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: levels - 1]]
    return "_Z1f1A1PIS_S_E" + "".join(f"S0_I{part}{part}E" for part in parts)


@pytest.mark.parametrize("levels", [20, 28, 33])
def test_a_name_of_gigabytes_takes_neither_time_nor_memory(levels: int) -> None:
    assert demangled(bomb(2)) == "f(A, P<A, A>, P<P<A, A>, P<A, A> >)"
    demangle._given_up.clear()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    assert demangled(bomb(levels)) == bomb(levels)
    assert time.monotonic() - started < 8
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_after_some_such_names_no_more_are_tried() -> None:
    demangle._given_up.clear()
    symbols = [bomb(30) + letter for letter in "abcdefghij"]
    started = time.monotonic()
    assert shown_names(symbols) == symbols
    assert time.monotonic() - started < 15
    demangle._given_up.clear()


def test_names_with_many_references_are_demangled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is rocBLAS's kind of name, within the process; the second is not, and has its child."""
    short = "_Z1f1A" + "".join(f"1{c}IS_S_E" for c in "BCDEFGH")
    assert demangle._bits(short) < demangle._MOST_BITS
    assert demangled(short).startswith("f(A, B<A, A>, C<A, A>, ")
    many = "_Z1f1A" + "".join(f"1{c}IS0_S0_S0_E" for c in "BCDEFGHIJKLMNOP")
    # Each repeats the same part: it stays short.
    many += "".join(f"1{c}IS1_S2_S3_S4_E" for c in "QRSTUVW")
    assert demangle._bits(many) > demangle._MOST_BITS
    assert demangled(many).count("W<") == 1
    monkeypatch.setattr(demangle, "_MOST_BITS", 1e9)
    demangled.cache_clear()
    in_process = demangled(many)
    monkeypatch.undo()
    demangled.cache_clear()
    assert demangled(many) == in_process != many


def test_two_that_are_the_same_in_cpp_are_told_apart_by_their_symbols() -> None:
    one, other = "_ZN12_GLOBAL__N_11fEv", "_ZN17_GLOBAL__N__1a2b31fEv"
    assert shown_names([one, other, LARGE, "f"]) == [
        f"(anonymous namespace)::f()  ({one})",
        f"(anonymous namespace)::f()  ({other})",
        "large(Big, char, short*)",
        "f",
    ]


def test_a_machine_without_a_cpp_library_shows_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangle, "_LIBRARIES", ("libnowhere.so.1",))
    for cached in (demangle._library, demangle.demangled):
        cached.cache_clear()
    try:
        assert demangled(LARGE) == LARGE
    finally:
        for cached in (demangle._library, demangle.demangled):
            cached.cache_clear()
