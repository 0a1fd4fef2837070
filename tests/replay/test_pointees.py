"""Types of memory that is reached through pointers in memory: tables, structs, lists (C11)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from make_capture import Memory, Spec

from kerncap.core.capture.records import Capture
from kerncap.core.judge.dtypes import NOT_KNOWN, STORES, type_map
from kernels import arguments, compile_source, spec

A = 0x7E1000000000
X, Y, Z, INTEGERS = A + 0x10000, A + 0x20000, A + 0x30000, A + 0x40000
Make = Callable[[Spec], Capture]
DEBUG = ("-O2", "-g", "-fstandalone-debug")  # the kernel does not look into its structs
STRUCTS = "struct Node { int value; Node* next; float* data; }; struct Row { double* p; long n; };"


def capture_of(make: Make, parameter: str, argument: bytes, words: list[int], **more: object) -> Capture:
    """A kernel `k` of two pointers. `words` are at A, numbers at X, Y and Z, its output at INTEGERS."""
    flags = more.pop("flags", DEBUG)
    source = f'{STRUCTS} extern "C" __global__ void k({parameter} p, int* other) {{ *other = 1; }}'
    memory = [
        Memory(A, np.array(words, np.uint64)),
        *(Memory(at, np.zeros(64, np.float32)) for at in (X, Y, Z)),
        Memory(INTEGERS, np.zeros(64, np.int32), np.ones(64, np.int32)),
    ]
    hsaco = compile_source(source, flags=flags)  # type: ignore[arg-type]
    return make(spec(hsaco, "k", memory, argument + arguments(INTEGERS), **more))


def names(capture: Capture) -> list[str]:
    types = type_map(capture)
    return [types.at(at)[0].name for at in (A, X, Y, Z, INTEGERS)]


UNSAID = "u32"  # as wide as the kernel's only store


@pytest.mark.parametrize(
    ("parameter", "words", "wanted"),
    [
        ("float**", [X, Z], ["pointer", "f32", UNSAID, "f32", "i32"]),
        ("const double* const* __restrict__", [X, 0, Y], ["pointer", "f64", "f64", UNSAID, "i32"]),
        ("float***", [X, Y], ["pointer", "pointer", "pointer", UNSAID, "i32"]),
        ("float**", [X, 77, Y], ["pointer", "f32", UNSAID, UNSAID, "i32"]),  # 77: the table ends there
        ("Row*", [X, 3, Y, 4, 12345, 5, Z, 6], ["Row", "f64", "f64", UNSAID, "i32"]),
        ("Node*", [1, A + 24, X, 2, 0, Y], ["Node", "f32", "f32", UNSAID, "i32"]),
        ("void**", [X], ["pointer", UNSAID, UNSAID, UNSAID, "i32"]),
    ],
)
def test_debug_information_is_followed(
    make: Make, parameter: str, words: list[int], wanted: list[str]
) -> None:
    capture = capture_of(make, parameter, arguments(A), words)
    assert names(capture) == wanted
    sources = {type_map(capture).source(at) for at in (A, X, Y, Z, INTEGERS)}
    assert sources <= {"debug information", STORES}


def test_a_struct_that_is_passed_by_value(make: Make) -> None:
    capture = capture_of(make, "Row", arguments(X, 7), [0])
    assert names(capture) == [UNSAID, "f64", UNSAID, UNSAID, "i32"]


def test_names_are_followed_without_debug_information(make: Make) -> None:
    demangled = "k(float const* const*, int*)"
    capture = capture_of(make, "float**", arguments(A), [X, Y], flags=("-O2",), demangled=demangled)
    assert names(capture) == ["pointer", "f32", "f32", UNSAID, "i32"]
    assert type_map(capture).source(X) == "mangled name"


def test_what_the_user_says_goes_before_what_is_found(make: Make) -> None:
    capture = capture_of(make, "float**", arguments(A), [X, X + 16])
    types = type_map(capture, {f"0x{X:x}": "f16"})
    assert [types.at(at)[0].name for at in (X, X + 16, X + 20)] == ["f16"] * 3
    assert types.source(X + 16) == "user"
    assert types.source(A - 1) == NOT_KNOWN
