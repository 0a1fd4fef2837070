"""Programs that time only some of their dispatches: totals are estimates, and said to be."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from test_live import Writer

from kerncap.cli.profile_command import show
from kerncap.core.program.live import KernelStats, LiveReader, merge_kernels
from kerncap.core.program.profile import profile

Fake = Callable[..., list[str]]
HOT = {"name": "hot", "calls": 300, "ns": 100, "every": 10}
COLD = {"name": "cold", "calls": 2, "ns": 5000}


def only(directory: Path) -> KernelStats:
    with LiveReader(directory) as reader:
        return reader.snapshot().kernels[0]


def row(writer: Writer, calls: int, timed: int, total_ns: int) -> None:
    index = int(writer.header["row_count"][0])
    writer.rows["calls"][index], writer.rows["timed"][index] = calls, timed
    writer.rows["total_ns"][index] = total_ns


@pytest.mark.parametrize(
    ("sampling", "timed", "total_ns", "estimated"),
    [
        (1, 50, 100_000, True),
        (1, 989, 100_000, True),
        (1, 990, 99_000, False),  # what was lost or is under way is no sample
        (1, 1000, 100_000, False),
        (1, 0, 0, False),  # no mean, no estimate
        (0, 50, 5_000, False),  # one that times all has lost them
    ],
)
def test_a_total_is_estimated_where_a_sample_was_timed(
    tmp_path: Path, sampling: int, timed: int, total_ns: int, estimated: bool
) -> None:
    writer = Writer(tmp_path / "1-1.live")
    writer.add("k")
    writer.header["sampling"] = sampling
    row(writer, 1000, timed, timed * 100)
    kernel = only(tmp_path)
    assert (kernel.calls, kernel.timed, kernel.total_ns, kernel.estimated) == (
        1000,
        timed,
        total_ns,
        estimated,
    )
    assert kernel.mean_ns == (100 if timed else 0)


def test_the_estimate_follows_the_mean_both_ways_and_counters_do_not_step_back(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "1-1.live")
    writer.add("k")
    writer.header["sampling"] = 1
    with LiveReader(tmp_path) as reader:
        seen = []
        for calls, timed, total in ((100, 10, 5000), (110, 11, 5100), (105, 10, 5000)):
            row(writer, calls, timed, total)
            kernel = reader.snapshot().kernels[0]
            seen.append((kernel.calls, kernel.total_ns))
    assert seen == [(100, 50_000), (110, 51_000), (110, 51_000)]


def test_a_sum_with_an_estimate_is_one_over_all_calls(tmp_path: Path) -> None:
    parts = []
    for sampling, calls, timed, ns in ((0, 10, 0, 0), (1, 100, 10, 50), (0, 20, 19, 200), (1, 40, 40, 10)):
        where = tmp_path / f"{calls}"
        where.mkdir()
        writer = Writer(where / "1-1.live")
        writer.add("k")
        writer.header["sampling"] = sampling
        row(writer, calls, timed, timed * ns)
        parts.append(only(where))
    for order in (parts, parts[::-1]):
        (kernel,) = merge_kernels(order)
        assert (kernel.calls, kernel.timed, kernel.estimated) == (170, 69, True)
        # 100 x 50 + 20 x 200 + 40 x 10, and ten more of which nothing is known.
        assert kernel.total_ns == pytest.approx((5000 + 4000 + 400) * 170 / 160, rel=0.02)
        assert kernel.mean_ns == pytest.approx(kernel.total_ns / 170)
    (measured,) = merge_kernels(parts[2:])
    assert (measured.total_ns, measured.estimated) == (19 * 200 + 400, False)


def test_a_profile_ranks_by_the_estimate_and_marks_it(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    report = profile(fake(kernels=[HOT, COLD], sampling=1))
    assert [(k.name, k.calls, k.timed, k.total_ns, k.estimated) for k in report.kernels] == [
        ("hot", 300, 30, 30_000, True),
        ("cold", 2, 2, 10_000, False),
    ]
    assert report.kernels[0].percent == 75.0
    assert report.warnings == []  # 270 dispatches that were not to be timed are not unaccounted for
    document = report.to_json()
    assert (document["sampling"], document["processes"][0]["sampling"], document["timed"]) == (True, True, 32)
    hot, cold = document["kernels"]
    assert (hot["estimated"], hot["timed"], hot["total_ns"], hot["mean_ns"]) == (True, 30, 30_000, 100)
    assert cold["estimated"] is False
    assert document["processes"][0]["kernels"][0]["total_ns"] == 30_000
    show(report, 5)
    shown = capsys.readouterr().out
    assert "302 dispatches of 2 kernels, 32 timed (a sample); " in shown
    assert "Totals with ~ are estimated: mean times calls." in shown
    assert re.search(r"75\.00 +300 +~0\.030 +0\.10 +0\.10 +0\.10 +hip +hot", shown)
    assert re.search(r"25\.00 +2 +0\.010 +5\.00 ", shown)


def test_lost_times_of_a_program_that_times_all_are_no_sample(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    report = profile(fake(kernels=[HOT, COLD], kill=9))
    assert [(k.name, k.total_ns, k.estimated) for k in report.kernels] == [
        ("cold", 10_000, False),
        ("hot", 3000, False),
    ]
    assert any("the times of its last 270 dispatches were not read" in w for w in report.warnings)
    show(report, 5)
    assert "~" not in capsys.readouterr().out


def test_a_sampling_program_that_is_killed_is_not_said_to_have_lost_what_it_left_out(fake: Fake) -> None:
    report = profile(fake(kernels=[HOT], sampling=1, kill=9))
    assert report.kernels[0].total_ns == 30_000
    assert report.warnings == []


def test_too_many_times_are_still_said(fake: Fake) -> None:
    report = profile(fake(kernels=[{"name": "k", "calls": 3}], sampling=1, lost=2))
    assert any("3 dispatches were seen and 3 timed; -2 are unaccounted for" in w for w in report.warnings)


def test_nothing_timed_of_a_sample_is_a_share_of_calls(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    report = profile(fake(kernels=[{"name": "k", "calls": 3, "ns": 0}], sampling=1), timing=False)
    show(report, 5)
    assert "Nothing was timed: % is of calls." in capsys.readouterr().out
