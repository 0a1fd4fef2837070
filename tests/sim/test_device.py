"""The simulated device: what faults say, progress between workgroups, limits, what was written, cycles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from device_code import ARCHES, KERNELS, assemble, compile_device, link_device, zig
from lanes import Lanes
from simulator import Failed, Simulator, hidden_arguments

from kerncap.core.code.reading import read_code_object

SOURCE = Path(__file__).with_name("device_behaviour.hip")


@dataclass
class Device:
    """Answers of the driver to scripts over device_behaviour.hip."""

    simulator: Simulator
    code: Path
    directory: Path

    def file(self, name: str, data: np.ndarray) -> str:
        path = self.directory / name
        path.write_bytes(data.tobytes())
        return f"alloc {name} {data.nbytes} @{path}"

    def launch(self, kernel: str, arguments: str, grid: int, block: int) -> list[str]:
        hidden = hidden_arguments(self.code).get(kernel)
        lines = [f"kernarg {arguments}"]
        if hidden is not None:
            lines.append(f"hidden {hidden}")
        return [*lines, f"launch {kernel} {grid} 1 1 {block} 1 1 0"]

    def run(self, *lines: str, before: tuple[str, ...] = (), timeout: float = 120) -> list[str]:
        script = "\n".join([*before, f"load {self.code}", *lines]) + "\n"
        try:
            return self.simulator.execute(script, timeout).splitlines()
        except Failed as failed:
            return failed.output.splitlines()

    def cycles(self, *lines: str, before: tuple[str, ...] = ()) -> int:
        answer = self.run(*lines, before=before)[-1]
        found = re.search(r"cycles=(\d+)", answer)
        assert found, answer
        return int(found.group(1))

    def read(self, name: str, dtype: str) -> np.ndarray:
        return np.frombuffer((self.directory / f"{name}.out").read_bytes(), dtype)

    def dump(self, name: str) -> str:
        return f"dump {name} {self.directory / (name + '.out')}"


@pytest.fixture(params=ARCHES)
def device(
    simulator: Simulator, code_directory: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Device:
    return Device(simulator, compile_device(SOURCE, "-O3", code_directory, request.param), tmp_path)


def test_write_outside_every_allocation_names_the_place(device: Device) -> None:
    answer = device.run("alloc p 4096", *device.launch("store_at", "ptr p i64 5000000000 i32 1", 64, 64))[-1]
    assert answer.startswith("fault write to memory that is not allocated")
    for part in (
        "in kernel store_at",
        "global_store_dword",
        "workgroup (0, 0, 0), wave 0, lane 0",
        "nearest allocation",
    ):
        assert part in answer


def test_read_past_the_end_says_how_far(device: Device) -> None:
    answer = device.run(
        "alloc p 4096", "alloc out 4", *device.launch("load_at", "ptr p i64 100000 ptr out", 1, 64)
    )[-1]
    assert answer.startswith("fault read of memory that is not allocated")
    assert "(4 bytes)" in answer


def test_fault_names_the_lane(device: Device) -> None:
    answer = device.run("alloc p 256", *device.launch("lane_out_of_range", "ptr p i32 100000000", 64, 64))[-1]
    assert "lane 37" in answer


def test_lds_out_of_range(device: Device) -> None:
    answer = device.run("alloc p 256", *device.launch("lds_out_of_range", "ptr p i32 64", 64, 64))[-1]
    assert answer.startswith("fault LDS access out of range")
    assert "256 bytes of LDS" in answer
    good = device.run("alloc p 256", *device.launch("lds_out_of_range", "ptr p i32 0", 64, 64))[-1]
    assert good.startswith("ok")


def test_trap(device: Device) -> None:
    data = device.file("p", np.arange(256, dtype=np.int32))
    assert device.run(data, *device.launch("trap_if", "ptr p i32 70", 256, 256))[-1].startswith("fault trap")
    assert device.run(data, *device.launch("trap_if", "ptr p i32 999", 256, 256))[-1].startswith("ok")


def test_endless_kernel_is_stopped(device: Device) -> None:
    answer = device.run("alloc p 4", *device.launch("endless", "ptr p", 64, 64), before=("limit 3000000",))[
        -1
    ]
    assert answer.startswith("fault stopped")
    assert "3000000 wave-instructions" in answer


def test_a_fault_leaves_the_device_usable(device: Device) -> None:
    answers = device.run(
        "alloc p 4096",
        *device.launch("store_at", "ptr p i64 5000000000 i32 1", 64, 64),
        *device.launch("store_at", "ptr p i64 3 i32 77", 64, 64),
        device.dump("p"),
    )
    assert answers[-2].startswith("ok")
    assert device.read("p", "<i4")[3] == 77


@pytest.mark.parametrize("threads", ["threads 1", "threads 3", "deterministic"])
def test_workgroups_that_wait_for_later_ones_make_progress(device: Device, threads: str) -> None:
    groups = 120
    answers = device.run(
        f"alloc flag {4 * groups}",
        *device.launch("chain", f"ptr flag i32 {groups}", 64 * groups, 64),
        device.dump("flag"),
        before=(threads,),
    )
    assert answers[-2].startswith("ok"), answers
    assert device.read("flag", "<i4").all()


def test_written_ranges_are_exact_to_the_byte(device: Device) -> None:
    answers = device.run("alloc p 4096", "writes on", *device.launch("sparse_bytes", "ptr p", 100, 64))
    base = int(re.search(r"address=0x([0-9a-f]+)", answers[1]).group(1), 16)
    ranges = re.search(r"written=(\S+)", answers[-1]).group(1).split(",")
    assert ranges == [f"0x{base + 3 * n:x}+1" for n in range(100)]


def test_written_ranges_are_merged(device: Device) -> None:
    n = 8192
    answers = device.run(
        f"alloc a {4 * n}",
        f"alloc b {4 * n}",
        "writes on",
        *device.launch("copy_strided", f"ptr a ptr b i32 1 i32 {n}", n, 256),
    )
    base = int(re.search(r"address=0x([0-9a-f]+)", answers[2]).group(1), 16)
    assert f"written=0x{base:x}+{4 * n}" in answers[-1]


def test_cycles_do_not_depend_on_host_threads(device: Device) -> None:
    n = 65536
    work = (
        f"alloc a {4 * n}",
        f"alloc b {4 * n}",
        *device.launch("copy_strided", f"ptr a ptr b i32 17 i32 {n}", n, 256),
    )
    counts = {
        device.cycles(*work, before=(t,)) for t in ("threads 1", "threads 2", "threads 5", "deterministic")
    }
    assert len(counts) == 1


def test_scattered_access_costs_more_than_coalesced(device: Device) -> None:
    n = 1 << 20

    def cost(stride: int) -> int:
        return device.cycles(
            f"alloc a {4 * n}",
            f"alloc b {4 * n}",
            *device.launch("copy_strided", f"ptr a ptr b i32 {stride} i32 {n}", n, 256),
        )

    assert cost(33) > 2 * cost(1)


def test_bank_conflicts_cost_cycles(device: Device) -> None:
    def cost(stride: int) -> int:
        return device.cycles("alloc o 256", *device.launch("lds_strided", f"ptr o i32 {stride}", 64, 64))

    assert cost(32) > 2 * cost(33)


def test_hoisting_a_branch_saves_cycles(device: Device) -> None:
    def cost(kernel: str) -> int:
        return device.cycles(
            "alloc a 256", "alloc o 256", *device.launch(kernel, "ptr a ptr o i32 1 i32 1000", 64, 64)
        )

    inside, hoisted = cost("branch_inside"), cost("branch_hoisted")
    assert hoisted < 0.8 * inside


@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize("arch", ARCHES)
def test_recursion_uses_private_memory(
    simulator: Simulator, code_directory: Path, tmp_path: Path, arch: str, level: str
) -> None:
    device = Device(simulator, compile_device(SOURCE, level, code_directory, arch), tmp_path)
    answers = device.run(
        "alloc o 256", "stack 16384", *device.launch("recursion", "ptr o", 64, 64), device.dump("o")
    )
    assert answers[-2].startswith("ok"), answers

    def depth(n: int, total: list[int]) -> int:
        local = [n + k for k in range(8)]
        total[0] += local[n & 7]
        return total[0] if n == 0 else depth(n - 1, total) + local[1]

    assert device.read("o", "<i4").tolist() == [depth(t % 8, [0]) for t in range(64)]


@pytest.mark.parametrize("arch", ARCHES)
def test_a_stack_that_is_too_small_is_a_fault(
    simulator: Simulator, code_directory: Path, tmp_path: Path, arch: str
) -> None:
    device = Device(simulator, compile_device(SOURCE, "-O0", code_directory, arch), tmp_path)
    answer = device.run("alloc o 256", "stack 64", *device.launch("recursion", "ptr o", 64, 64))[-1]
    assert answer.startswith("fault write to memory that is not allocated"), answer
    assert "bytes of private memory" in answer
    assert "in kernel recursion" in answer


def _awkward(rng: np.random.Generator, bits: int, n: int) -> np.ndarray:
    """Random bit patterns: all exponents, denormals, zeros, infinities, NaNs."""
    kind = np.dtype(f"<u{bits // 8}")
    x = rng.integers(0, 1 << bits, n, dtype=kind)
    mantissa = 23 if bits == 32 else 52
    top = (1 << (bits - 1 - mantissa)) - 1
    special = [
        0,
        1,
        1 << (mantissa - 1),
        top << mantissa,
        (top << mantissa) + 1,
        (top - 1) << mantissa,
        1 << mantissa,
    ]
    x[: 2 * len(special)] = np.array(special + [s | 1 << (bits - 1) for s in special], dtype=kind)
    rng.shuffle(x)
    return x


@pytest.mark.parametrize(("kernel", "bits"), [("divide_f32", 32), ("divide_f64", 64)])
def test_division_rounds_correctly(device: Device, kernel: str, bits: int) -> None:
    n = 1 << 16
    rng = np.random.default_rng(bits)
    a, b = (_awkward(rng, bits, n).view(f"<f{bits // 8}") for _ in range(2))
    answers = device.run(
        device.file("a", a),
        device.file("b", b),
        f"alloc q {a.nbytes}",
        *device.launch(kernel, "ptr a ptr b ptr q", n, 256),
        device.dump("q"),
    )
    assert answers[-2].startswith("ok"), answers
    q = device.read("q", a.dtype.str)
    with np.errstate(all="ignore"):
        want = a / b
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(q), nan)
    np.testing.assert_array_equal(q[~nan].view(f"<u{bits // 8}"), want[~nan].view(f"<u{bits // 8}"))


def test_square_root_rounds_correctly(device: Device) -> None:
    n = 1 << 14
    a = np.abs(_awkward(np.random.default_rng(7), 64, n).view("<f8"))
    device.run(
        device.file("a", a),
        f"alloc q {a.nbytes}",
        *device.launch("root_f64", "ptr a ptr q", n, 256),
        device.dump("q"),
    )
    with np.errstate(invalid="ignore"):
        want = np.sqrt(a)
    np.testing.assert_array_equal(device.read("q", "<f8"), want)


ROUNDING = {0: "nearest", 1: "up", 2: "down", 3: "towards zero"}


@pytest.mark.parametrize("mode", ROUNDING, ids=ROUNDING.values())
def test_rounding_mode(lanes: Lanes, mode: int) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(64).astype(np.float32) for _ in range(2))
    piece = lanes.add(
        f"""
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), {mode}
        v_add_f32 v10, v8, v9
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0
        v_add_f32 v11, v8, v9
        """,
        {"v8": a.view(np.uint32), "v9": b.view(np.uint32)},
        ["v10", "v11"],
    )
    lanes.run()
    exact = a.astype(np.float64) + b.astype(np.float64)
    nearest = (a + b).astype(np.float32)
    up = np.where(nearest < exact, np.nextafter(nearest, np.float32(np.inf)), nearest)
    down = np.where(nearest > exact, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    want = {0: nearest, 1: up, 2: down, 3: np.where(exact > 0, down, up)}[mode].astype(np.float32)
    np.testing.assert_array_equal(piece["v10"].view(np.float32), want)
    np.testing.assert_array_equal(piece["v11"].view(np.float32), nearest)


def test_denormals_are_kept_unless_the_mode_flushes_them(lanes: Lanes) -> None:
    tiny = np.full(64, 1e-40, dtype=np.float32)
    piece = lanes.add(
        """
        v_add_f32 v10, v8, v8
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0
        v_add_f32 v11, v8, v8
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3
        """,
        {"v8": tiny.view(np.uint32)},
        ["v10", "v11"],
    )
    lanes.run()
    np.testing.assert_array_equal(piece["v10"].view(np.float32), tiny + tiny)
    assert not piece["v11"].any()


def test_indexed_registers(lanes: Lanes) -> None:
    values = {f"v{8 + n}": np.full(64, 100 + n, dtype=np.uint32) for n in range(4)}
    piece = lanes.add(
        """
        s_mov_b32 s20, 2
        s_set_gpr_idx_on s20, gpr_idx(SRC0)
        v_mov_b32 v20, v8
        s_set_gpr_idx_off
        s_set_gpr_idx_on s20, gpr_idx(DST)
        v_mov_b32 v30, v8
        s_set_gpr_idx_off
        """,
        values,
        ["v20", "v32"],
    )
    lanes.run()
    assert (piece["v20"] == 102).all()
    assert (piece["v32"] == 100).all()


@pytest.mark.parametrize("arch", ARCHES)
def test_preloaded_kernel_arguments(simulator: Simulator, tmp_path: Path, arch: str) -> None:
    """They are in SGPRs, and waves start behind the code for firmware that cannot do that: some compilers
    put a trap there.
    """
    source = tmp_path / "preload.hip"
    source.write_text(
        '#include "device.h"\n'
        'extern "C" __global__ void preload(int* p, int a, int b) { p[threadIdx.x] = a * 1000 + b; }\n'
    )
    assembly, obj, out = (tmp_path / f"preload{kind}" for kind in (".s", ".o", ".hsaco"))
    zig(
        "clang",
        "-x",
        "hip",
        "--cuda-device-only",
        f"--offload-arch={arch}",
        "-nogpulib",
        "-nogpuinc",
        "-O3",
        f"-I{KERNELS}",
        "-mllvm",
        "-amdgpu-kernarg-preload-count=8",
        "-S",
        str(source),
        "-o",
        str(assembly),
    )
    assert re.search(r"kernarg_preload_length\s+[1-9]", assembly.read_text())
    zig("clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c", str(assembly), "-o", str(obj))
    link_device(obj, out)
    elf = read_code_object(out).elf
    entry = next(s.value for s in elf.symbols if s.name == "preload")
    data = out.read_bytes()
    at = data.index(bytes(elf.at_address(entry, 256)))
    out.write_bytes(data[:at] + (0xBF920002).to_bytes(4, "little") + data[at + 4 :])  # s_trap 2
    device = Device(simulator, out, tmp_path)
    answers = device.run(
        "alloc p 256", *device.launch("preload", "ptr p i32 7 i32 5", 64, 64), device.dump("p")
    )
    assert answers[-2].startswith("ok"), answers
    assert (device.read("p", "<i4") == 7005).all()


def test_code_that_nothing_executes_is_refused_at_load(simulator: Simulator, tmp_path: Path) -> None:
    code = assemble(
        """
        .globl bad
        .type bad,@function
        bad:
          s_branch .Lover
          .long 0xdeadbeef
        .Lover:
          s_nop 0
          s_cbranch_g_fork s[0:1], s[2:3]
          s_endpgm
          s_code_end_is_not_here = 0
          .long 0xffffffff
        .Lend:
          .size bad, .Lend-bad
        """,
        "bad",
        tmp_path,
    )
    with pytest.raises(Failed) as failed:
        simulator.execute(f"load {code}\n")
    assert "'s_cbranch_g_fork s[0:1], s[2:3]' at bad+0xc" in str(failed.value)


def test_data_and_padding_in_code_are_not_errors(simulator: Simulator, tmp_path: Path) -> None:
    code = assemble(
        """
        .globl good
        .type good,@function
        good:
          s_branch .Lover
          .long 0xdeadbeef
        .Lover:
          s_endpgm
          .fill 8, 4, 0xffffffff
          .fill 8, 4, 0
        .Lend:
          .size good, .Lend-good
        """,
        "good",
        tmp_path,
    )
    assert simulator.execute(f"load {code}\n").startswith("ok")
