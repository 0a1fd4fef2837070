"""LLVM's constant folding as oracle: it knows what many amdgcn builtins give for constant arguments.

The same calls with arguments that it cannot see must give the same on the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import device_code
import numpy as np
import pytest
from simulator import Simulator

F32 = [
    *(
        0x00000000,
        0x80000000,
        0x3F800000,
        0xBF800000,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x00000001,
        0x807FFFFF,
    ),
    *(
        0x00800000,
        0x7F7FFFFF,
        0x3EAAAAAB,
        0xC2F6E979,
        0x4B7FFFFF,
        0xCB800001,
        0x3F7FFFFF,
        0x34000000,
        0x42C80000,
    ),
]
F64 = [
    *(0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000, 0xBFF8000000000000, 0x7FF0000000000000),
    *(0xFFF0000000000000, 0x7FF8000000000000, 0x0000000000000001, 0x000FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF),
    *(0x40F86A0000000001, 0xC1E0000000200000, 0x3FD5555555555555, 0x434FFFFFFFFFFFFF),
]
INTS = [
    0,
    1,
    31,
    32,
    0x80000000,
    0xFFFFFFFF,
    0x12345678,
    0x0F0E0D0C,
    0x07060504,
    0x03020100,
    0xDEADBEEF,
    5,
    13,
]


@dataclass
class Fold:
    """`call` with {0}, {1} ... in a kernel; arguments by type letter: i u32, f f32, d f64. `mnemonic` is the
    instruction that a folded call does not need."""

    call: str
    types: str
    mnemonic: str
    result: str = "i"
    ulp: int = 0


FOLDS = {
    "perm": Fold("__builtin_amdgcn_perm({0}, {1}, {2})", "iii", "v_perm_b32"),
    "alignbit": Fold("__builtin_amdgcn_alignbit({0}, {1}, {2})", "iii", "v_alignbit_b32"),
    "ubfe": Fold("__builtin_amdgcn_ubfe({0}, {1}, {2})", "iii", "v_bfe_u32"),
    "sbfe": Fold("__builtin_amdgcn_sbfe({0}, {1}, {2})", "iii", "v_bfe_i32"),
    "fmed3": Fold("__builtin_amdgcn_fmed3f({0}, {1}, {2})", "fff", "v_med3_f32", "f"),
    "rcp": Fold("__builtin_amdgcn_rcpf({0})", "f", "v_rcp_f32", "f", 1),
    "fract": Fold("__builtin_amdgcn_fractf({0})", "f", "v_fract_f32", "f"),
    "frexp_mant": Fold("__builtin_amdgcn_frexp_mantf({0})", "f", "v_frexp_mant_f32", "f"),
    "frexp_exp": Fold("__builtin_amdgcn_frexp_expf({0})", "f", "v_frexp_exp_i32_f32"),
    "frexp_mant64": Fold("__builtin_amdgcn_frexp_mant({0})", "d", "v_frexp_mant_f64", "d"),
    "frexp_exp64": Fold("__builtin_amdgcn_frexp_exp({0})", "d", "v_frexp_exp_i32_f64"),
    "trig_preop": Fold("__builtin_amdgcn_trig_preop({0}, {1})", "di", "v_trig_preop_f64", "d"),
    "cvt_pkrtz": Fold(
        "__builtin_bit_cast(uint, __builtin_amdgcn_cvt_pkrtz({0}, {1}))", "ff", "v_cvt_pkrtz_f16_f32"
    ),
    "class": Fold("(uint)__builtin_amdgcn_classf({0}, {1})", "fi", "v_cmp_class_f32"),
    "class64": Fold("(uint)__builtin_amdgcn_class({0}, {1})", "di", "v_cmp_class_f64"),
    "ldexp": Fold("__builtin_ldexpf({0}, (int){1})", "fi", "v_ldexp_f32", "f"),
    "ldexp64": Fold("__builtin_ldexp({0}, (int){1})", "di", "v_ldexp_f64", "d"),
    "rint64": Fold("__builtin_rint({0})", "d", "v_rndne_f64", "d"),
    "floor64": Fold("__builtin_floor({0})", "d", "v_floor_f64", "d"),
    "min": Fold("__builtin_fminf({0}, {1})", "ff", "v_min_f32", "f"),
    "max64": Fold("__builtin_fmax({0}, {1})", "dd", "v_max_f64", "d"),
    "fma64": Fold("__builtin_fma({0}, {1}, {2})", "ddd", "v_fma_f64", "d"),
    "to_int": Fold("(uint)(int){0}", "f", "v_cvt_i32_f32"),
    "brev": Fold("__builtin_bitreverse32({0})", "i", "v_bfrev_b32"),
    "popcount": Fold("(uint)__builtin_popcount({0})", "i", "v_bcnt_u32_b32"),
    "mulhi": Fold("(uint)((u64){0} * {1} >> 32)", "ii", "v_mul_hi_u32"),
}
POOLS = {"i": INTS, "f": F32, "d": F64}
# Arguments LLVM leaves to the hardware, or that C++ does not define
SKIPS: dict[str, Callable[[list[int]], bool]] = {
    "to_int": lambda a: not -(2.0**31) < float(np.uint32(a[0]).view(np.float32)) < 2.0**31,
    "ubfe": lambda a: False,
    "trig_preop": lambda a: not np.isfinite(np.uint64(a[0]).view(np.float64)),
}


def arguments(rng: np.random.Generator, name: str, fold: Fold, count: int = 24) -> list[list[int]]:
    out = []
    while len(out) < count:
        row = [POOLS[t][int(rng.integers(0, len(POOLS[t])))] for t in fold.types]
        if len(fold.types) == 1 and len(out) < len(POOLS[fold.types[0]]):
            row = [POOLS[fold.types[0]][len(out)]]
            count = len(POOLS[fold.types[0]])
            out.append(row)
            continue
        out.append(row)
    return [row for row in out if not SKIPS.get(name, lambda _: False)(row)]


def literal(kind: str, bits: int) -> str:
    if kind == "i":
        return f"{bits:#x}u"
    kind_name, integer = ("float", f"{bits:#x}u") if kind == "f" else ("double", f"{bits:#x}ull")
    return f"__builtin_bit_cast({kind_name}, {integer})"


def opaque(kind: str, n: int, slot: int) -> str:
    word = f"in[{4 * n + slot}]"
    return {"i": f"(uint){word}", "f": f"__builtin_bit_cast(float, (uint){word})"}.get(
        kind, f"__builtin_bit_cast(double, {word})"
    )


def store(fold: Fold, call: str) -> str:
    cast = {"i": "uint", "f": "uint", "d": "u64"}[fold.result]
    return f"(u64)__builtin_bit_cast({cast}, {call})"


def build(directory: Path, cases: dict[str, list[list[int]]]) -> Path:
    lines = ['#include "device.h"']
    for name, rows in cases.items():
        fold = FOLDS[name]
        for kernel, text in (("folded", literal), ("computed", opaque)):
            lines.append(f'extern "C" __global__ void {kernel}_{name}(const u64* in, u64* out) {{')
            for n, row in enumerate(rows):
                if text is literal:
                    values = [literal(t, v) for t, v in zip(fold.types, row, strict=True)]
                else:
                    values = [opaque(t, n, k) for k, t in enumerate(fold.types)]
                lines.append(f"  out[{n}] = {store(fold, fold.call.format(*values))};")
            lines.append("}")
    source = directory / "folds.hip"
    source.write_text("\n".join(lines) + "\n")
    return source


def functions(assembly: str) -> dict[str, str]:
    out: dict[str, str] = {}
    name = ""
    for line in assembly.splitlines():
        if line.startswith(("folded_", "computed_")):
            name = line.split(":")[0]
        elif line.startswith("\t.section"):
            name = ""
        elif name:
            out[name] = out.get(name, "") + line + "\n"
    return out


@pytest.mark.parametrize("arch", device_code.ARCHES)
def test_agrees_with_llvm(arch: str, simulator: Simulator, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    cases = {name: arguments(rng, name, fold) for name, fold in FOLDS.items()}
    code = device_code.compile_device(build(tmp_path, cases), "-O3", tmp_path, arch)
    bodies = functions(code.with_suffix(".s").read_text())
    script = simulator.script(code)
    outs = {}
    for name, rows in cases.items():
        words = np.zeros((len(rows), 4), np.uint64)
        for n, row in enumerate(rows):
            words[n, : len(row)] = row
        for kernel in ("folded", "computed"):
            out = np.full(len(rows), 0xAAAA, np.uint64)
            outs[kernel, name] = script.buffer(out)
            script.launch(f"{kernel}_{name}", [words, out], (1, 1, 1), (1, 1, 1))
    results = script.run(list(outs.values()))
    used = 0
    for name, fold in FOLDS.items():
        want, got = results[outs["folded", name]], results[outs["computed", name]]
        # calls that LLVM did not fold prove nothing
        remaining = bodies[f"folded_{name}"].count(fold.mnemonic)
        assert remaining < len(want), f"{name}: nothing is folded"
        used += len(want) - remaining
        equal = got == want
        if fold.result in "fd":
            a, b = (
                x.astype(np.uint32).view(np.float32) if fold.result == "f" else x.view(np.float64)
                for x in (got, want)
            )
            equal |= np.isnan(a) & np.isnan(b)
            if fold.ulp:
                equal |= np.abs(got.astype(np.int64) - want.astype(np.int64)) <= fold.ulp
        bad = np.flatnonzero(~equal)
        assert bad.size == 0, (
            f"{name}{[hex(v) for v in cases[name][bad[0]]]}: {int(got[bad[0]]):#x}, "
            f"LLVM says {int(want[bad[0]]):#x}"
        )
    assert used > 300
