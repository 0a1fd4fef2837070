"""What was passed by value, as a person reads it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from kerncap.cli.entry import run
from kerncap.core.code.dwarf import Scalar, parameters_by_kernel
from kerncap.core.code.reading import read_code_object
from kerncap.core.code.values import value_text
from support.build import compile_device

SOURCE = """#include <hip/hip_runtime.h>
struct Inner { short a; unsigned char b; };
struct Params { float scale; int count; };
struct Many { double d; Inner inner; bool on; float v[10]; int* p; };
extern "C" __global__ void k(Params s, float f, double d, long n, Many m) {
  m.p[0] = s.count + f + d + n + s.scale + m.v[n] + m.inner.a; }
"""


def test_fields_as_debug_information_names_them(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(SOURCE)
    code = read_code_object(compile_device(tmp_path / "k.hip", tmp_path / "k.hsaco"))
    params, single, double, whole, many = (p.scalars for p in parameters_by_kernel(code)["k"])
    assert value_text(struct.pack("<fi", 1.0, 20000), params) == "{scale 1, count 20000}"
    assert value_text(struct.pack("<f", 0.1), single) == "0.1"
    assert value_text(struct.pack("<d", 0.25), double) == "0.25"
    assert value_text(struct.pack("<q", -(1 << 40)), whole) == str(-(1 << 40))
    raw = struct.pack("<dhBx?3x10fQ", 2.5, -3, 200, True, *range(10), 0x7F00)
    told = "{d 2.5, inner.a -3, inner.b 200, on true, v [0, 1, 2, 3, 4, 5, 6, 7, …], p 0x7f00}"
    assert value_text(raw, many) == told


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (struct.pack("<fi", 1.0, 20000), "0x00004e203f800000"),
        (struct.pack("<q", 20000), "20000"),
        (struct.pack("<q", -1), "-1"),
        (struct.pack("<i", 7), "7"),
        (struct.pack("<f", 1.5), "1069547520 (as a float 1.5)"),
        (bytes(range(12)), "0x000102030405060708090a0b"),
        (b"", "-"),
    ],
)
def test_without_debug_information(raw: bytes, told: str) -> None:
    assert value_text(raw, ()) == told
    assert value_text(raw, (Scalar(1, "signed", 16, 1),)) == told  # it does not fit what was passed


def test_an_inspected_kernel_has_the_symbol_that_profiles_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.hip").write_text(SOURCE)
    assert run(["inspect", "--json", str(compile_device(tmp_path / "k.hip", tmp_path / "k.hsaco"))]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["code_objects"][0]["kernels"]
    assert (kernel["symbol"], kernel["descriptor"]) == ("k", "k.kd")
