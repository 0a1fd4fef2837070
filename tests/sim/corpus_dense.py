"""Launches of the kernels that stream and multiply: vectors, matrices, reductions, norms, stencils."""

from __future__ import annotations

import numpy as np
from corpus_case import Case, bf16, case, f16, f32, f64, i32, normal, small, u64

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
    args = [a, b, np.zeros((64, 4), i32), i32(k)]
    # gfx90a's kernel of that name multiplies half as much at a time
    return Case("gemm_matrix_core", "i8gemm", (1, 1, 1), (64, 1, 1), args, arches=("gfx942",))


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
    args = [a, b, np.zeros((64, 4), f32), i32(k)]
    return Case("gemm_matrix_core", "f8gemm", (1, 1, 1), (64, 1, 1), args, arches=("gfx942",))


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
