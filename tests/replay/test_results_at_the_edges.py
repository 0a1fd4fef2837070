"""Results at the edges: more differs than is looked at one by one, or by more than a number can hold, or by
the last bit of an integer, or in numbers that lie at any place.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable

import numpy as np
import pytest
from make_capture import Memory, Spec

from kerncap.core.capture.records import Capture
from kerncap.core.files import json_text
from kerncap.core.judge.compare import Tolerance
from kerncap.core.judge.validate import Validator
from kerncap.core.replay.replayer import Replayer
from kernels import arguments, compile_source, spec

A = 0x7E1000000000
Make = Callable[[Spec], Capture]
DOUBLES = """extern "C" __global__ void k(float* out, const float* x) {
      int i = blockIdx.x * 64 + threadIdx.x; out[i] = x[i] * 2; }"""
SUMS = """typedef __attribute__((address_space(1))) float Global;
    extern "C" __global__ void k(float* out, const float* x) {
      int i = blockIdx.x * 64 + threadIdx.x;
      __builtin_amdgcn_global_atomic_fadd_f32((Global*)out + (i & 4095), x[i]); }"""
FLAGS = ("-O2", "-g")


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets how many bytes of differing runs are looked at."""
    compare = Replayer.compare

    def run(size: int) -> None:
        monkeypatch.setattr(Replayer, "compare", functools.partialmethod(compare, data_limit=size))

    return run


def of_source(source: str, before: np.ndarray, after: np.ndarray, x: np.ndarray) -> Spec:
    memory = [Memory(A, before, after), Memory(A + (1 << 24), x)]
    return spec(compile_source(source, flags=FLAGS), "k", memory, arguments(A, A + (1 << 24)), items=len(x))


def test_what_was_not_looked_at_is_said_and_never_passes(make: Make, limit: Callable[[int], None]) -> None:
    limit(1 << 22)
    x = np.linspace(1, 2, 64 << 14, dtype=np.float32)
    captured = make(of_source(DOUBLES, x * 0, x * 2, x))
    with Validator(captured) as validator:
        assert validator.validate().verdict == "IDENTICAL"
        close = compile_source(DOUBLES.replace("* 2;", "* 2.000001f;"), flags=FLAGS)
        result = validator.validate(close, tolerance=Tolerance(rtol=1e-3))
        assert result.verdict == "INCONCLUSIVE"
        assert "more differ, beyond the" in result.reason
        (row,) = result.regions
        assert row["unanalysed_bytes"] > 0
        assert row["bit_equal_share"] < 0.9  # of bytes, as those are counted that were not looked at
        wrong = validator.validate(compile_source(DOUBLES.replace("* 2;", "* 3;"), flags=FLAGS))
        assert wrong.verdict == "FAIL"
        assert " elements differ; the first: element " in wrong.reason
        assert "more differ, beyond the" in wrong.reason


def test_a_kernel_that_varies_in_more_than_is_looked_at(make: Make, limit: Callable[[int], None]) -> None:
    limit(1 << 14)
    x = np.random.default_rng(0).standard_normal(4096 * 16).astype(np.float32)
    sums = np.zeros(4096, np.float32)
    for part in x.reshape(16, 4096):
        sums += part
    with Validator(make(of_source(SUMS, sums * 0, sums, x))) as validator:
        result = validator.validate()
        assert result.verdict == "INCONCLUSIVE", result.reason
        assert "beyond the" in result.reason


def test_differences_that_no_number_holds_are_the_largest_one(make: Make) -> None:
    source = """extern "C" __global__ void k(double* out) { out[threadIdx.x] = 1.7e308; }"""
    after = np.full(64, 1.7e308)
    memory = [Memory(A, after * 0, after)]
    captured = make(spec(compile_source(source, flags=FLAGS), "k", memory, arguments(A), items=64))
    with Validator(captured) as validator:
        wrong = compile_source(source.replace("= 1.7", "= -1.7"), flags=FLAGS)
        result = validator.validate(wrong)
        assert result.verdict == "FAIL"
        document = json.loads(json_text(result.to_json()))
        assert document["regions"][0]["max_abs"] == sys.float_info.max
        assert document["regions"][0]["rms"] is None
        far = validator.validate(wrong, tolerance=Tolerance(rtol=1.5))  # its bound overflows
        assert far.verdict == "FAIL"


@pytest.mark.parametrize("dtype", ["long", "unsigned long"])
def test_whole_numbers_that_differ_in_their_last_bit_differ(make: Make, dtype: str) -> None:
    """A float64 has only 53 bits of them."""
    source = f"""extern "C" __global__ void k({dtype}* out) {{ out[threadIdx.x] = (1l << 62) + 2; }}"""
    after = np.full(64, (1 << 62) + 2, np.int64)
    captured = make(
        spec(compile_source(source, flags=FLAGS), "k", [Memory(A, after * 0, after)], arguments(A), items=64)
    )
    with Validator(captured) as validator:
        result = validator.validate(compile_source(source.replace("+ 2", "+ 3"), flags=FLAGS))
        assert result.verdict == "FAIL"
        (row,) = result.regions
        assert sum(row["error_histogram"].values()) == 64
        assert row["error_map"]["cells"]


PACKED = """struct __attribute__((packed)) P { float a; double b; };
    extern "C" __global__ void k(P* out, const double* x) {
      int i = blockIdx.x * 64 + threadIdx.x; out[i].a = 1; out[i].b = x[i] * 2; }"""


@pytest.mark.parametrize("every", [1, 7, 50])
def test_numbers_of_a_packed_structure_are_judged_whole(make: Make, every: int) -> None:
    x = np.linspace(1, 2, 256)
    after = np.zeros(256, np.dtype([("a", "<f4"), ("b", "<f8")]))
    before = after.copy()
    after["a"], after["b"] = 1, x * 2
    captured = make(of_source(PACKED, before.view(np.uint8), after.view(np.uint8), x))
    close = PACKED.replace("x[i] * 2", f"x[i] * (i % {every} ? 2 : 2 * (1 + 2.3e-16))")
    with Validator(captured) as validator:
        result = validator.validate(compile_source(close, flags=FLAGS), tolerance=Tolerance(rtol=1e-9))
        assert result.verdict == "WITHIN_TOLERANCE", result.reason
        assert result.regions[0]["tolerated"] == len(range(0, 256, every))
        assert result.regions[0]["max_ulp"] in (1, 2)
        wrong = PACKED.replace("x[i] * 2", "x[i] * 2 + (i == 37)")
        result = validator.validate(compile_source(wrong, flags=FLAGS))
        assert result.verdict == "FAIL"
        assert result.reason.startswith("1 element differs")
