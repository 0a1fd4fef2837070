"""What stands beside kernels of one name, so that they are told apart."""

from __future__ import annotations

from dataclasses import dataclass

from kerncap.core.code.telling import Described, code_marks, told_apart


@dataclass(frozen=True)
class Kernel:
    id: str
    name: str
    code_hash: str
    symbol: str = "k"


TWO = [Kernel("1", "mul", "aaaaaa11"), Kernel("2", "mul", "aaaaaa22"), Kernel("3", "alone", "bbbbbb")]


def described(**values: object) -> Described:
    return Described("all of it", {name: str(value) for name, value in values.items()})


def test_only_what_differs_is_named_and_only_where_names_are_equal() -> None:
    known = {
        "1": described(BLOCK=64, EVEN=True, num_warps=4),
        "2": described(BLOCK=128, EVEN=True, num_warps=8),
        "3": described(BLOCK=1),
    }
    assert told_apart(TWO, known) == {"1": "BLOCK=64 num_warps=4", "2": "BLOCK=128 num_warps=8"}
    assert told_apart(TWO, known, brief=True) == {"1": "BLOCK=64", "2": "BLOCK=128"}
    same_code = [Kernel("1", "mul", "aa"), Kernel("2", "mul", "aa")]
    assert told_apart(same_code, known) == {}


def test_the_code_object_tells_where_nothing_is_known_or_nothing_differs() -> None:
    codes = {"1": "code aaaaaa1", "2": "code aaaaaa2"}
    assert code_marks(TWO) == codes
    assert told_apart(TWO, {}) == codes
    assert told_apart(TWO, {"1": described(BLOCK=64)}) == codes
    assert told_apart(TWO, {"1": described(BLOCK=64), "2": described(BLOCK=64)}) == codes
    long = {ident: described(PATH=ident * 60) for ident in "12"}
    assert told_apart(TWO, long) == codes


def test_three_of_which_two_have_one_configuration() -> None:
    three = [Kernel(str(i), "mul", f"{i}23456789") for i in range(3)]
    known = {"0": described(BLOCK=64), "1": described(BLOCK=64), "2": described(BLOCK=128)}
    assert told_apart(three, known) == {
        "0": "BLOCK=64 code 023456",
        "1": "BLOCK=64 code 123456",
        "2": "BLOCK=128",
    }


def test_types_of_arguments_only_as_far_as_they_are_needed() -> None:
    def typed(kind: str, block: int) -> Described:
        return Described("", {"BLOCK": str(block)}, {"x": kind, "y": kind, "n": "i32"})

    assert told_apart(TWO, {"1": typed("*fp16", 64), "2": typed("*fp32", 64)}) == {
        "1": "x=*fp16",
        "2": "x=*fp32",
    }
    assert told_apart(TWO, {"1": typed("*fp16", 64), "2": typed("*fp32", 32)}) == {
        "1": "BLOCK=64",
        "2": "BLOCK=32",
    }
