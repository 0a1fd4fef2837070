"""What only a machine with an NVIDIA GPU can show. It needs nvcc, numpy and xxhash; PyTorch for its section.

    tests/cuda/run.sh [SECTION ...]

Sections: kinds, graphs, statistics, refusals, variants, devices, torch, torch_graphs, speed. Prints a line
a check, `ok` or `BAD`; the exit status is the number of bad ones.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import device_checks
import numpy as np
from device_checks import HERE, WORK, attempt, plain, say, told
from device_graphs import graphs, torch_graphs
from driving import Replay, ReplayError, capture, watch

from kerncap.core.code.layout import CaptureState


def build() -> tuple[Path, Path, Path]:
    """The program linked with the static runtime, with the shared one, and the driver-API program."""
    common = [
        "nvcc",
        "-O2",
        "-std=c++17",
        "-arch=sm_90",
        "-diag-suppress=20012",
        str(HERE / "programs/kinds.cu"),
    ]
    jobs = [
        subprocess.Popen([*common, "-lcuda", "-o", str(WORK / "kinds")]),
        subprocess.Popen([*common, "-cudart=shared", "-lcuda", "-o", str(WORK / "kinds_shared")]),
        subprocess.Popen([*common, "-cubin", "-o", str(WORK / "kinds.cubin")]),
        subprocess.Popen(
            ["nvcc", str(HERE / "programs/module_user.cpp"), "-lcuda", "-o", str(WORK / "module_user")]
        ),
    ]
    for name, *options in (("graphs",), ("graphs_per_thread", "-default-stream", "per-thread")):
        words = [*common[:-1], *options, str(HERE / "programs/graphs.cu"), "-o", str(WORK / name)]
        jobs.append(subprocess.Popen(words))
    assert [job.wait() for job in jobs] == [0] * len(jobs), "nvcc failed"
    return WORK / "kinds", WORK / "kinds_shared", WORK / "module_user"


def round_trip(name: str, program: Path, case: str, kernel: str, times: int = 3, nth: int = 2) -> None:
    """The case captured, its output unchanged, replayed and compared in all bytes."""
    output = WORK / f"capture-{name}"
    without = plain([program, case, str(times)])
    watched, taken = capture([program, case, str(times)], kernel, output, nth=nth, timeout_s=10, limit_s=40)
    if taken is None:
        say(False, f"{name}: not captured: {told(watched)}")
        return
    say(watched.output == without, f"{name}: the program prints the same")
    with Replay(taken) as replay:
        variant = replay.load()
        times_ns = replay.run(variant, 3)
        compared, different, seconds = replay.differences(variant)
        duration = taken.dispatch.end_ns - taken.dispatch.start_ns
        good = different == 0 and compared > 0 and taken.changed_bytes() > 0
        say(
            good,
            f"{name}: {len(taken.regions)} regions, {taken.pre_bytes} bytes, "
            f"{taken.changed_bytes()} changed; compared {compared}, different {different} in "
            f"{seconds:.3f} s; in the program {duration} ns, replayed {times_ns.tolist()} ns "
            f"by {replay.greeting.values['timer']}; "
            f"displaced {replay.greeting.values['displaced_bytes']} "
            f"layouts {replay.greeting.values['layouts']} notes {replay.greeting.notes}",
        )
    shutil.rmtree(output)


def kinds(static: Path, shared: Path, module_user: Path) -> None:
    cases = [
        ("saxpy", static, "saxpy", "saxpy"),
        ("saxpy, shared runtime", shared, "saxpy", "saxpy"),
        ("variables", static, "variables", "with_constant"),
        ("pointer in a variable", static, "through", "through_variable"),
        ("pointer table", static, "table", "of_table"),
        ("address of a variable as argument", static, "symbol_argument", "saxpy"),
        ("dynamic shared memory, atomics", static, "histogram", "histogram"),
        ("cooperative", static, "cooperative", "cooperative"),
        ("cluster", static, "cluster", "clustered"),
        ("cluster of 16 by attribute", static, "wide_cluster", "wide_cluster"),
        ("struct by value", static, "by_value", "by_value"),
        ("template in an anonymous namespace", static, "templated", "templated<float>"),
        ("stream, cudaMallocAsync", static, "async", "saxpy"),
        ("managed and pinned", static, "managed", "saxpy"),
        ("virtual memory", static, "vmm", "saxpy"),
    ]
    for name, program, case, kernel in cases:
        attempt(name, lambda n=name, p=program, c=case, k=kernel: round_trip(n, p, c, k))
    attempt("after a reset", lambda: round_trip("after a reset", static, "reset", "saxpy", 3, 5))
    attempt("registered", lambda: round_trip("registered", static, "managed", "saxpy", 3, 4))
    attempt("streams", lambda: round_trip("streams", static, "streams", "templated<float>"))
    cubin = WORK / "kinds.cubin"
    attempt(
        "driver API",
        lambda: round_trip("driver API", module_user, str(cubin), "saxpy"),
    )


def statistics(static: Path, shared: Path, module_user: Path) -> None:
    def count(name: str, command: list[str | Path], kernel: str, wanted: int) -> None:
        without = plain(command)
        watched = watch(command)
        stats = watched.snapshot
        calls, timed = watched.calls(kernel), stats.total("timed")
        # All launches of a program that makes few, 32 and more of each kernel where they are many.
        enough = timed == stats.total("dispatches") or wanted > 2000
        enough = enough and all(k.timed >= min(k.calls, 32) for k in stats.unordered)
        say(
            calls == wanted and enough and stats.total("lost") == 0 and watched.output == without,
            f"{name}: {kernel} {calls} of {wanted}, dispatches {stats.total('dispatches')}, timed {timed}, "
            f"lost {stats.total('lost')}, rejected {stats.total('rejected')}; {watched.wall_s:.2f} s; "
            f"{[(k.name, k.calls, round(k.mean_ns), k.grid, k.block, k.vgprs) for k in stats.kernels[:3]]} "
            f"{stats.processes[0].devices if stats.processes else None} {watched.errors[-300:]}",
        )

    attempt("static", lambda: count("static", [static, "launches", "20000"], "saxpy", 20000))
    attempt("shared", lambda: count("shared", [shared, "launches", "20000"], "saxpy", 20000))
    attempt(
        "driver",
        lambda: count("driver API", [module_user, WORK / "kinds.cubin", "50"], "saxpy", 50),
    )
    attempt("graph", lambda: count("graph", [static, "graph", "10"], "saxpy", 41))
    attempt("streams", lambda: count("streams", [static, "streams", "10"], "saxpy", 8000))
    attempt(
        "children",
        lambda: count("child", ["/bin/sh", "-c", f"{static} saxpy 3; {static} saxpy 4"], "saxpy", 7),
    )


def refusals(static: Path, shared: Path, module_user: Path) -> None:
    def endless() -> None:
        output = WORK / "endless"
        code = (
            "import subprocess,sys,threading\n"
            "p=subprocess.Popen(sys.argv[1:])\n"
            "try: p.wait(12)\n"
            "except subprocess.TimeoutExpired: p.kill()\n"
        )
        watched, _ = capture(
            [sys.executable, "-c", code, static, "endless"], "spin", output, timeout_s=2, limit_s=60
        )
        say(
            watched.status.state is CaptureState.FAILED and not output.exists(),
            f"a kernel that never ends: {told(watched)}",
        )

    def ambiguous() -> None:
        watched, _ = capture([static, "templated", "2"], "templated", WORK / "ambiguous")
        say(watched.status.state is CaptureState.AMBIGUOUS, f"two kernels of one name: {told(watched)}")

    def leaves() -> None:
        watched, taken = capture([static, "saxpy", "5"], "saxpy", WORK / "leaves", nth=3, exit_after=True)
        say(taken is not None and watched.code == 0 and watched.output == "", f"exit after: {told(watched)}")

    attempt("endless", endless)
    attempt("ambiguous", ambiguous)
    attempt("exit_after", leaves)


def devices(static: Path, shared: Path, module_user: Path) -> None:
    """Needs two GPUs or more."""
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    count = len(listed.splitlines())
    if count < 2:
        print("    one GPU only: nothing to see")
        return
    watched = watch([static, "devices", "1000"])
    stats = watched.snapshot
    say(
        watched.calls("saxpy") == count * 1000 and stats.total("lost") == 0,
        f"launches on {count} devices: {watched.calls('saxpy')}, "
        f"timed {stats.total('timed')} of {stats.total('dispatches')}",
    )
    for nth in range(3, 3 + count):  # which device that is
        where = (nth - 1) % count
        output = WORK / f"device-{where}"
        watched, taken = capture([static, "devices", "5"], "saxpy", output, nth=nth)
        if taken is None:
            say(False, f"device {where}: {told(watched)}")
            continue
        for on in sorted({where, 0}):
            with Replay(taken, "--device", str(on)) as replay:
                variant = replay.load()
                times = replay.run(variant, 3)
                compared, different, _ = replay.differences(variant)
                say(
                    different == 0 and taken.device.index == where and taken.changed_bytes() > 0,
                    f"captured on device {taken.device.index}, replayed on {on}: {different} of {compared} "
                    f"differ, {times.tolist()} ns",
                )
    watched, _ = capture([static, "peer", "3"], "saxpy", WORK / "peer", nth=2)
    say(
        watched.status.state is CaptureState.FAILED and "memory of device 0" in watched.status.message,
        f"memory of another device: {told(watched)}",
    )


VARIANTS = {
    "same": "y[i] = a * x[i] + y[i];",
    "other order": "y[i] = fmaf(x[i], a, y[i]);",
    "wrong": "y[i] = a * x[i];",
    "outside": "y[i] = a * x[i] + y[i]; if (i == 0) y[n + 3] = 1;",
    "fault": "*(float*)8 = 1;",
    "endless": "while (*(volatile const float*)x >= 0) {}",
}


def variants(static: Path, shared: Path, module_user: Path) -> None:
    _, taken = capture([static, "saxpy", "3"], "saxpy", WORK / "variants", nth=2)
    assert taken is not None
    for name, body in VARIANTS.items():
        source = WORK / "variant.cu"
        source.write_text(
            'extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {\n'
            f"  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) {{ {body} }}\n}}\n"
        )
        start = time.monotonic()
        cubin = WORK / "variant.cubin"
        subprocess.run(["nvcc", "-arch=sm_90", "-cubin", source, "-o", cubin], check=True)
        compiled = time.monotonic() - start

        def check(name: str = name, cubin: Path = cubin) -> None:
            with Replay(taken) as replay:
                replay.load()
                variant = replay.load(cubin)
                try:
                    times = replay.run(variant, 5, limit_s=2)
                    compared, different, _ = replay.differences(variant)
                    good = (different == 0) == (name in ("same", "other order"))
                    say(good, f"variant {name}: {different} of {compared} differ, {times.tolist()} ns")
                except ReplayError as error:
                    say(name in ("fault", "endless"), f"variant {name}: {error}")

        attempt(f"variant {name} (nvcc {compiled:.1f} s)", check)

    def others() -> None:
        with Replay(taken) as replay:
            original = replay.load()
            empty = replay.ask("empty").number("variant")
            base = replay.run(original, 20)
            nothing = replay.run(empty, 20)
            _, different, _ = replay.differences(empty)
            say(
                different > 0,
                f"emptied: {different} differ, {int(np.median(nothing))} ns of {int(np.median(base))}",
            )
            cold = replay.run(original, 10, cache="cold")
            say(int(np.median(cold)) > int(np.median(base)), f"cold {int(np.median(cold))} ns")
            ptx = WORK / "variant.ptx"
            source = WORK / "ptx.cu"
            source.write_text(
                'extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {\n'
                "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                "  if (i < n) y[i] = a * x[i] + y[i];\n}\n"
            )
            subprocess.run(["nvcc", "-arch=compute_90", "-ptx", source, "-o", ptx], check=True)
            jitted = replay.load(ptx)
            replay.run(jitted, 1)
            say(replay.differences(jitted)[1] == 0, "PTX variant, compiled by the driver")
            say(replay.ask("idempotent", original, 10).number("same") == 0, "saxpy is not idempotent")
            for wrong, sentence in (
                ('extern "C" __global__ void saxpy(float* y, int n) { y[n] = 0; }', "parameters"),
                ('extern "C" __global__ void other(float* y) { y[0] = 0; }', "no kernel"),
                ("", "cannot be loaded"),
            ):
                cubin = WORK / "wrong.cubin"
                source.write_text(wrong)
                subprocess.run(["nvcc", "-arch=sm_90", "-cubin", source, "-o", cubin], check=True)
                if not wrong:
                    cubin.write_bytes(b"nonsense")
                try:
                    replay.load(cubin)
                    say(False, f"{sentence}: was loaded")
                except ReplayError as error:
                    say(sentence in str(error), f"refused: {str(error)[:160]}")
        with Replay(taken, environment={"KERNCAP_CUDA_TIMER": "event"}) as replay:
            times = replay.run(replay.load(), 20)
            say(replay.greeting.values["timer"] == "event", f"events: {int(np.median(times))} ns")

    attempt("others", others)
    shutil.rmtree(WORK / "variants")


TORCH = """
import sys, time, torch
torch.manual_seed(0)
case, times = sys.argv[1], int(sys.argv[2])
x = torch.randn(512, 1024, device="cuda")
w = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
def step(x):
    if case == "softmax": return torch.softmax(x, -1)
    if case == "layer_norm": return torch.nn.functional.layer_norm(x, (1024,))
    if case == "gemm": return (x.bfloat16() @ w).float()
    if case == "attention":
        q = x.view(1, 8, 64, 1024).bfloat16()
        return torch.nn.functional.scaled_dot_product_attention(q, q, q).float().reshape(512, 1024)
    if case == "add": return x.add_(1.0)
    if case == "compiled": return compiled(x)
compiled = torch.compile(lambda x: torch.nn.functional.gelu(x * 2 + 1) * x) if case == "compiled" else None
for _ in range(3): y = step(x)
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(times): y = step(x)
torch.cuda.synchronize()
print(f"{case} {y.double().sum().item():.6f}", flush=True)
print(f"us a step {(time.perf_counter() - start) / times * 1e6:.3f}", file=sys.stderr, flush=True)
"""


def torch(static: Path, shared: Path, module_user: Path) -> None:
    script = WORK / "loop.py"
    script.write_text(TORCH)

    def names(case: str) -> list[str]:
        watched = watch([sys.executable, script, case, "5"])
        kernels = watched.snapshot.kernels
        print(f"    {case}: {[(k.name[:70], k.kind, k.calls) for k in kernels[:6]]} {watched.errors[-200:]}")
        return [k.symbol for k in kernels]

    def one(case: str, pick: str, environment: dict[str, str] | None = None) -> None:
        symbols = [s for s in names(case) if pick in s]
        assert symbols, "no such kernel"
        output = WORK / f"torch-{case}"
        without = plain([sys.executable, script, case, "5"])
        watched, taken = capture(
            [sys.executable, script, case, "5"], symbols[0], output, nth=1, environment=environment
        )
        if taken is None:
            say(False, f"{case}: {told(watched)}")
            return
        with Replay(taken) as replay:
            variant = replay.load()
            times = replay.run(variant, 10)
            compared, different, _ = replay.differences(variant)
            launch = taken.cuda_launch
            say(
                different == 0 and watched.output == without,
                f"torch {case}: {taken.dispatch.demangled[:60]}: {len(taken.regions)} regions "
                f"{taken.pre_bytes} bytes, {taken.changed_bytes()} changed, {len(taken.variables)} "
                f"variables; different {different} of {compared}; program "
                f"{taken.dispatch.end_ns - taken.dispatch.start_ns} ns, replay {int(np.median(times))} ns; "
                f"{launch and (len(launch.attributes), launch.cluster, launch.dynamic_shared)} "
                f"{replay.greeting.notes[:2]}",
            )
        shutil.rmtree(output)

    attempt("softmax", lambda: one("softmax", "softmax"))
    attempt("layer norm", lambda: one("layer_norm", "layer_norm"))
    attempt("gemm", lambda: one("gemm", "nvjet"))
    attempt("attention", lambda: one("attention", "fmha"))
    attempt("compiled", lambda: one("compiled", "triton"))
    attempt(
        "expandable segments",
        lambda: one("add", "elementwise", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    )

    def overhead() -> None:
        def figure(text: str) -> float:
            return float(text.split("us a step")[1].split()[0])

        bare, with_it = [], []
        for _ in range(5):
            done = subprocess.run(
                [sys.executable, script, "add", "100000"],
                capture_output=True,
                text=True,
                check=True,
                timeout=120,
            )
            bare.append(figure(done.stderr))
            watched = watch([sys.executable, script, "add", "100000"])
            with_it.append(figure(watched.errors))
        stats = watched.snapshot
        say(
            stats.total("lost") == 0,
            f"PyTorch add_ loop, us a step: bare {bare}, watched {with_it}, ratio "
            f"{np.median(with_it) / np.median(bare):.3f}; dispatches {stats.total('dispatches')} timed "
            f"{stats.total('timed')} lost {stats.total('lost')}",
        )

    attempt("overhead", overhead)


def plain_write(path: Path, gib: int) -> float:
    """GB/s of writing that much that is not zero to a new file, one thread, as `dd` does it."""
    block = np.random.default_rng(1).integers(0, 256, 4 << 20, np.uint8).tobytes()
    start = time.monotonic()
    with path.open("wb", buffering=0) as file:
        for _ in range(gib * 256):
            file.write(block)
        os.fsync(file.fileno())
    rate = gib * 2**30 / (time.monotonic() - start) / 1e9
    path.unlink()
    return rate


def speed(static: Path, shared: Path, module_user: Path) -> None:
    gib = int(os.environ.get("GIB", "12"))
    for where in ("/dev/shm", "/dev/shm", os.environ.get("DISK", "/tmp")):
        output = Path(where) / "kerncap-big"
        written = plain_write(Path(where) / "kerncap-plain", gib)
        command = [static, "big", str(gib)]
        watched, taken = capture(command, "saxpy", output, exit_after=True, timeout_s=200, limit_s=300)
        if taken is None:
            say(False, f"{gib} GiB to {where}: {told(watched)}")
            continue
        saved = (watched.status.finished_ns - watched.status.started_ns) / 1e9
        rate = taken.pre_bytes / saved / 1e9
        states = {state.name: round(at, 2) for state, at in watched.states.items()}
        print(
            f"    {gib} GiB to {where}: captured in {saved:.2f} s, {rate:.2f} GB/s; plain write there "
            f"{written:.2f} GB/s: {rate / written:.2f} of it; {states}"
        )
        start = time.monotonic()
        with Replay(taken) as replay:
            ready = time.monotonic() - start
            variant = replay.load()
            replay.run(variant, 1)
            first = replay.differences(variant)
            second = replay.differences(variant)
            say(
                first[1] == second[1] == 0,
                f"replay from {where}: ready in {ready:.2f} s; strict comparison {first[2]:.3f} s, again "
                f"{second[2]:.3f} s, of {first[0]} bytes; in all {time.monotonic() - start:.2f} s",
            )
        shutil.rmtree(output)


def main() -> int:
    start = time.monotonic()
    programs = build()
    print(f"built in {time.monotonic() - start:.1f} s", flush=True)
    sections = {
        "kinds": kinds,
        "graphs": graphs,
        "statistics": statistics,
        "refusals": refusals,
        "variants": variants,
        "devices": devices,
        "torch": torch,
        "torch_graphs": torch_graphs,
        "speed": speed,
    }
    for name in sys.argv[1:] or sections:
        print(f"== {name}", flush=True)
        attempt(name, lambda run=sections[name]: run(*programs))
    bad = device_checks.bad
    print(f"{bad} bad, {time.monotonic() - start:.0f} s", flush=True)
    shutil.rmtree(WORK, ignore_errors=True)
    return min(bad, 100)


if __name__ == "__main__":
    sys.exit(main())
