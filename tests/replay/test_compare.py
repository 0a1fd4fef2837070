"""Judging differences: types, tolerances, NaNs (R7). Without a device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from differences import A, differences

from kerncap.core.judge import compare, floats
from kerncap.core.judge.compare import EXACT, Tolerance
from kerncap.core.judge.dtypes import (
    Field,
    Layout,
    TypeMap,
    parameter_types,
    scalar,
    source_types,
)
from kerncap.core.replay.replayer import NO_DATA, Differences

MakeTypes = Callable[..., TypeMap]
DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "i32": np.int32,
    "u8": np.uint8,
    "i64": np.int64,
}


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_elements_are_counted_and_placed(types: MakeTypes, dtype: str) -> None:
    rng = np.random.default_rng(5)
    expected = rng.integers(1, 100, 5000).astype(DTYPES[dtype])
    actual = expected.copy()
    wrong = np.sort(rng.choice(5000, 37, replace=False))
    actual[wrong] += 1
    found = compare.analyse(differences(expected, actual), types(scalar(dtype)))
    stats = found.regions[1]
    assert stats.mismatches == 37
    assert stats.dtype == dtype
    assert stats.first is not None
    assert stats.first["index"] == wrong[0]
    assert int(stats.first["address"], 16) == A + int(wrong[0]) * expected.itemsize
    assert stats.first["actual"] == expected[wrong[0]] + 1
    if dtype in compare.FLOATS:
        assert stats.max_abs == 1
        assert stats.max_rel == pytest.approx(float((1 / expected[wrong].astype(float)).max()))


def test_many_chunks_give_what_one_gives(types: MakeTypes, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    expected = rng.random(8000, np.float32)
    actual = (expected * (1 + rng.random(8000) * 1e-6)).astype(np.float32)
    once = compare.analyse(differences(expected, actual), types(scalar("f32"))).regions[1]
    monkeypatch.setattr("kerncap.core.judge.elements._CHUNK_BYTES", 1000)
    again = compare.analyse(differences(expected, actual), types(scalar("f32"))).regions[1]
    assert (once.mismatches, once.max_ulp, once.max_abs, once.first, once.worst) == (
        again.mismatches, again.max_ulp, again.max_abs, again.first, again.worst,
    )  # fmt: skip
    assert once.mismatches == int(np.count_nonzero(expected.view(np.uint32) != actual.view(np.uint32)))
    assert once.squares == pytest.approx(float(np.square(actual.astype(float) - expected).sum()))


@pytest.mark.parametrize("dtype", ["f64", "f32", "i64", "f16", "i32"])
@pytest.mark.parametrize("shift", [0, 16, 2])
def test_whole_numbers_of_one_type_are_told_as_byte_by_byte(
    types: MakeTypes, monkeypatch: pytest.MonkeyPatch, dtype: str, shift: int
) -> None:
    """`shift` bytes from the address of the first number on: with 2, the runs are no whole numbers."""
    rng = np.random.default_rng(7)
    expected = rng.random(3000).astype(DTYPES[dtype]) if dtype in compare.FLOATS else np.arange(3000)
    expected = expected.astype(DTYPES[dtype])
    actual = expected.copy()
    actual[rng.choice(3000, 500, replace=False)] += 1
    actual[2000:2400] += 3
    found = differences(expected, actual)
    found.runs["address"] += shift
    seen = [compare.analyse(found, types(scalar(dtype)))]
    monkeypatch.setattr("kerncap.core.judge.elements._of_one_type", lambda *_: None)
    seen.append(compare.analyse(found, types(scalar(dtype))))
    fast, slow = (analysis.regions[1] for analysis in seen)
    assert fast.mismatches == slow.mismatches > 0
    names = ("dtype", "mismatch_bytes", "first", "worst", "max_ulp", "max_abs", "ulp_histogram", "squares")
    assert [getattr(fast, name) for name in names] == [getattr(slow, name) for name in names]


def test_overlapping_runs_are_counted_once(types: MakeTypes) -> None:
    one = differences(np.zeros(8, np.float32), np.ones(8, np.float32))
    runs = np.concatenate([one.runs, one.runs])
    runs.sort(order="address")
    twice = Differences(runs, one.data, one.compared, one.different, 0.0)
    assert compare.analyse(twice, types(scalar("f32"))).mismatches == 8


def test_ulp_distance() -> None:
    one = np.float32(1)
    next_up = np.nextafter(one, np.float32(2), dtype=np.float32)
    cases = [
        (one, next_up, 1),
        (np.float32(0), np.float32(-0.0), 0),
        (np.float32(1e-45), np.float32(-1e-45), 2),
        (np.float32(1), np.float32(2), 1 << 23),
    ]
    for a, b, distance in cases:
        bits = [np.array([v], np.float32).view(np.uint32) for v in (a, b)]
        assert floats.ulp_distance(*bits).tolist() == [distance]
        assert floats.ulp_distance(*reversed(bits)).tolist() == [distance]
    extreme = [np.array([v]).view(np.uint64) for v in (np.inf, -np.inf)]
    assert floats.ulp_distance(*extreme)[0] == 2 * 0x7FF0000000000000


def test_bf16_values() -> None:
    bits = np.array([0x3F80, 0x4049, 0xC000, 0x7F80, 0x7FC0], np.uint16)
    found = floats.values(bits, "bf16")
    assert found[:4].tolist() == [1.0, 3.140625, -2.0, np.inf]
    assert np.isnan(found[4])


@pytest.mark.parametrize(
    ("tolerance", "passes"),
    [
        (EXACT, False),
        (Tolerance(atol=1e-3), True),
        (Tolerance(atol=1e-5), False),
        (Tolerance(rtol=1e-3), True),
        (Tolerance(rtol=1e-5), False),
        (Tolerance(ulp=1 << 14), True),
        (Tolerance(ulp=16), False),
    ],
)
def test_tolerances(types: MakeTypes, tolerance: Tolerance, passes: bool) -> None:
    expected = np.full(64, 2.0, np.float32)
    actual = expected.copy()
    actual[9] += 5e-4
    found = compare.analyse(differences(expected, actual), types(scalar("f32")), tolerance)
    assert (found.mismatches == 0) is passes
    assert found.tolerated == (1 if passes else 0)


def test_integers_have_no_tolerance(types: MakeTypes) -> None:
    expected = np.arange(64, dtype=np.int32)
    actual = expected + (expected == 9)
    loose = Tolerance(atol=100, rtol=1, ulp=1000)
    assert compare.analyse(differences(expected, actual), types(scalar("i32")), loose).mismatches == 1
    assert compare.analyse(differences(expected, actual), types(), loose).mismatches == 1  # bytes


def test_structures_are_taken_apart(types: MakeTypes) -> None:
    # A block of q8_0: a half and 32 signed bytes, 34 bytes in all.
    layout = Layout("block_q8_0", 34, (Field(0, "f16"), Field(2, "i8", 32)))
    blocks = np.zeros(20, np.dtype([("d", np.float16), ("q", np.int8, 32)]))
    blocks["d"] = 1
    blocks["q"] = np.arange(32)
    actual = blocks.copy()
    actual["d"][7] = np.float16(1.001)
    found = compare.analyse(differences(blocks, actual), types(layout), Tolerance(rtol=1e-2))
    assert (found.mismatches, found.tolerated) == (0, 1)
    actual["q"][11][5] += 1
    found = compare.analyse(differences(blocks, actual), types(layout), Tolerance(rtol=1e-2))
    assert found.mismatches == 1
    assert found.regions[1].first is not None
    assert found.regions[1].first["index"] == 11


def test_differences_without_data_still_count(types: MakeTypes) -> None:
    found = differences(np.zeros(64, np.int32), np.ones(64, np.int32))
    runs = found.runs.copy()
    runs["data_offset"][3:] = NO_DATA
    result = compare.analyse(Differences(runs, found.data, 256, found.different, 0.0), types(scalar("i32")))
    assert result.unanalysed == 13 * 4
    assert result.mismatches == 12 + 13 * 4


@pytest.mark.parametrize(
    ("name", "types_"),
    [
        ("k(float const*, float*, int)", ["float const*", "float*", "int"]),
        ("void k<float, 4>(float*, std::pair<int, long>*)", ["float*", "std::pair<int, long>*"]),
        ("k()", []),
        ("k(void)", []),
        ("k", None),
        ("ns::k(void (*)(int, int), int)", ["void (*)(int, int)", "int"]),
    ],
)
def test_parameter_types(name: str, types_: list[str] | None) -> None:
    assert parameter_types(name) == types_


SOURCE = """
// k(int) is what this is about
template <int N> __device__ void k(float* x);  /* not this one */
extern "C" __global__ void __launch_bounds__(64)
    k(const block* __restrict__ x, float* __restrict__ dst, const unsigned char *q, _Float16 h[4],
      int n = 3) {
  other(k);
}
"""


def test_types_in_source() -> None:
    found = source_types(SOURCE, "k")
    assert found == ["const block*", "float*", "const unsigned char *", "_Float16*", "int"]
    assert source_types(SOURCE, "other") is None
