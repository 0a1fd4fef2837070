"""Types of memory that nothing is declared for: as wide as the kernel's stores, and no guess beyond that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from make_capture import Memory, Spec

from kerncap.core.capture.records import Capture
from kerncap.core.judge.compare import Tolerance
from kerncap.core.judge.dtypes import NOT_KNOWN, STORES, type_map
from kerncap.core.judge.store_width import element_type, stored_type
from kerncap.core.judge.validate import Validator
from kernels import arguments, compile_source, spec

A = 0x7E1000000000
B = A + 0x10000
KERNEL = """%s
extern "C" __global__ void other(char* c) { c[threadIdx.x] = 1; }
extern "C" __global__ void k(const float* a, void* c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; %s; }"""


@pytest.mark.parametrize(
    ("before", "body", "dtype"),
    [
        ("", "((float*)c)[i] = a[i] * 2", "u32"),  # 32 bits: that they are floats is not said
        ("", "((int*)c)[i] = i", "u32"),
        ("", "((double*)c)[i] = a[i]", "u64"),
        ("", "((short*)c)[i] = i", "u16"),
        ("", "((_Float16*)c)[i] = (_Float16)a[i]", "u16"),
        ("", "((char*)c)[i] = i", "u8"),
        ("", "((float*)c)[i] = a[i]; ((char*)c)[2048 + i] = i", "u8"),
        ("", "((double*)c)[i] = a[i]; ((int*)c)[2048 + i] = i", "u32"),
        ("struct f4 { float x, y, z, w; };", "((f4*)c)[i] = {a[i], 1, 2, 3}", "u32"),
        ("", "atomicAdd(&((float*)c)[i & 7], a[i])", "f32"),
        ("", "atomicAdd(&((float*)c)[i & 7], a[i]); ((float*)c)[i + 8] = a[i]", "u32"),
        ("", "atomicAdd(&((unsigned*)c)[i & 7], 1u)", "u32"),
        ("", "if (a[i] == 7) __builtin_trap()", None),
    ],
)
def test_what_the_stores_say(before: str, body: str, dtype: str | None) -> None:
    assert stored_type(compile_source(KERNEL % (before, body)), "gfx942", "k") == dtype


def test_a_function_that_is_called_stores_too() -> None:
    """Its stores are not among the kernel's own instructions."""
    helper = "__attribute__((noinline)) __device__ void set(char* p, int i) { p[i] = i; p[i + 1] = i * i; }"
    code = compile_source(KERNEL % (helper, "((float*)c)[i] = a[i]; set((char*)c + 2048, i)"))
    assert stored_type(code, "gfx942", "k") == "u8"


def test_where_nothing_can_be_said(tmp_path: Path) -> None:
    code = compile_source(KERNEL % ("", "((float*)c)[i] = a[i]"))
    assert stored_type(code, "gfx942", "none") is None
    assert stored_type(code, "gfx1201", "k") is None  # no disassembler for it
    broken = tmp_path / "broken.hsaco"
    broken.write_bytes(code.read_bytes()[:200])
    assert stored_type(broken, "gfx942", "k") is None
    assert element_type(["global_store_dword", "buffer_store_format_xyzw"]) is None
    assert element_type(["v_add_f32", "ds_write_b8", "scratch_store_byte"]) is None  # not to memory
    assert element_type(["global_store_dwordx4", "buffer_store_short_d16_hi"]) == "u16"
    assert element_type(["s_store_dwordx2", "flat_store_dwordx2"]) == "u32"
    assert element_type(["global_atomic_pk_add_f16"]) == "f16"
    assert element_type(["global_atomic_add_f64"]) == "f64"
    assert element_type(["global_atomic_cmpswap_x2"]) == "u64"


def test_it_is_said_in_the_result(make: Callable[[Spec], Capture]) -> None:
    a = np.arange(1, 257, dtype=np.float32)
    source = KERNEL % ("", "((float*)c)[i] = a[i] * 2")
    memory = [Memory(A, a), Memory(B, np.zeros(256, np.float32), a * 2)]
    capture = make(spec(compile_source(source), "k", memory, arguments(A, B)))
    wrong = compile_source(source.replace("a[i] * 2", "a[i] * (i == 77 ? 2.000001f : 2)"))
    loose = Tolerance(rtol=0.5, atol=100, ulp=1000)
    with Validator(capture) as validator:
        (own,) = validator.validate().to_json()["regions"]
        assert (own["dtype"], own["dtype_source"]) == ("u32", STORES)
        found = validator.validate(wrong, tolerance=loose)
        assert found.verdict == "FAIL"  # no tolerance: nothing says that they are floats
        (region,) = found.to_json()["regions"]
        assert (region["dtype"], region["mismatches"], region["max_abs"]) == ("u32", 1, None)
        first = region["first"]
        assert (first["index"], first["address"]) == (77, f"0x{B + 4 * 77:x}")
        assert first["expected"] == int((a[77:78] * 2).view(np.uint32)[0])
        assert region["bit_equal_share"] == 255 / 256
    with Validator(capture, dtypes={2: "f32"}) as validator:
        found = validator.validate(wrong, tolerance=loose)
        assert found.verdict == "WITHIN_TOLERANCE"
        (region,) = found.to_json()["regions"]
        assert (region["dtype"], region["dtype_source"]) == ("f32", "user")
        assert region["rmse"] == pytest.approx(region["max_abs"] / 16)  # one of 256
        assert region["ulp_histogram"] == {"5-16": 1}
        assert region["worst"]["index"] == 77
    assert type_map(capture).source(A - 1) == NOT_KNOWN
