"""Figures of many differing elements: the same as the plain formulation gives, in bounded memory."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from differences import A
from plain_analysis import plain

from kerncap.core.judge import compare
from kerncap.core.judge.compare import EXACT, Analysis, RegionStats, Tolerance
from kerncap.core.judge.dtypes import SIZES, Field, Layout, TypeMap, scalar
from kerncap.core.judge.mismatches import decade
from kerncap.core.replay.replayer import RUN_DTYPE, Differences

MakeTypes = Callable[..., TypeMap]
COUNT = 20_000
# Of each float type: both zeros, the least and largest denormal numbers, 1, the largest number, infinities,
# NaNs with other bits. Of integers, the ends of their range.
SPECIAL = {
    "f64": [0, 1 << 63, 1, (1 << 52) - 1, 0x3FF << 52, (0x7FF << 52) - 1, 0x7FF << 52, 0xFFF << 52,
            (0x7FF << 52) + 1, (0xFFF << 52) + 9],
    "f32": [0, 1 << 31, 1, (1 << 23) - 1, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
            0xFF800001],
    "f16": [0, 1 << 15, 1, 0x3FF, 0x3C00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0xFC01],
    "bf16": [0, 1 << 15, 1, 0x7F, 0x3F80, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0xFF81],
}  # fmt: skip
TYPES = [*SPECIAL, "e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz"]
TYPES += ["i64", "u64", "i32", "u32", "i16", "i8", "u8", "bool", "pointer"]


def runs_of(expected: np.ndarray, actual: np.ndarray, lengths: list[int], address: int = A) -> Differences:
    """Runs of `lengths` bytes in turn, as far as they differ. A fifth of them lies elsewhere in the data."""
    want, got = expected.view(np.uint8), actual.view(np.uint8)
    runs, pieces, at = [], [], 0
    for length in itertools.cycle(lengths):
        end = min(at + length, len(want))
        if not np.array_equal(want[at:end], got[at:end]):
            runs.append([address + at, end - at, int(np.count_nonzero(want[at:end] != got[at:end])), 0, 1, 0])
            pieces.append(np.concatenate([want[at:end], got[at:end]]))
        at = end
        if at == len(want):
            break
    order = [*range(0, len(runs), 5), *(i for i in range(len(runs)) if i % 5)]
    offset = 0
    for i in order:
        runs[i][3], offset = offset, offset + len(pieces[i])
    table = np.array([tuple(run) for run in runs], RUN_DTYPE)
    data = np.concatenate([pieces[i] for i in order])
    return Differences(table, data, len(want), int(table["different"].sum()), 0.0, {1: len(want)})


def shown(stats: RegionStats) -> dict[str, Any]:
    """A region's figures in the form of `plain`."""
    detail = stats.detail
    names = ("max_abs", "max_rel", "max_ulp", "squares", "new_nans", "signed_zeros", "ulp_histogram")
    names += ("mismatches", "mismatch_bytes", "tolerated", "differing_bytes")
    cells = detail.map.to_json(0)
    return {name: getattr(stats, name) for name in names} | {
        "differing": detail.differing,
        "first": stats.first["address"] if stats.first else None,
        **({"worst": stats.worst["address"]} if stats.worst else {}),
        "elements": [(e["address"], e["relative"]) for e in detail.elements],
        "error_histogram": detail.ordered_histogram(),
        "cell_bytes": cells["cell_bytes"],
        "cells": {at: error for at, error in cells["cells"]},
    }


def random_bits(dtype: str, seed: int, special: float) -> tuple[np.ndarray, np.ndarray]:
    """Elements of all sizes, and what was found: some right, some close, some anything."""
    rng = np.random.default_rng(seed)
    size = SIZES[dtype]
    kind = np.dtype(f"<u{size}")
    if dtype in ("f64", "f32", "f16"):
        expected = (rng.standard_normal(COUNT) * 10.0 ** rng.integers(-4, 4, COUNT)).astype(f"<f{size}")
        expected = expected.view(kind).copy()
    else:
        expected = rng.integers(0, 1 << (8 * size - 2), COUNT, np.uint64).astype(kind)
    # Distances from one to a large part of the range, each as likely as the others.
    away = (1 << rng.integers(0, 8 * size - 3, COUNT, np.uint64)).astype(kind)
    actual = np.where(rng.random(COUNT) < 0.1, expected, expected + away)
    if dtype in SPECIAL:
        values = np.array(SPECIAL[dtype], np.uint64).astype(kind)
        for bits in (expected, actual):
            chosen = rng.random(COUNT) < special
            bits[chosen] = rng.choice(values, int(np.count_nonzero(chosen)))
    return expected, actual


@pytest.fixture(params=[1 << 15, 1000])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("kerncap.core.judge.elements._BLOCK", request.param)
    return int(request.param)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lengths", [[4096], [16, 16, 32, 16, 2048, 48]])
@pytest.mark.parametrize("special", [0.0, 0.2])
def test_figures_are_those_of_the_plain_formulation(
    types: MakeTypes, block: int, dtype: str, lengths: list[int], special: float
) -> None:
    expected, actual = random_bits(dtype, 11, special)
    found = compare.analyse(runs_of(expected, actual, lengths), types(scalar_or_pointer(dtype), size=1 << 18))
    assert shown(found.regions[1]) == plain(expected, actual, dtype, A)


@pytest.mark.parametrize("dtype", [*SPECIAL])
@pytest.mark.parametrize(
    "pair", [(0, 1), (8, 9), (8, 4), (4, 8), (6, 7), (6, 4), (4, 7), (0, 2), (2, 1), (5, 5)]
)
@pytest.mark.parametrize("tolerance", [EXACT, Tolerance(bitwise=True), Tolerance(ulp=5)])
def test_a_block_of_one_special_pair(
    types: MakeTypes, dtype: str, pair: tuple[int, int], tolerance: Tolerance
) -> None:
    """Zeros of both signs alone, NaNs alone and so on; the largest number and its negative for (5, 5)."""
    bits = np.array(SPECIAL[dtype], np.uint64).astype(f"<u{SIZES[dtype]}")
    expected, actual = (np.full(5000, bits[i]) for i in pair)
    if pair == (5, 5):
        actual |= bits[1]
    expected[2500:2600], actual[2500:2600] = bits[4], bits[4] + bits[2]
    for part in (slice(0, 2500), slice(0, 5000)):
        differences = runs_of(expected[part], actual[part], [4096])
        found = compare.analyse(differences, types(scalar(dtype), size=1 << 18), tolerance)
        assert shown(found.regions[1]) == plain(expected[part], actual[part], dtype, A, tolerance)


def scalar_or_pointer(dtype: str) -> Layout:
    return Layout("pointer", 8, (Field(0, "pointer"),)) if dtype == "pointer" else scalar(dtype)


@pytest.mark.parametrize("dtype", [*SPECIAL])
@pytest.mark.parametrize(
    "tolerance",
    [
        EXACT,
        Tolerance(bitwise=True),
        Tolerance(atol=1e-3, rtol=1e-2),
        Tolerance(ulp=100),
        Tolerance(ulp=1 << 40),
    ],
)
def test_tolerances_pass_what_the_plain_formulation_passes(
    types: MakeTypes, block: int, dtype: str, tolerance: Tolerance
) -> None:
    expected, actual = random_bits(dtype, 12, 0.1)
    differences = runs_of(expected, actual, [16384])
    found = compare.analyse(differences, types(scalar(dtype), size=1 << 18), tolerance)
    assert shown(found.regions[1]) == plain(expected, actual, dtype, A, tolerance)


def compared(types: TypeMap, differences: Differences, monkeypatch: pytest.MonkeyPatch) -> list[Analysis]:
    """Judged as it is, and with every run taken for a short one, which are cut up byte by byte."""
    found = [compare.analyse(differences, types)]
    with monkeypatch.context() as patch:
        patch.setattr("kerncap.core.judge.elements._LONG", 1 << 40)
        found.append(compare.analyse(differences, types))
    return found


LAYOUTS = [
    Layout("pair", 8, (Field(0, "f32"), Field(4, "i32"))),
    Layout("block_q8_0", 34, (Field(0, "f16"), Field(2, "i8", 32))),
    Layout("padded", 24, (Field(0, "f64"), Field(8, "f32", 3))),  # 4 bytes that are of no field
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@pytest.mark.parametrize("start", [0, 16, 6, 33])
def test_long_runs_of_structures_are_cut_up_as_short_ones(
    types: MakeTypes, monkeypatch: pytest.MonkeyPatch, layout: Layout, start: int
) -> None:
    """`start`: how far into the first structure the memory that differs begins."""
    rng = np.random.default_rng(13)
    expected = rng.integers(0, 255, 60_000).astype(np.uint8)
    actual = np.where(rng.random(60_000) < 0.5, expected, expected ^ 3)
    differences = runs_of(expected, actual, [4096], A + start)
    one, other = compared(types(layout, size=1 << 18), differences, monkeypatch)
    assert shown(one.regions[1]) == shown(other.regions[1])
    assert one.regions[1].mismatches > 10_000
    assert one.mismatch_bytes <= 60_000


@pytest.mark.parametrize("layout", [scalar("f32"), scalar("u8"), LAYOUTS[0]], ids=lambda layout: layout.name)
def test_long_runs_with_gaps_and_shared_blocks(
    types: MakeTypes, monkeypatch: pytest.MonkeyPatch, layout: Layout
) -> None:
    rng = np.random.default_rng(14)
    expected = rng.random(20_000, np.float32)
    actual = expected + np.float32(1)
    whole = runs_of(expected, actual, [4096])
    runs = whole.runs[[0, 1, 3, 4, 9, 10, 11]].copy()
    runs["address"][[2, 3]] += 8192  # after a gap, and not where its data says
    runs["address"][5] -= 32  # of a block that the run before has, too
    runs["address"][6] -= 32 + 16
    differences = Differences(runs, whole.data, whole.compared, whole.different, 0.0)
    one, other = compared(types(layout, size=1 << 18), differences, monkeypatch)
    assert shown(one.regions[1]) == shown(other.regions[1])
    assert one.mismatch_bytes > 20_000


def test_decades_begin_where_rounded_logarithms_do() -> None:
    for exponent in range(-18, 3):
        near = 10.0**exponent * (1 + np.arange(-16, 17) * 2.0**-53)
        expected = [min(max(math.floor(math.log10(e)), -16), 0) for e in near]
        assert [decade(e) for e in near] == ["1" if e == 0 else f"1e{e}" for e in expected]


def test_millions_of_differences_take_little_memory(types: MakeTypes) -> None:
    rng = np.random.default_rng(15)
    count = 1 << 22
    expected = rng.standard_normal(count).astype(np.float32)
    differences = runs_of(expected.view(np.uint32), (expected * np.float32(1.5)).view(np.uint32), [16384])
    kinds = types(scalar("f32"), size=1 << 24)
    tracemalloc.start()
    found = compare.analyse(differences, kinds)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.mismatches == count
    assert most < 100 << 20  # whatever `count` is
