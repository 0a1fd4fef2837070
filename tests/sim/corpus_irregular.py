"""Launches of kernels with structure: quantised blocks, pointers, atomics, sorting, control, arguments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from corpus_case import Case, case, f16, f32, f64, i32, normal, small, u32, u64
from memory import Array, Struct, Table, table

# quantised_matvec: block_q8_0 {half d; int8 qs[32]}, block_q4_0 {half d; uint8 qs[16]},
# block_q8_1 {half d, s; int8 qs[32]}, block_q4_K {half d, dmin; uint8 scales[12]; uint8 qs[128]}

Q8_0 = np.dtype([("d", "<f2"), ("qs", "i1", 32)])
Q4_0 = np.dtype([("d", "<f2"), ("qs", "u1", 16)])
Q8_1 = np.dtype([("d", "<f2"), ("s", "<f2"), ("qs", "i1", 32)])
Q4_K = np.dtype([("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", 12), ("qs", "u1", 128)])


def blocks(rng: np.random.Generator, dtype: np.dtype, *shape: int) -> Array:
    out = np.zeros(shape, dtype)
    for name in dtype.names:
        kind = dtype[name].base
        inner = shape + dtype[name].shape
        if kind == np.dtype("<f2"):
            out[name] = (rng.standard_normal(inner) * 0.05).astype(f16)
        else:
            info = np.iinfo(kind)
            out[name] = rng.integers(info.min, info.max + 1, inner)
    return out


def matvec(rng: np.random.Generator, kernel: str, dtype: np.dtype, rows: int, nb: int, per: int) -> Case:
    args = [blocks(rng, dtype, rows, nb), blocks(rng, Q8_1, nb * per), np.zeros(rows, f32), i32(nb)]
    return Case("quantised_matvec", kernel, (rows, 1, 1), (64, 1, 1), args)


@case
def mmv_q8_0(rng):
    rows = 6
    args = [blocks(rng, Q8_0, rows, 70), blocks(rng, Q8_1, 70), np.zeros(rows, f32), i32(70)]
    return Case("quantised_matvec", "mmv_q8_0", (rows // 2, 1, 1), (64, 2, 1), args)


@case
def mmv_q4_0(rng):
    return matvec(rng, "mmv_q4_0", Q4_0, 4, 70, 1)


@case
def mmv_q4_K(rng):
    return matvec(rng, "mmv_q4_K", Q4_K, 4, 11, 8)


@case
def quant_q8_1(rng):
    n = 500
    return Case(
        "quantised_matvec", "quant_q8_1", (2, 1, 1), (256, 1, 1), [normal(rng, n), np.zeros(16, Q8_1), i32(n)]
    )


# mixture_of_experts


@case
def moe_gather(rng):
    experts, tokens, d, f, k = 4, 3, 12, 70, 2
    weights = table([small(rng, f, d) for _ in range(experts)])
    inputs = table([small(rng, d) for _ in range(tokens)])
    outputs = table([np.zeros(f, f32) for _ in range(tokens)])
    ids = rng.integers(0, experts, (tokens, k)).astype(i32)
    args = [weights, inputs, outputs, ids, small(rng, tokens, k), i32(d), i32(f), i32(k)]
    return Case("mixture_of_experts", "moe_gather", (tokens, k, 1), (64, 1, 1), args)


@case
def moe_struct(rng):
    """Exp {half* w; half* b; int rows; int pad}: the second expert has no bias, the third no tokens."""
    d, rows, counts = 16, [10, 64, 70], [2, 3, 0]  # outputs do not overlap
    data, pointers = np.zeros((3, 6), u32), {}
    for e in range(3):
        pointers[24 * e] = small(rng, rows[e], d, dtype=f16)
        if e != 1:
            pointers[24 * e + 8] = small(rng, rows[e], dtype=f16)
        data[e, 4] = rows[e]
    offsets = np.array([0, 2, 5], i32)
    args = [Table(data, pointers), small(rng, 5, d, dtype=f16), np.zeros((5, 70), f16), np.array(counts, i32)]
    return Case("mixture_of_experts", "moe_struct", (2, 2, 3), (64, 1, 1), [*args, offsets, i32(d)])


@case
def topk_gate(rng):
    tokens, experts, k = 3, 40, 4
    args = [
        normal(rng, tokens, experts),
        np.zeros((tokens, k), i32),
        np.zeros((tokens, k), f32),
        i32(experts),
        i32(k),
    ]
    return Case("mixture_of_experts", "topk_gate", (tokens, 1, 1), (64, 1, 1), args, rtol=1e-6)


# atomics


@case
def atoms(rng):
    n = 300
    u = np.zeros(4 + n, u32)
    u[0] = 1 << 30
    # u[2] is what the last work-item stored
    args = [np.zeros(2, i32), u, np.zeros(1, f32), np.zeros(1, f64), np.zeros(2, u64), i32(n)]
    return Case("atomics", "atoms", (5, 1, 1), (64, 1, 1), args, in_order=True)


@case
def fatomicmax(rng):
    return Case("atomics", "fatomicmax", (1, 1, 1), (128, 1, 1), [f32([-3]), normal(rng, 128)])


@case
def hatomic(rng):
    pair = np.array([0.5, -0.25], f16).view(u32)[0]
    return Case("atomics", "hatomic", (2, 1, 1), (64, 1, 1), [np.zeros(2, f16), u32(pair)])


@case
def spin_lock(rng):
    return Case("atomics", "spin_lock", (7, 1, 1), (64, 1, 1), [np.zeros(1, i32), np.zeros(1, i32)])


@case
def lastblock(rng):
    args = [small(rng, 256), np.zeros(4, f32), np.zeros(1, f32), np.zeros(1, u32)]
    return Case("atomics", "lastblock", (4, 1, 1), (64, 1, 1), args)


@case
def sysatom(rng):
    return Case("atomics", "sysatom", (3, 1, 1), (64, 1, 1), [np.zeros(2, i32)])


# sort_scan


@case
def bitonic(rng):
    return Case("sort_scan", "bitonic", (1, 1, 1), (256, 1, 1), [rng.integers(0, 1 << 32, 512).astype(u32)])


@case
def scan(rng):
    args = [rng.integers(-100, 100, 256).astype(i32), np.zeros(256, i32), i32(200)]
    return Case("sort_scan", "scan", (1, 1, 1), (256, 1, 1), args)


@case
def wscan(rng):
    args = [rng.integers(-100, 100, 64).astype(i32), np.zeros(64, i32)]
    return Case("sort_scan", "wscan", (1, 1, 1), (64, 1, 1), args)


@case
def radix_count(rng):
    n = 1000
    args = [rng.integers(0, 1 << 63, n).astype(u64), np.zeros((2, 16), u32), i32(37), i32(n)]
    return Case("sort_scan", "radix_count", (2, 1, 1), (256, 1, 1), args)


# control_flow


@case
def sw(rng):
    n = 200
    args = [rng.integers(0, 10, n).astype(i32), np.abs(normal(rng, n)) * f32(9), np.zeros(n, f32), i32(n)]
    return Case("control_flow", "sw", (4, 1, 1), (64, 1, 1), args)


@case
def collatz(rng):
    args = [rng.integers(1, 5000, 64).astype(i32), np.zeros(64, i32)]
    return Case("control_flow", "collatz", (1, 1, 1), (64, 1, 1), args)


def usw_case(m: int) -> Callable[[np.random.Generator], Case]:
    def make(rng):
        return Case("control_flow", "usw", (1, 1, 1), (64, 1, 1), [i32(m), normal(rng, 65)])

    return make


for _m in (1, 9, 50):
    case(usw_case(_m))


@case
def mandel(rng):
    args = [np.zeros((32, 48), i32), i32(48), i32(32), i32(100)]
    return Case("control_flow", "mandel", (3, 2, 1), (16, 16, 1), args)


# constants_arguments


@case
def dynlds(rng):
    args = [normal(rng, 256), np.zeros(256, f32), i32(20)]
    variables = {"coef": normal(rng, 64)}
    return Case(
        "constants_arguments", "dynlds", (2, 1, 1), (128, 1, 1), args, lds=256 * 4, variables=variables
    )


@case
def constk(rng):
    args = [normal(rng, 64) * f32(0.5), np.zeros(64, f32)]
    variables = {"coef": normal(rng, 64), "counter": np.array([40], i32)}
    return Case("constants_arguments", "constk", (1, 1, 1), (64, 1, 1), args, variables=variables)


@case
def bystruct(rng):
    big = Struct([i32(30), *normal(rng, 20), normal(rng, 30), f64(0.1)])
    return Case("constants_arguments", "bystruct", (1, 1, 1), (64, 1, 1), [big, np.zeros(64, f32)])


@case
def bytes_(rng):
    a, b = rng.integers(-128, 128, 64).astype(np.int8), rng.integers(-300, 300, 64).astype(np.int16)
    args = [a, b, np.zeros(64, np.uint8), np.zeros(64, np.uint16), np.zeros(64, np.uint8)]
    return Case("constants_arguments", "bytes", (1, 1, 1), (64, 1, 1), args)
