"""Names: short forms, safe forms, and which kernel a person means."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kerncap.core.code import names


@dataclass(frozen=True)
class K:
    id: str
    name: str
    symbol: str


@pytest.mark.parametrize(
    ("demangled", "base"),
    [
        ("scale(float*, int)", "scale"),
        ("void ns::deep::scale<float, 4>(float*, int)", "scale"),
        ("void mul_mat<(ggml_type)39, true>(void const*, int (*)(int))", "mul_mat"),
        ("void (anonymous namespace)::k<int>(int*)", "k"),
        ("Cijk_Ailk_Bljk_SB_MT64x64", "Cijk_Ailk_Bljk_SB_MT64x64"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("void f<ns::g<int>(int)>(int)", "f"),
        ("std::enable_if<true, void>::type ns::k<std::pair<int, int> >(int)", "k"),
        ("void run<ns::f(int)::{lambda(int)#1}>(ns::f(int)::{lambda(int)#1})", "run"),
        ("k(int) [clone .kd]", "k"),
        ("", ""),
    ],
)
def test_base_name(demangled: str, base: str) -> None:
    assert names.base_name(demangled) == base


@pytest.mark.parametrize(
    ("demangled", "name"),
    [
        ("scale(float*, int)", "scale"),
        ("void ns::deep::scale<float, 4>(float*, int)", "scale<float, 4>"),
        ("void (anonymous namespace)::k<int>(int*)", "k<int>"),
        ("void f<ns::g<int>(int)>(int)", "f<ns::g<int>(int)>"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("void k<int>(int*) [clone .kd]", "k<int>"),
        ("", ""),
    ],
)
def test_instance_name(demangled: str, name: str) -> None:
    assert names.instance_name(demangled) == name


def test_base_name_of_kilobytes() -> None:
    nested = "a<" * 5000 + "int" + ">" * 5000
    assert names.base_name(f"void k<{nested}>({nested})") == "k"


@pytest.mark.parametrize("name", ["", "..", "/", "-rf", "a/b", "$(x)", "x" * 500, ".hidden", "ü", "a b\nc"])
def test_safe_filename(name: str) -> None:
    safe = names.safe_filename(name)
    assert safe
    assert len(safe) <= 80
    assert safe[0] not in ".-"
    assert all(char.isascii() and (char.isalnum() or char in "_.-") for char in safe)


def test_short_ids_are_unique_and_at_least_six_digits() -> None:
    ids = ["a" * 16, "a" * 10 + "b" * 6, "b" * 16]
    assert names.short_ids(ids) == {"a" * 16: "a" * 11, "a" * 10 + "b" * 6: "a" * 10 + "b", "b" * 16: "b" * 6}


KERNELS = [
    K("abcdef0000000001", "add(float*)", "_Z3addPf"),
    K("abcdef0000000002", "void add_rms<float>(float*)", "_Z7add_rmsIfEvPf"),
    K("1234560000000003", "void add_rms<half>(half*)", "_Z7add_rmsIDhEvPDh"),
    K("1234570000000004", "softmax(float*)", "_Z7softmaxPf"),
]


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("123456", ["1234560000000003"]),
        ("ABCDEF0000000002", ["abcdef0000000002"]),
        ("abcdef", ["abcdef0000000001", "abcdef0000000002"]),
        ("add", ["abcdef0000000001"]),
        ("add_rms", ["abcdef0000000002", "1234560000000003"]),
        ("add_rms<half>", ["1234560000000003"]),
        ("_Z7softmaxPf", ["1234570000000004"]),
        ("_Z7softmaxPf.kd", ["1234570000000004"]),
        ("softmax(float*)", ["1234570000000004"]),
        ("oftm", ["1234570000000004"]),
        ("nothing", []),
    ],
)
def test_matching(pattern: str, ids: list[str]) -> None:
    assert [k.id for k in names.matching(pattern, KERNELS)] == ids


def test_nearest_puts_the_likeliest_first_and_leaves_none_out() -> None:
    assert next(k.name for k in names.nearest("sofmax", KERNELS)) == "softmax(float*)"
    assert len(names.nearest("sofmax", KERNELS)) == len(KERNELS)
