"""The sections of on_device.py about kernels within CUDA graphs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from device_checks import WORK, attempt, plain, say, told
from driving import Replay, Watched, capture, watch

from kerncap.core.code.layout import CaptureState


def totals(watched: Watched) -> list[int]:
    return [watched.snapshot.total(what) for what in ("dispatches", "timed", "lost")]


def graphs(static: Path, shared: Path, module_user: Path) -> None:
    """One kernel of a graph launch captured, the graph's host nodes and all else run once, all counted."""

    def one(program: str, case: str, kernel: str, nth: int, a: float | None) -> None:
        name = f"{program} {case}, {kernel} {nth}"
        command: list[str | Path] = [WORK / program, case, "3"]
        output = WORK / "graph-capture"
        without = plain(command)
        bare = watch(command)
        watched, taken = capture(command, kernel, output, nth=nth, timeout_s=10, limit_s=60)
        counts = [totals(bare), totals(watched)]
        say(
            bare.output == without and counts[0] == counts[1] and counts[0][0] == counts[0][1],
            f"{name}: dispatches, timed, lost {counts[0]}, with a capture {counts[1]}; "
            f"{watched.wall_s:.2f} s {watched.errors[-200:]}",
        )
        if taken is None:
            say(False, f"{name}: not captured: {told(watched)}")
            return
        factor = float(np.frombuffer(taken.kernarg.data[16:20], np.float32)[0]) if a is not None else None
        launch = taken.cuda_launch
        with Replay(taken) as replay:
            variant = replay.load()
            times = replay.run(variant, 3)
            compared, different, _ = replay.differences(variant)
            say(
                watched.output == without and different == 0 and taken.changed_bytes() > 0 and factor == a,
                f"{name}: prints {watched.output!r} (alone {without!r}), a {factor} ({a}), "
                f"{taken.changed_bytes()} bytes changed, {different} of {compared} differ, attributes "
                f"{launch and (launch.cluster, launch.cooperative, len(launch.attributes))}, in the program "
                f"{taken.dispatch.end_ns - taken.dispatch.start_ns} ns, replayed {times.tolist()} ns",
            )
        shutil.rmtree(output)

    cases: list[tuple[str, str, str, int, float | None]] = [
        ("graphs", "recorded", "saxpy", 6, 2),
        ("graphs", "recorded", "clamp", 2, None),
        ("graphs", "recorded", "saxpy", 4, 0.25),  # the one that is launched by itself
        ("graphs", "default_stream", "saxpy", 6, 2),
        ("graphs_per_thread", "default_stream", "saxpy", 6, 2),
        ("graphs", "updated", "saxpy", 6, 12),
        ("graphs", "branches", "saxpy", 7, 3),
        ("graphs", "branches", "clamp", 3, None),
        ("graphs", "changed", "saxpy", 6, 12),
        ("graphs", "disabled", "saxpy", 5, 3),
        ("graphs", "child", "saxpy", 8, 3),
        ("graphs", "replaced", "saxpy", 8, 13),
        ("graphs", "cooperative", "cooperative", 2, None),
        ("graphs", "cluster", "clustered", 2, None),
        ("graphs", "programmatic", "dependent", 5, None),
    ]
    for case in cases:
        attempt(" ".join(map(str, case)), lambda c=case: one(*c))

    def refused() -> None:
        command = [WORK / "graphs", "alloc", "3"]
        watched, _ = capture(command, "saxpy", WORK / "alloc", nth=3)
        say(
            watched.status.state is CaptureState.FAILED
            and "allocates or frees memory" in watched.status.message
            and watched.output == plain(command),
            f"a graph that allocates: {told(watched)}",
        )

    def costs() -> None:
        command = [WORK / "graphs", "costs", "50"]
        alone = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stderr
        watched = watch(command)
        say(watched.code == 0, f"graphs of 1,000 kernels: alone {alone.strip()}; watched {watched.errors}")

    attempt("alloc", refused)
    attempt("costs", costs)


TORCH_GRAPH = """
import sys, torch
torch.manual_seed(0)
layers = [torch.nn.Linear(1024, 1024, device="cuda", dtype=torch.bfloat16) for _ in range(4)]
x = torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16)
@torch.no_grad()
def step(x):
    for layer in layers:
        x = torch.nn.functional.layer_norm(torch.nn.functional.gelu(layer(x)) + x, (1024,))
    return torch.softmax(x.float(), -1)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3): step(x)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = step(x)
total = 0.0
for k in range(int(sys.argv[1])):
    x.add_(0.125)
    graph.replay()
    total += y.double().square().sum().item()
print(f"graph {total:.9f}", flush=True)
"""


def torch_graphs(static: Path, shared: Path, module_user: Path) -> None:
    script = WORK / "graph.py"
    script.write_text(TORCH_GRAPH)

    def graph(pick: str) -> None:
        """A kernel of the last replay of a torch.cuda.CUDAGraph."""
        command: list[str | Path] = [sys.executable, script, "5"]
        without = plain(command)
        bare = watch(command)
        kernels = [k for k in bare.snapshot.kernels if pick in k.symbol]
        if not kernels:
            say(False, f"torch graph: no {pick} among {[k.name[:60] for k in bare.snapshot.kernels]}")
            return
        kernel = kernels[0]
        output = WORK / "torch-graph"
        watched, taken = capture(command, kernel.symbol, output, nth=kernel.calls)
        counts = [
            [w.snapshot.total(what) for what in ("dispatches", "timed", "lost")] for w in (bare, watched)
        ]
        print(f"    dispatches, timed, lost {counts[0]}, with a capture {counts[1]}")
        if taken is None:
            say(False, f"torch graph, {kernel.name[:60]} {kernel.calls}: {told(watched)}")
            return
        with Replay(taken) as replay:
            variant = replay.load()
            times = replay.run(variant, 10)
            compared, different, _ = replay.differences(variant)
            say(
                different == 0 and watched.output == without and counts[0] == counts[1],
                f"torch graph, {kernel.name[:60]} {kernel.calls}: {len(taken.regions)} regions "
                f"{taken.pre_bytes} bytes, {taken.changed_bytes()} changed; different {different} of "
                f"{compared}; program {taken.dispatch.end_ns - taken.dispatch.start_ns} ns, replay "
                f"{int(np.median(times))} ns; prints the same: {watched.output == without}",
            )
        shutil.rmtree(output)

    for pick in ("layer_norm", "softmax", "nvjet", "elementwise"):
        attempt(f"graph, {pick}", lambda p=pick: graph(p))
