"""What an NVIDIA H200 shows of kerncap: one command, one table.

    python tests/bench/h200.py [--json FILE] [--only SECTION ...] [--memory DIR] [--disk DIR] [--gib N]

It needs kerncap (KERNCAP_NATIVE_DIR and PYTHONPATH, or installed), nvcc, and for its sections PyTorch,
CuPy and ncu. Each section runs in a process of its own with a limit, so that one that hangs or fails costs
only itself. Ratios are of figures of the same run, taken alternately where both are times of a program.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from h200_interception import interception

HERE = Path(__file__).resolve().parent
TORCH = HERE / "h200_torch.py"
QUIET = subprocess.DEVNULL
MIB = 1 << 20
GIB = 1 << 30


def median(values: list[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


class Bench:
    """Where a section works, and where its rows go."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.work = Path(options.work)
        self.program = self.work / "h200_program"
        self.memory, self.disk = Path(options.memory), Path(options.disk)

    def row(
        self,
        name: str,
        value: float | str,
        unit: str = "",
        *,
        most: float | None = None,
        least: float | None = None,
        good: bool | None = None,
        note: str = "",
    ) -> None:
        """One line of the table; its aim is `most`, `least`, or that `good` is true."""
        aim = f"at most {most:g}" if most is not None else f"at least {least:g}" if least is not None else ""
        if isinstance(value, float):
            if most is not None:
                good = value <= most
            elif least is not None:
                good = value >= least
        line = {"name": name, "value": value, "unit": unit, "aim": aim, "met": good, "note": note}
        with open(self.options.rows, "a") as file:
            file.write(json.dumps(line) + "\n")
        print(text_of(line), flush=True)

    @contextlib.contextmanager
    def place(self, root: Path) -> Iterator[Path]:
        """A folder that is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="kerncap-h200-", dir=root) as folder:
            yield Path(folder)


def text_of(row: dict[str, Any]) -> str:
    value = f"{row['value']:.4g}" if isinstance(row["value"], float) else str(row["value"])
    met = {True: "met", False: "NOT met", None: ""}[row["met"]]
    figure = f"{value} {row['unit']}".strip()
    return f"{row['name']:<66} {figure:<18} {row['aim']:<16} {met:<8} {row['note']}".rstrip()


# ---- sections -----------------------------------------------------------------------------------


def fidelity(bench: Bench) -> None:
    """Kernels of each sort: what replay gives, against what the program got; and the rebuilt kernel."""
    from kerncap.core.extract.extract import extract
    from kerncap.core.judge.validate import validate

    def one(kernel: str) -> tuple[str, str, str, str]:
        with bench.place(bench.memory) as place:
            out = place / "out"
            result = extract(
                kernel, [str(bench.program), "kinds"], device="cuda", dispatch=3, output=out, stdout=2
            )
            strict = validate(out, mode="strict", device="cuda")
            return (
                kernel,
                str(result.baseline.get("verdict")),
                strict.verdict,
                str(result.baseline.get("reason")),
            )

    kernels = ("in_place", "atomic_counts", "pointer_table", "with_constant")
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(one, kernels))
    for kernel, verdict, strict, reason in rows:
        good = verdict == strict == "IDENTICAL"
        note = f"strict: {strict}" + ("" if good else f"; {reason}")
        bench.row(f"bytes after replay, {kernel}", verdict, good=good, note=note)


def self_test(bench: Bench) -> None:
    """`kerncap doctor --self-test --device cuda`, and the counters of one kernel."""
    from kerncap.core.device.devices import resolve_device
    from kerncap.core.doctor.cuda_doctor import cuda_checks, cuda_self_test
    from kerncap.core.errors import KerncapError
    from kerncap.core.extract.extract import extract
    from kerncap.core.replay.counters import counters

    for check in (*cuda_checks(), *cuda_self_test(resolve_device("cuda"))):
        bench.row(f"doctor: {check.name}", check.state, good=check.state != "problem", note=check.detail)
    with bench.place(bench.memory) as place:
        command = [str(bench.program), "kinds"]
        extract("in_place", command, device="cuda", dispatch=3, output=place / "out", stdout=2)
        try:
            found = counters(place / "out", device="cuda").counters
        except KerncapError as error:
            bench.row("replay --counters", "error", good=False, note=error.message.replace("\n", " ")[-300:])
            return
        text = "; ".join(f"{c.name} {c.value} {c.unit}" for c in found[:6])
        bench.row("replay --counters", f"{len(found)}", "counters", good=len(found) > 5, note=text)


def times(bench: Bench) -> None:
    """Replayed time against the same kernel's time in the program."""
    from kerncap.core.extract.extract import extract
    from kerncap.core.program.profile import profile
    from kerncap.core.replay.replay import replay

    command = [str(bench.program), "times"]
    report = profile(command, device="cuda", stdout=2, timeout=100)
    for kernel in ("spin_5us", "spin_20us", "spin_100us", "stream_200us", "spin_1ms", "spin_10ms"):
        row = next(k for k in report.kernels if kernel in k.name)
        with bench.place(bench.memory) as place:
            out = place / "out"
            extract(kernel, command, device="cuda", dispatch=50, output=out, stdout=2, timeout=100)
            replayed = replay(out, device="cuda", time_limit_s=3.0)
        ratio = replayed.timing.median_ns / row.mean_ns
        note = (
            f"in the program {row.mean_ns / 1e3:.2f} us (mean of {row.calls}, least {row.min_ns / 1e3:.2f}), "
            f"replayed "
            f"{replayed.timing.median_ns / 1e3:.2f} us ({replayed.timing.n} samples, {replayed.timer})"
        )
        bench.row(
            f"replayed against in the program, {kernel}", abs(ratio - 1) * 100, "%", most=2.0, note=note
        )


_EDITED = """#include <cstdio>
{padding}
__global__ void edited(const float* x, float* y, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = helper_0(x[i]) * 2.0f + 1.0f;
}}
int main() {{
  float *x, *y;
  const int n = 1 << 22;
  if (cudaMalloc(&x, n * 4) || cudaMalloc(&y, n * 4)) return 1;
  cudaMemset(x, 1, n * 4);
  for (int k = 0; k < 5; ++k) edited<<<n / 256, 256>>>(x, y, n);
  return cudaDeviceSynchronize();
}}
"""


def edit_loop(bench: Bench) -> None:
    """A kernel in a file of 1,000 lines: from a save to its verdict, and where the time goes."""
    from kerncap.core.extract.extract import extract
    from kerncap.core.loop.session import open_loop

    with bench.place(bench.memory) as place:
        lines = [
            f"__device__ float helper_{k}(float v) {{ return v * {k}.5f + {k % 7}.0f; }}" for k in range(975)
        ]
        lines += [f"__global__ void other_{k}(float* p) {{ *p = helper_{k}(*p); }}" for k in range(10)]
        source = place / "tree" / "edited.cu"
        source.parent.mkdir()
        source.write_text(_EDITED.format(padding="\n".join(lines)))
        words = ["nvcc", "-O3", "-arch=sm_90", str(source), "-o", str(place / "edited")]
        subprocess.run(words, check=True, timeout=120)
        command = [
            {
                "directory": str(source.parent),
                "file": str(source),
                "arguments": [*words[:3], "-c", str(source)],
            }
        ]
        (source.parent / "compile_commands.json").write_text(json.dumps(command))
        out = place / "out"
        result = extract(
            "edited", [str(place / "edited")], device="cuda", source_dir=source.parent, output=out, stdout=2
        )
        note = f"{len(source.read_text().splitlines())} lines; rebuilt unchanged: {result.source.rebuilt}"
        bench.row(
            "edit loop: baseline",
            str(result.baseline["verdict"]),
            good=bool(result.source.variant),
            note=note,
        )
        variant = out / "kernel_variant.cu"
        with open_loop(out, lambda event: None, device="cuda") as loop:
            loop.bench.prepare()
            for old, new, what in (
                ("* 2.0f + 1.0f", "+ helper_0(x[i]) + 1.0f", "another order of the same"),
                ("+ 1.0f;", "+ 2.0f;", "a wrong edit"),
            ):
                variant.write_text(variant.read_text().replace(old, new))
                attempt = loop.attempt()
                document = attempt.document if attempt else {}
                spent = {k: round(v, 3) for k, v in document.get("seconds", {}).items()}
                verdict = document.get("validation", {}).get("verdict") or document.get("outcome")
                seconds = float(document.get("seconds", {}).get("total", 1e9))
                bench.row(
                    f"edit loop, save to verdict: {what}", seconds, "s", most=3.0, note=f"{verdict}; {spent}"
                )


def by_request(replayer: Any) -> dict[str, float]:
    """Seconds that the replayer's answers take from now on, by request."""
    spent: dict[str, float] = {}
    asked = replayer.request

    def request(command: str, *words: object, **more: Any) -> Any:
        started = time.perf_counter()
        try:
            return asked(command, *words, **more)
        finally:
            spent[command] = spent.get(command, 0.0) + time.perf_counter() - started

    replayer.request = request
    return spent


def validation(bench: Bench) -> None:
    """Extraction of a kernel with much memory, whole; its strict validation, cold and resident."""
    from kerncap.core.extract.extract import extract
    from kerncap.core.judge.validate import Validator

    gib = bench.options.gib
    with bench.place(bench.memory) as place:
        plain_write(place, gib * GIB, 8)  # a virtual machine's memory may have to grow first
        out = place / "out"
        stages: list[tuple[str, float]] = []
        started = time.perf_counter()

        def on_progress(progress: Any) -> None:
            if not stages or stages[-1][0] != progress.stage:
                stages.append((progress.stage, time.perf_counter() - started))

        result = extract(
            "touch",
            [str(bench.program), "big", str(gib)],
            device="cuda",
            dispatch=2,
            output=out,
            stdout=2,
            timeout=120,
            on_progress=on_progress,
        )
        total = time.perf_counter() - started
        where = ", ".join(f"{name} {at:.1f}" for name, at in stages)
        note = (
            f"{result.bytes / 1e9:.1f} GB; saved in {result.snapshot_s:.2f} s; {result.baseline['verdict']}; "
        )
        bench.row(f"extraction, {gib} GiB reachable, to memory", total, "s", most=5.0, note=note + where)
        started = time.perf_counter()
        with Validator(out, "cuda") as validator:
            first = validator.validate(mode="strict")
            cold = time.perf_counter() - started
            bench.row(
                f"strict validation, {gib} GiB, from cached files", cold, "s", most=3.0, note=first.verdict
            )
            variant = next((out / "capture/code").glob("*"))
            started = time.perf_counter()
            validator.validate(variant, mode="strict")
            note = "the kernel reads what it overwrites: its own run from altered memory is judged once"
            bench.row("the same of a variant, the first time", time.perf_counter() - started, "s", note=note)
            spent = by_request(validator.replayer)
            started = time.perf_counter()
            again = validator.validate(variant, mode="strict")
            resident = time.perf_counter() - started
            compared = f"{again.compared_bytes / 1e9:.1f} GB compared in {again.compare_s:.3f} s"
            steps = ", ".join(f"{name} {value:.2f}" for name, value in spent.items())
            note = f"{again.verdict}; {compared}; s by request: {steps}"
            bench.row(f"strict validation, {gib} GiB, resident", resident, "s", most=0.3, note=note)


def plain_write(folder: Path, total: int, threads: int) -> float:
    """GB/s of plain writes of incompressible data, flushed."""
    block = os.urandom(8 * MIB)
    count = total // len(block) // threads

    def write(number: int) -> None:
        with open(folder / f"plain{number}", "wb", buffering=0) as file:
            for _ in range(count):
                file.write(block)
            os.fsync(file.fileno())

    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(threads)))
    rate = total / (time.perf_counter() - started) / 1e9
    for i in range(threads):
        (folder / f"plain{i}").unlink()
    return rate


def snapshot(bench: Bench) -> None:
    """Saving memory, to memory and to disk, against what the bus and the place can take."""
    from kerncap.core.capture.reading import read_capture
    from kerncap.core.device.devices import resolve_device
    from kerncap.core.extract.capture_run import Captured, RunRequest, run
    from kerncap.core.program.workload import Command

    device = resolve_device("cuda")
    done = subprocess.run(
        [bench.program, "bandwidth"], capture_output=True, text=True, check=True, timeout=60
    )
    bus = float(done.stdout)
    bench.row("device to pinned memory", bus, "GB/s")
    for gib in dict.fromkeys((bench.options.gib, bench.options.large)):
        for name, root in (("memory", bench.memory), ("disk", bench.disk)):
            if shutil.disk_usage(root).free < (gib + 6) * GIB:
                bench.row(f"snapshot, {gib} GiB to {name}", "no room", note=str(root))
                continue
            with bench.place(root) as place:
                # As much as the snapshot: a virtual machine's memory may have to grow first.
                several = plain_write(place, (gib if root == bench.memory else 4) * GIB, 8)
                plain = plain_write(place, 4 * GIB, 1)
                command = Command((str(bench.program), "big", str(gib)))
                request = RunRequest(
                    "touch", command, device, place / "capture", nth=2, timeout=150, stdout=2
                )
                taken = run(request)
                assert isinstance(taken, Captured)
                size = read_capture(place / "capture").pre_bytes
                rate = size / taken.snapshot_s / 1e9
            limit = min(bus, plain)
            note = f"{rate:.2f} GB/s; plain write there {plain:.2f} GB/s, by eight threads {several:.2f}"
            bench.row(
                f"snapshot, {gib} GiB to {name}, of the limit", rate / limit * 100, "%", least=80.0, note=note
            )


_REAL = (
    ("layer norm", "layer_norm", r"layer_norm"),
    ("softmax", "softmax", r"[sS]oft[mM]ax"),
    ("cuBLAS GEMM in bf16", "gemm", r"gemm|nvjet|xmma|cutlass"),
    ("scaled_dot_product_attention", "attention", r"flash|fmha|attention|cudnn"),
    ("torch.compile'd MLP", "mlp", r"^triton_"),
    ("CuPy", "cupy", r"cupy"),
)


def real(bench: Bench) -> None:
    """Kernels of PyTorch and CuPy: captured, replayed, validated."""
    import re

    from kerncap.core.errors import KerncapError
    from kerncap.core.extract.extract import extract
    from kerncap.core.judge.validate import validate
    from kerncap.core.program.profile import profile
    from kerncap.core.replay.replay import replay

    def one(what: tuple[str, str, str]) -> tuple[str, str, bool, str]:
        title, case, pattern = what
        command = [sys.executable, str(TORCH), case]
        try:
            report = profile(command, device="cuda", stdout=2, stderr=2, timeout=150)
            fitting = [
                k for k in report.kernels if re.search(pattern, k.name) or re.search(pattern, k.symbol)
            ]
            if not fitting:
                names = [k.name[:60] for k in report.kernels[:6]]
                return title, "not seen", False, f"{names}; {'; '.join(report.warnings)}"
            kernel = fitting[0]
            with bench.place(bench.memory) as place:
                out = place / "out"
                result = extract(
                    kernel.id, command, device="cuda", dispatch=3, output=out, stdout=2, stderr=2, timeout=150
                )
                again = validate(out, device="cuda")
                timed = replay(out, device="cuda", iterations=20)
            good = again.verdict in ("IDENTICAL", "NONDETERMINISTIC_OK")
            note = (
                f"{kernel.kind}: {kernel.name[:70]}; {result.regions} regions, {result.bytes / 1e6:.1f} MB; "
                f"in the program {kernel.mean_ns / 1e3:.1f} us, replayed "
                f"{timed.timing.median_ns / 1e3:.1f} us; "
                f"source: {result.source.variant or result.source.reason}"
            )
            return title, again.verdict, good, note if good else f"{again.reason}; {note}"
        except KerncapError as error:
            return title, type(error).__name__, False, error.message.replace("\n", " ")[:500]

    with ThreadPoolExecutor(6) as pool:
        for title, verdict, good, note in pool.map(one, _REAL):
            bench.row(f"captured, replayed, validated: {title}", verdict, good=good, note=note)


def triton(bench: Bench) -> None:
    """Triton's kernels and Inductor's: see h200_triton_rows.py."""
    from h200_triton_rows import triton as rows

    rows(bench)


SECTIONS: dict[str, tuple[Callable[[Bench], None], float]] = {
    "fidelity": (fidelity, 60),
    "self-test": (self_test, 75),
    "real": (real, 120),
    "triton": (triton, 170),
    "times": (times, 70),
    "edit-loop": (edit_loop, 60),
    "validation": (validation, 100),
    "interception": (interception, 230),
    "snapshot": (snapshot, 120),
}


# ---- the whole ----------------------------------------------------------------------------------


def run_section(name: str, limit_s: float, options: argparse.Namespace) -> str | None:
    """Runs a section in a process of its own; what went wrong, or None."""
    words = [sys.executable, str(Path(__file__).resolve()), "--section", name]
    for option in ("work", "rows", "memory", "disk", "gib", "large"):
        words += [f"--{option}", str(getattr(options, option))]
    with open(Path(options.work) / f"{name}.err", "w+") as errors:
        process = subprocess.Popen(words, stderr=errors, start_new_session=True)
        try:
            code = process.wait(limit_s)
            problem = f"status {code}" if code else None
        except subprocess.TimeoutExpired:
            problem = f"not done within {limit_s:g} s"
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        errors.seek(0)
        tail = " | ".join(errors.read().splitlines()[-8:])
    return None if problem is None else f"{problem}: {tail[-700:]}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--only", nargs="*", choices=sorted(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--memory", default="/dev/shm", help="a folder in memory")
    parser.add_argument("--disk", default=tempfile.gettempdir(), help="a folder on disk")
    parser.add_argument("--gib", type=int, default=12, help="GiB of the large kernel")
    parser.add_argument("--large", type=int, default=30, help="GiB of the largest snapshot")
    parser.add_argument("--limit", type=float, default=3600, help="seconds in all")
    for hidden in ("--section", "--work", "--rows"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.section:
        SECTIONS[options.section][0](Bench(options))
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kerncap-h200-") as work:
        options.work, options.rows = work, str(Path(options.json or f"{work}/rows").with_suffix(".jsonl"))
        Path(options.rows).unlink(missing_ok=True)
        bench = Bench(options)
        words = ["nvcc", "-O2", "-arch=native", str(HERE / "h200_program.cu"), "-o", str(bench.program)]
        subprocess.run(words, check=True, timeout=180)
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        gpu = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
        bench.row("machine", gpu, note=time.strftime("%Y-%m-%d"))
        for name in options.only:
            left = options.limit - (time.monotonic() - began)
            started = time.monotonic()
            problem = run_section(name, max(5.0, min(SECTIONS[name][1], left)), options)
            if problem is not None:
                bench.row(f"section {name}", "FAILED", good=False, note=problem)
            print(f"-- {name}: {time.monotonic() - started:.1f} s", flush=True)
        rows = [json.loads(line) for line in Path(options.rows).read_text().splitlines()]
    print("\n" + "\n".join(map(text_of, rows)))
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    return min(sum(row["met"] is False for row in rows), 100)


if __name__ == "__main__":
    sys.exit(main())
