"""The section of h200.py about what being watched costs a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

_TORCH = Path(__file__).resolve().parent / "h200_torch.py"
_PAIRS = 4
# Kernels of the loops of h200_torch.py, by a part of their names, and how often a run launches them.
_KNOWN = {"FunctorOnSelf_add<float>": 2 * (1000 + 2 * 100_000)}
_FIRST = 32  # launches of each kernel that are timed, however many there are

_KINDS = ("bare", "watched", "counted")  # the last: watched without timing

Figures = dict[str, dict[str, list[float]]]  # by name and kind


def _pairs(command: Sequence[str], pairs: int) -> tuple[Figures, Any]:
    """Runs a program in each kind in turn, and what the last watched run's statistics were.

    The program prints a JSON object of lists of seconds; of each list a run's figure is the median.
    """
    from kerncap.core.device.devices import full_environment, resolve_device
    from kerncap.core.program.control import Session
    from kerncap.core.program.live import LiveReader

    device = resolve_device("cuda")
    found: Figures = {}
    snapshot = None

    def run(kind: str, environment: dict[str, str]) -> None:
        started = time.perf_counter()
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
        figures = {**json.loads(done.stdout), "wall": [time.perf_counter() - started]}
        for name, values in figures.items():
            if values:
                found.setdefault(name, {}).setdefault(kind, []).append(median(values))

    run("warm", dict(os.environ))
    for pair in range(pairs):
        for kind in _KINDS if pair % 2 == 0 else _KINDS[::-1]:
            if kind == "bare":
                run(kind, dict(os.environ))
                continue
            with Session.create(timing=kind == "watched") as session:
                run(kind, full_environment(device, session.directory))
                if kind == "watched":
                    with LiveReader(session.directory) as reader:
                        snapshot = reader.snapshot()
    return found, snapshot


def _spread(values: list[float], unit: float) -> str:
    return f"{median(values) * unit:.4g} ({min(values) * unit:.4g} to {max(values) * unit:.4g})"


def interception(bench: Any) -> None:
    """PyTorch loops and a loop of launches with the interposer against without, alternately."""
    launches, _ = _pairs([str(bench.program), "launches"], _PAIRS)
    for name in ("empty kernel", "kernel of 5 us"):
        by_kind = launches[name]
        note = "ns a launch: " + ", ".join(f"{kind} {_spread(by_kind[kind], 1e9)}" for kind in _KINDS)
        for kind in _KINDS[1:]:
            cost = (median(by_kind[kind]) - median(by_kind["bare"])) * 1e9
            bench.row(f"cost a launch, C++, {name}, {kind}", cost, "ns", note=note)
    found, snapshot = _pairs([sys.executable, str(_TORCH), "loops"], _PAIRS)
    texts = {
        "short": ("100,000 launches of about 5 us in PyTorch", 1.03),
        "launch-bound": ("100,000 launches as fast as PyTorch makes them", None),
        "decode": ("steady decoding loop, 8 layers in bf16", 1.03),
        "decode graph": ("the same as a CUDA graph", 1.03),
        "wall": ("the whole program, start and imports included", 1.03),
    }
    for name, (text, most) in texts.items():
        if name not in found:
            bench.row(text, "not run", good=False)
            continue
        by_kind = found[name]
        note = f"s, median (least to most) of {_PAIRS}: "
        note += ", ".join(f"{kind} {_spread(by_kind[kind], 1)}" for kind in _KINDS)
        bare = by_kind["bare"]
        for kind in _KINDS[1:]:
            ratio = median(by_kind[kind]) / median(bare)
            least = f"{min(by_kind[kind]) / min(bare):.3f} x of the least; "
            bench.row(f"{text}: {kind}", ratio, "x", most=most, note=least + note)
            if name in ("short", "launch-bound"):
                cost = (median(by_kind[kind]) - median(bare)) / 1e5 * 1e9
                bench.row(f"cost a launch, {name}, {kind}", cost, "ns")
    _statistics(bench, snapshot)


def _statistics(bench: Any, snapshot: Any) -> None:
    for part, expected in _KNOWN.items():
        calls = sum(k.calls for k in snapshot.kernels if part in k.name)
        names = ", ".join(f"{k.name[:50]} {k.calls}" for k in snapshot.kernels[:3])
        note = "" if calls == expected else f"most calls: {names}"
        bench.row(f"launches counted, {part}", f"{calls} of {expected}", good=calls == expected, note=note)
    dispatches, timed = snapshot.total("dispatches"), snapshot.total("timed")
    lost, rejected = snapshot.total("lost"), snapshot.total("rejected")
    bench.row("share of launches timed", timed / dispatches * 100, "%", note=f"{timed} of {dispatches}")
    bench.row("launches lost or rejected", f"{lost + rejected}", good=lost + rejected == 0)
    fewest = min((k.timed for k in snapshot.kernels if k.timed < k.calls), default=None)
    few = [
        f"{k.name[:60]} {k.timed} of {k.calls}" for k in snapshot.kernels if k.timed < min(_FIRST, k.calls)
    ]
    text = "all" if fewest is None else str(fewest)
    bench.row("fewest times of a kernel", text, good=not few, note="; ".join(few[:4]))
