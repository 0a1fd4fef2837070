"""The kernels of the tests, as programs have them, at small shapes: launched by Triton, through a driver on
HIP's module API. The first argument names one.
"""

import sys

import numpy as np
import triton
import triton.language as tl
from helpers import exp
from hip_driver import Tensor, install

install()
rng = np.random.default_rng(1)


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(np.float32).astype(dtype)


@triton.jit
def softmax_kernel(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    top = exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, top / tl.sum(top, axis=0), mask=at < n)


def softmax():
    x, out = Tensor(normal(4, 100)), Tensor(np.zeros((4, 100), np.float32))
    softmax_kernel[(4,)](out, x, 100, 100, BLOCK=128, num_warps=1)
    e = np.exp(x.host - x.host.max(1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), e / e.sum(1, keepdims=True), rtol=1e-5)


@triton.jit
def layer_norm_kernel(x, weight, bias, out, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    values = tl.load(x + row * n + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=0) / n
    centred = tl.where(mask, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    w, b = tl.load(weight + at, mask=mask), tl.load(bias + at, mask=mask)
    tl.store(out + row * n + at, (centred * scale * w + b).to(out.dtype.element_ty), mask=mask)


def layer_norm():
    x, w, b = Tensor(normal(4, 96, dtype=np.float16)), Tensor(normal(96)), Tensor(normal(96))
    out = Tensor(np.zeros((4, 96), np.float16))
    layer_norm_kernel[(4,)](x, w, b, out, 96, 1e-5, BLOCK=128, num_warps=2)
    values = x.host.astype(np.float32)
    centred = values - values.mean(1, keepdims=True)
    right = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * w.host + b.host
    np.testing.assert_allclose(out.numpy().astype(np.float32), right, rtol=1e-2, atol=1e-2)


CONFIGS = [
    triton.Config({"BM": 16, "BN": 16, "BK": 16}, num_warps=1, num_stages=1),
    triton.Config({"BM": 32, "BN": 32, "BK": 16}, num_warps=4, num_stages=2),
    triton.Config({"BM": 32, "BN": 16, "BK": 32, "SPLIT": True}, num_warps=2, num_stages=2),
]


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"])
@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr = False
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(
            a + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0
        )
        y = tl.load(
            b + inner[:, None] * N + columns[None, :],
            mask=(inner[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        if SPLIT:
            total += tl.dot(x, y)
        else:
            total = tl.dot(x, y, total)
    tl.store(
        c + rows[:, None] * N + columns[None, :],
        total,
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


def matmul():
    m, n, k = 64, 48, 64
    a, b, c = (
        Tensor(normal(m, k, dtype=np.float16)),
        Tensor(normal(k, n, dtype=np.float16)),
        Tensor(np.zeros((m, n), np.float32)),
    )
    for _ in range(2):
        matmul_kernel[lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(n, meta["BN"]))](a, b, c, m, n, k)
    right = a.host.astype(np.float32) @ b.host.astype(np.float32)
    np.testing.assert_allclose(c.numpy().astype(np.float32), right, rtol=2e-2, atol=2e-2)


@triton.autotune(
    configs=[triton.Config({"BM": 32, "BN": n}, num_warps=w) for n, w in ((64, 4), (32, 2), (16, 1))],
    key=["length"],
)
@triton.jit
def attention_kernel(
    q, k, v, out, scale, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr
):
    head = tl.program_id(1) * length * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    queries = tl.load(q + head + rows[:, None] * D + d[None, :])
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        columns = start + tl.arange(0, BN)
        keys = tl.load(k + head + columns[None, :] * D + d[:, None])
        scores = tl.dot(queries, keys) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= columns[None, :], scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 1))
        weights = exp(scores - new[:, None])
        shrink = exp(top - new)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + head + columns[:, None] * D + d[None, :])
        result = result * shrink[:, None] + tl.dot(weights.to(tl.float16), values)
        top = new
    tl.store(out + head + rows[:, None] * D + d[None, :], (result / total[:, None]).to(tl.float16))


def attention():
    heads, length, d = 2, 64, 32
    q, k, v = (Tensor(normal(heads, length, d, dtype=np.float16)) for _ in range(3))
    out = Tensor(np.zeros((heads, length, d), np.float16))
    for _ in range(2):
        attention_kernel[lambda meta: (length // meta["BM"], heads)](
            q, k, v, out, d**-0.5, length, D=d, CAUSAL=True
        )
    scores = q.host.astype(np.float32) @ k.host.astype(np.float32).transpose(0, 2, 1) * d**-0.5
    scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    right = weights / weights.sum(-1, keepdims=True) @ v.host.astype(np.float32)
    np.testing.assert_allclose(out.numpy().astype(np.float32), right, rtol=2e-2, atol=2e-2)


@triton.jit
def moe_kernel(x, experts, chosen, out, K: tl.constexpr, N: tl.constexpr):
    token = tl.program_id(0)
    weights = tl.load(experts + tl.load(chosen + token)).to(tl.pointer_type(tl.float16))
    k, n = tl.arange(0, K), tl.arange(0, N)
    values = tl.load(x + token * K + k).to(tl.float32)
    matrix = tl.load(weights + k[:, None] * N + n[None, :]).to(tl.float32)
    tl.store(out + token * N + n, tl.sum(values[:, None] * matrix, axis=0))


def moe():
    tokens, k, n, count = 8, 32, 32, 24
    experts = [Tensor(normal(k, n, dtype=np.float16)) for _ in range(count)]
    table = Tensor(np.array([e.data_ptr() for e in experts], np.int64))
    chosen = Tensor(rng.integers(0, count, tokens).astype(np.int32))
    x, out = Tensor(normal(tokens, k, dtype=np.float16)), Tensor(np.zeros((tokens, n), np.float32))
    moe_kernel[(tokens,)](x, table, chosen, out, K=k, N=n, num_warps=2)
    for t in range(tokens):
        right = x.host[t].astype(np.float32) @ experts[chosen.host[t]].host.astype(np.float32)
        np.testing.assert_allclose(out.numpy()[t], right, rtol=1e-3, atol=1e-3)


@triton.jit
def convert_kernel(x, out, half, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, value.to(tl.float8e4b8), mask=at < n)
    tl.store(half + at, value.to(tl.bfloat16), mask=at < n)


def convert():
    n = 300
    x = Tensor(normal(n))
    out, half = Tensor(np.zeros(n, np.uint8), "float8_e4m3fnuz"), Tensor(np.zeros(n, np.uint16), "bfloat16")
    convert_kernel[(3,)](x, out, half, n, BLOCK=128, num_warps=1)
    values = (half.numpy().astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(values, x.host, rtol=1e-2)


for name in sys.argv[1:]:
    globals()[name]()
    print(f"{name}: right")
