"""What varies between runs from one state: its range, and what is held against it (R6). Without a device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from differences import A, differences

from kerncap.core.judge import compare
from kerncap.core.judge.compare import EXACT, Tolerance
from kerncap.core.judge.dtypes import Field, Layout, TypeMap, scalar
from kerncap.core.judge.variation import Spread, classify, unchecked_bytes, variation_bytes, variations

MakeTypes = Callable[..., TypeMap]
NOISY = np.arange(0, 1024, 4)


def application(count: int = 1024) -> np.ndarray:
    return (np.random.default_rng(8).random(count, np.float32) + 0.1).astype(np.float32)


def noisy(rng: np.random.Generator, values: np.ndarray, relative: float = 1e-6) -> np.ndarray:
    out = values.copy()
    out[NOISY] *= (1 + rng.normal(0, relative, len(NOISY))).astype(np.float32)
    return out


def spread(typed: TypeMap, runs: int = 6, seed: int = 1) -> Spread:
    """Runs of a kernel whose every fourth sum varies; the application's run is one of them."""
    rng, right = np.random.default_rng(seed), application()
    found = Spread(typed)
    for _ in range(runs):
        found.add(differences(right, noisy(rng, right)))
    return found


def test_another_run_passes_and_a_wrong_one_fails(types: MakeTypes) -> None:
    typed, right = types(scalar("f32")), application()
    varying, constant = spread(typed).result()
    assert not constant
    assert variation_bytes(varying) == len(NOISY) * 4
    assert unchecked_bytes(varying) == 0
    assert classify(varying) == {"order of atomic or parallel sums": variation_bytes(varying)}
    failed = 0
    for seed in range(40):
        another = noisy(np.random.default_rng(100 + seed), right)
        failed += compare.analyse(differences(right, another), typed, EXACT, varying).mismatches > 0
    assert failed <= 2  # of 40 runs with 256 sums each
    for wrong in (right * 2, right * 0, right * np.float32(1.0001), right + np.float32(1e-3), -right):
        found = compare.analyse(differences(right, wrong), typed, EXACT, varying)
        assert found.mismatches == 1024  # the varying ones among them
    one = noisy(np.random.default_rng(3), right)
    one[NOISY[3]] *= np.float32(1.001)
    found = compare.analyse(differences(right, one), typed, EXACT, varying)
    assert found.mismatches == 1
    first = found.regions[1].first
    assert first is not None
    assert first["index"] == NOISY[3]
    assert first["range"][0] < right[NOISY[3]] < first["range"][1]
    still = right.copy()
    still[NOISY[3] + 1] *= np.float32(1.000001)  # does not vary: exact
    assert compare.analyse(differences(right, still), typed, EXACT, varying).mismatches == 1


def test_the_application_has_to_lie_in_the_range_of_the_replays(types: MakeTypes) -> None:
    typed, replayed = types(scalar("f32")), application()
    rng = np.random.default_rng(4)
    for factor, mismatches in ((1.0, 0), (1.0002, 1)):
        right = replayed.copy()
        right[NOISY[7]] *= np.float32(factor)
        runs = [differences(right, noisy(rng, replayed)) for _ in range(6)]
        varying, _ = variations(runs, typed)
        found = compare.analyse(runs[0], typed, EXACT, varying, reference=True)
        assert found.mismatches == mismatches
        loose = Tolerance(rtol=1e-3)
        assert compare.analyse(runs[0], typed, loose, varying, reference=True).mismatches == 0


def test_what_the_runs_have_not_shown_is_near(types: MakeTypes) -> None:
    """Just outside: more runs may show it. Far outside, or where nothing varies: they will not."""
    typed, right = types(scalar("f32")), application()
    gathered = spread(typed)
    varying, _ = gathered.result()
    out = right.copy()
    item = varying[0]
    width = float(item.slack(np.array([5]))[0])
    out[NOISY[5]] = item.high[5] + 1.5 * width
    found = compare.analyse(differences(right, out), typed, EXACT, varying)
    assert (found.mismatches, found.near) == (1, True)
    gathered.add(differences(right, out))  # the captured kernel itself gives it
    assert compare.analyse(differences(right, out), typed, EXACT, gathered.result()[0]).mismatches == 0
    out[NOISY[5]] *= 2
    found = compare.analyse(differences(right, out), typed, EXACT, varying)
    assert (found.mismatches, found.near) == (1, False)


def test_infinities_and_nans_make_no_range_of_everything(types: MakeTypes) -> None:
    typed, right = types(scalar("f32")), application()
    runs = []
    for odd in (np.nan, np.inf, 1.0, 1.1):
        out = right.copy()
        out[8] = odd
        runs.append(differences(right, out))
    varying, _ = variations(runs, typed)

    def fails(value: float) -> bool:
        out = right.copy()
        out[8] = value
        return compare.analyse(differences(right, out), typed, EXACT, varying).mismatches > 0

    assert not fails(1.05)
    assert not fails(np.nan)
    assert not fails(np.inf)
    assert fails(-np.inf)
    assert fails(1e6)
    assert fails(-1e6)


def test_integers_that_vary_are_counted_and_not_compared(types: MakeTypes) -> None:
    typed, right = types(scalar("i32")), np.arange(64, dtype=np.int32)
    runs = []
    for seed in range(3):
        out = right.copy()
        out[5] = seed + 100
        runs.append(differences(right, out))
    varying, constant = variations(runs, typed)
    assert not constant
    assert (variation_bytes(varying), unchecked_bytes(varying)) == (4, 4)


def test_a_constant_difference_is_no_variation(types: MakeTypes) -> None:
    right = np.zeros(64, np.int32)
    replayed = right.copy()
    replayed[5] = 3
    runs = [differences(right, replayed) for _ in range(3)]
    varying, constant = variations(runs, types(scalar("i32")))
    assert variation_bytes(varying) == 0
    assert variation_bytes(constant) == 4


def test_a_sum_that_was_alike_in_all_replays_but_not_in_the_application(types: MakeTypes) -> None:
    """As close as its neighbours vary: one more run. Further off: the replay is wrong there."""
    typed, replayed = types(scalar("f32")), application()
    for off, bytes_ in ((1e-6, 0), (1e-4, 4)):
        rng, right = np.random.default_rng(5), replayed.copy()
        right[2] *= np.float32(1 + off)  # not one of those that vary
        varying, constant = variations([differences(right, noisy(rng, replayed)) for _ in range(6)], typed)
        assert variation_bytes(constant) == bytes_
        assert variation_bytes(varying) == len(NOISY) * 4 + 4 - bytes_


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_elements_that_differ_in_some_runs_only(types: MakeTypes, order: tuple[int, ...]) -> None:
    right = application()
    outs = [right.copy() for _ in range(4)]
    outs[1][3], outs[2][3], outs[3][700] = 5.0, 7.0, -2.0
    varying, constant = variations([differences(right, outs[i]) for i in order], types(scalar("f32")))
    assert not constant
    (found,) = varying
    assert found.addresses.tolist() == [A + 12, A + 2800]
    assert found.low.tolist() == [float(right[3]), -2.0]
    assert found.high.tolist() == [7.0, float(right[700])]


@pytest.mark.parametrize("shares", [(0.9, 0.9, 0.9), (1, 1, 1), (0, 0.5, 0.02, 1), (0.3, 0, 0.3, 0.6)])
@pytest.mark.parametrize("layout", ["f32", "i32", "pair"])
def test_ranges_are_those_of_all_runs(types: MakeTypes, layout: str, shares: tuple[float, ...]) -> None:
    """Each run differs in so large a share of the elements, in others each time or in all of them."""
    rng, right = np.random.default_rng(31), application()
    runs = np.array([np.where(rng.random(1024) < share, right * rng.random(), right) for share in shares])
    runs = runs.astype(np.float32)
    pair = Layout("pair", 12, (Field(0, "f32"), Field(4, "f32", 2)))
    typed = types(pair if layout == "pair" else scalar(layout))
    found = Spread(typed)
    for run in runs:
        found.add(differences(right, run))
    varying, constant = found.result()
    moved = (runs != runs[0]).any(axis=0)
    still = ~moved & (runs[0] != right)
    assert found.varies is bool(moved.any())
    for items, chosen in ((varying, moved), (constant, still)):
        addresses = np.concatenate([item.addresses for item in items] or [np.zeros(0)])
        assert addresses.tolist() == (A + 4 * np.flatnonzero(chosen)).tolist()
        if layout != "i32":
            low = np.concatenate([item.low for item in items] or [np.zeros(0)])
            high = np.concatenate([item.high for item in items] or [np.zeros(0)])
            assert low.tolist() == runs.min(axis=0)[chosen].tolist()
            assert high.tolist() == runs.max(axis=0)[chosen].tolist()
