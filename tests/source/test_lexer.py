"""S1: kernels in source text, whatever stands around their names."""

from __future__ import annotations

import pytest

from kerncap.source.hip.lexer import scan, symbol_words


def kernels(text: str) -> list[tuple[str, int, bool]]:
    return [(k.name, k.line, k.is_definition) for k in scan(text).kernels]


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(int* a) {}",
        "__global__ void __launch_bounds__(256) k(int* a) {}",
        "__launch_bounds__(256, 2) __global__ void k(int* a) {}",
        "static __global__ __launch_bounds__(WARPS * (32 + 32)) void k() {}",
        "template <typename T, int N = (3 > 2)> __global__ void k(T* a) {}",
        'extern "C" __global__ void k() {}',
        "[[maybe_unused]] __global__ [[clang::optnone]] void k() noexcept {}",
        "__global__ __attribute__((amdgpu_flat_work_group_size(1, 256))) void k(int a = f(3)) {}",
        "__attribute__((global)) void k() {}",
        "__global__ typename std::enable_if<(A < B), void>::type k(int x) {}",
        "template <> __global__ void ns::outer<int>::k<float>(float*) {}",
        '#define KERNEL extern "C" __global__ void\nKERNEL k(float x) {}',
        "#define BOUNDS(n) __launch_bounds__(n)\n__global__ void BOUNDS(64) k(int) {}",
        "#define MAKE(T) \\\n __global__ void k_##T(T* p) { p[0] = 1; }\nMAKE(int)",
        "#define MAKE(NAME) __global__ void NAME() {}\nMAKE(k)",
        "int n = 1'000'000; char q = '\"'; __global__ void k() {}",
        'const char* s = "/* \\" "; __global__ void k() {}',
    ],
)
def test_a_definition_is_found(text: str) -> None:
    found = kernels(text)
    assert [(name.removesuffix("_int"), defined) for name, _, defined in found] == [("k", True)]
    assert found[0][1] == text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "// __global__ void k() {}",
        "// a comment that goes on \\\n__global__ void k() {}",
        "/* __global__ void k() {} */",
        'const char* s = "__global__ void k() {}";',
        'auto s = R"xy(__global__ void k() {} )" )xy";',
        "__device__ void k() {}",
        "#define UNUSED __global__ void k() {}",
    ],
)
def test_what_only_looks_like_one_is_not(text: str) -> None:
    assert kernels(text) == []


def test_a_declaration_is_told_from_a_definition() -> None:
    text = "__global__ void k(int);\n__global__ void k(int\n  x)\n{}"
    assert kernels(text) == [("k", 1, False), ("k", 2, True)]


def test_includes_are_kept_as_written() -> None:
    assert scan('#include "a b/c.h"\n#  include <x/y.cuh>\n//#include "no.h"\n').includes == (
        "a b/c.h",
        "x/y.cuh",
    )


def test_names_in_a_mangled_symbol() -> None:
    assert symbol_words("_ZN2ns3mulILi39EN3foo3barEEEvPi")[:2] == ["ns", "mul"]
    assert symbol_words("_ZL6staticPf.intern.0123abcd")[0] == "static"
    assert symbol_words("plain") == ["plain"]
