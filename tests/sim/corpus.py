"""What every kernel of tests/kernels is run with. Inputs come from a fixed seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from memory import Argument, Array, Struct, Table, table

f16, f32, f64 = np.float16, np.float32, np.float64
i32, u32, u64 = np.int32, np.uint32, np.uint64


@dataclass
class Case:
    """One launch. Results must agree bit for bit, unless `rtol` allows for transcendental functions,
    whose last bits are the hardware's own (docs/simulator.md)."""

    source: str
    kernel: str
    grid: tuple[int, int, int]  # workgroups
    block: tuple[int, int, int]
    arguments: list[Argument]
    lds: int = 0  # dynamic
    rtol: float = 0.0
    atol: float = 0.0
    dtypes: dict[int, type] = field(default_factory=dict)  # view of buffer N for the tolerance
    variables: dict[str, Array] = field(default_factory=dict)  # device variables: set before, compared after

    @property
    def id(self) -> str:
        return f"{self.source}-{self.kernel}"


CASES: list[Callable[[np.random.Generator], Case]] = []


def case(make: Callable[[np.random.Generator], Case]) -> Callable[[np.random.Generator], Case]:
    CASES.append(make)
    return make


def all_cases() -> list[Case]:
    return [make(np.random.default_rng(index + 1)) for index, make in enumerate(CASES)]


def normal(rng: np.random.Generator, *shape: int, dtype: type = f32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def small(rng: np.random.Generator, *shape: int, dtype: type = f32, scale: float = 0.25) -> Array:
    """Multiples of `scale` whose sums of products are exact in f32."""
    return (rng.integers(-8, 9, shape) * scale).astype(dtype)


def bf16(values: Array) -> Array:
    """Values that bf16 holds exactly, as its bits."""
    return (np.ascontiguousarray(values, f32).view(u32) >> 16).astype(np.uint16)


# vector_add


@case
def vadd(rng):
    n = 1000  # the last workgroup is partly idle
    args = [normal(rng, n), normal(rng, n), np.zeros(n, f32), i32(n)]
    return Case("vector_add", "vadd", (4, 1, 1), (256, 1, 1), args)


@case
def vadd_stride(rng):
    n = 1777
    args = [normal(rng, n), normal(rng, n), np.zeros(n, f32), u64(n)]
    return Case("vector_add", "vadd_stride", (3, 1, 1), (128, 1, 1), args)


@case
def vadd4(rng):
    n = 300
    args = [normal(rng, n, 4), normal(rng, n, 4), np.zeros((n, 4), f32), i32(n)]
    return Case("vector_add", "vadd4", (2, 1, 1), (256, 1, 1), args)


# double_precision


@case
def daxpy(rng):
    n = 500
    args = [f64(1.7), normal(rng, n, dtype=f64), normal(rng, n, dtype=f64), i32(n)]
    return Case("double_precision", "daxpy", (2, 1, 1), (256, 1, 1), args)


@case
def triad(rng):
    n = 384
    args = [f64(-0.3), normal(rng, n, dtype=f64), normal(rng, n, dtype=f64), np.zeros(n)]
    return Case("double_precision", "triad", (3, 1, 1), (128, 1, 1), args)


@case
def dotd(rng):
    n = 3000
    args = [normal(rng, n, dtype=f64), normal(rng, n, dtype=f64), np.zeros(3), i32(n)]
    return Case("double_precision", "dotd", (3, 1, 1), (256, 1, 1), args)


@case
def ddiv(rng):
    n = 512
    a = np.abs(normal(rng, n, dtype=f64)) * 10.0 ** rng.integers(-200, 200, n)
    b = normal(rng, n, dtype=f64) * 10.0 ** rng.integers(-100, 100, n)
    a[:6] = [0, 5e-324, 1e308, np.inf, np.nan, 1]
    b[:8] = [1, 1e-320, 1e-308, 2, 1, 0, np.inf, -0.0]
    return Case("double_precision", "ddiv", (2, 1, 1), (256, 1, 1), [a, b, np.zeros(n), i32(n)])


# gemm_lds


@case
def sgemm(rng):
    m, n, k = 40, 50, 30
    args = [normal(rng, m, k), normal(rng, k, n), np.zeros((m, n), f32), i32(m), i32(n), i32(k)]
    return Case("gemm_lds", "sgemm", (4, 3, 1), (16, 16, 1), args)


@case
def sgemm_reg(rng):
    m, n, k = 128, 256, 24
    args = [
        normal(rng, m, k),
        normal(rng, k, n),
        normal(rng, m, n),
        i32(m),
        i32(n),
        i32(k),
        f32(1.5),
        f32(0.5),
    ]
    return Case("gemm_lds", "sgemm_reg", (2, 1, 1), (256, 1, 1), args)


# gemm_matrix_core: exact values, since the order in which the hardware adds is not documented


@case
def hgemm16(rng):
    n, k = 48, 64
    args = [small(rng, 32, k, dtype=f16), small(rng, k, n, dtype=f16), np.zeros((32, n), f32), i32(n), i32(k)]
    return Case("gemm_matrix_core", "hgemm16", (3, 2, 1), (64, 1, 1), args)


@case
def hgemm32(rng):
    m, n, k = 128, 64, 96
    args = [
        small(rng, m, k, dtype=f16),
        small(rng, n, k, dtype=f16),
        np.zeros((m, n), f32),
        i32(m),
        i32(n),
        i32(k),
    ]
    return Case("gemm_matrix_core", "hgemm32", (1, 2, 1), (256, 1, 1), args)


@case
def bgemm16(rng):
    k = 3
    args = [bf16(small(rng, k, 64, 4)), bf16(small(rng, k, 64, 4)), np.zeros((64, 4), f32), i32(k)]
    return Case("gemm_matrix_core", "bgemm16", (1, 1, 1), (64, 1, 1), args)


@case
def sgemm_mfma(rng):
    k = 16
    args = [small(rng, 32, k), small(rng, 32, k), np.zeros((16, 64), f32), i32(k)]
    return Case("gemm_matrix_core", "sgemm_mfma", (1, 1, 1), (64, 1, 1), args)


@case
def dgemm_mfma(rng):
    k = 16
    args = [small(rng, 16, k, dtype=f64), small(rng, 16, k, dtype=f64), np.zeros((4, 64)), i32(k)]
    return Case("gemm_matrix_core", "dgemm_mfma", (1, 1, 1), (64, 1, 1), args)


@case
def i8gemm(rng):
    k = 4
    a, b = (rng.integers(-128, 128, (k, 64, 8)).astype(np.int8) for _ in range(2))
    return Case("gemm_matrix_core", "i8gemm", (1, 1, 1), (64, 1, 1), [a, b, np.zeros((64, 4), i32), i32(k)])


@case
def f8gemm(rng):
    k = 4
    # e4m3 of moderate size: exponents 4 to 11 of bias 8, so that every sum is exact
    a, b = (
        (
            rng.integers(4, 12, (k, 64, 8)) << 3
            | rng.integers(0, 8, (k, 64, 8))
            | rng.integers(0, 2, (k, 64, 8)) << 7
        ).astype(np.uint8)
        for _ in range(2)
    )
    return Case("gemm_matrix_core", "f8gemm", (1, 1, 1), (64, 1, 1), [a, b, np.zeros((64, 4), f32), i32(k)])


# reduce


@case
def red_dpp(rng):
    n = 500
    return Case("reduce", "red_dpp", (2, 1, 1), (256, 1, 1), [small(rng, n), np.zeros(1, f32), i32(n)])


@case
def red_swz(rng):
    return Case("reduce", "red_swz", (1, 1, 1), (128, 1, 1), [normal(rng, 128), np.zeros(128, f32)])


@case
def red_bperm(rng):
    return Case("reduce", "red_bperm", (3, 1, 1), (256, 1, 1), [normal(rng, 768), np.zeros(3, f32)])


@case
def red_ballot(rng):
    x = rng.integers(0, 8, 64).astype(i32)
    return Case("reduce", "red_ballot", (1, 1, 1), (64, 1, 1), [x, np.zeros(64, i32)])


@case
def red_down(rng):
    return Case("reduce", "red_down", (1, 1, 1), (64, 1, 1), [normal(rng, 64), np.zeros(1, f32)])


# softmax


@case
def softmax(rng):
    n = 300
    args = [normal(rng, 3, n) * f32(4), np.zeros((3, n), f32), i32(n)]
    return Case("softmax", "softmax", (3, 1, 1), (256, 1, 1), args, rtol=2e-6)


@case
def logsoftmax_h(rng):
    n = 200
    args = [normal(rng, 2, n, dtype=f16), np.zeros((2, n), f16), i32(n)]
    return Case("softmax", "logsoftmax_h", (2, 1, 1), (64, 1, 1), args, rtol=2e-3, atol=1e-3)


# norm_rope


@case
def rmsnorm(rng):
    n = 500
    args = [normal(rng, 2, n, dtype=f16), normal(rng, n, dtype=f16), np.zeros((2, n), f16), i32(n), f32(1e-5)]
    return Case("norm_rope", "rmsnorm", (2, 1, 1), (256, 1, 1), args)


@case
def rmsnorm_v(rng):
    args = [
        normal(rng, 64, 2, dtype=f16),
        normal(rng, 64, 2, dtype=f16),
        np.zeros((64, 2), f16),
        i32(128),
        f32(1e-5),
    ]
    return Case("norm_rope", "rmsnorm_v", (1, 1, 1), (64, 1, 1), args, rtol=4e-3, atol=2e-3)


@case
def rope(rng):
    heads, dim, tokens = 3, 64, 5
    args = [
        normal(rng, tokens, heads, dim),
        rng.integers(0, 100, tokens).astype(i32),
        i32(heads),
        i32(dim),
        f32(10000),
    ]
    return Case("norm_rope", "rope", (tokens, heads, 1), (dim // 2, 1, 1), args, rtol=1e-3, atol=1e-4)


@case
def silu_gelu(rng):
    x = bf16(normal(rng, 300))
    case = Case("norm_rope", "silu_gelu", (2, 1, 1), (256, 1, 1), [x, np.zeros(300, np.uint16), i32(300)])
    case.rtol, case.atol, case.dtypes = 8e-3, 1e-6, {1: "bf16"}
    return case


@case
def layernorm(rng):
    n = 300
    args = [normal(rng, 2, n), normal(rng, n), normal(rng, n), np.zeros((2, n), f32), i32(n)]
    return Case("norm_rope", "layernorm", (2, 1, 1), (64, 1, 1), args, rtol=1e-5, atol=1e-5)


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
    d, rows, counts = 16, [70, 64, 10], [2, 3, 0]
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
    u[2] = 0  # overwritten by whoever comes last: one wave of one workgroup decides, see below
    args = [np.zeros(2, i32), u, np.zeros(1, f32), np.zeros(1, f64), np.zeros(2, u64), i32(n)]
    return Case("atomics", "atoms", (5, 1, 1), (64, 1, 1), args)


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


# stencil_transpose


@case
def stencil7(rng):
    nx, ny, nz = 20, 9, 6
    args = [normal(rng, nz, ny, nx), np.zeros((nz, ny, nx), f32), i32(nx), i32(ny), i32(nz)]
    return Case("stencil_transpose", "stencil7", (2, 3, 3), (16, 4, 2), args)


@case
def transpose(rng):
    w, h = 50, 40
    args = [normal(rng, h, w), np.zeros((w, h), f32), i32(w), i32(h)]
    return Case("stencil_transpose", "transpose", (2, 2, 1), (32, 8, 1), args)


@case
def trh(rng):
    args = [normal(rng, 128, 128, dtype=f16), np.zeros((128, 128), f16), i32(128)]
    return Case("stencil_transpose", "trh", (2, 2, 1), (64, 4, 1), args)


@case
def conv2d_u8(rng):
    w, h = 40, 21
    args = [rng.integers(0, 256, (h, w)).astype(np.uint8), np.zeros((h, w), np.uint8), i32(w), i32(h)]
    return Case("stencil_transpose", "conv2d_u8", (3, 2, 1), (16, 16, 1), args)


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
