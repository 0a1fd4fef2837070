"""Names for a person, and where they are shown."""

from __future__ import annotations

import json
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
