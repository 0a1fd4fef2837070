"""The Triton programs of h200.py: `h200_triton.py CASE`, each on data that does not change. The result is
emptied before each launch but the first, so that a captured one writes all of it.
"""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl

_TIMES = 10


def half(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def emptied(out: torch.Tensor, launch: int) -> None:
    if launch > 0:  # a tuning belongs to the first
        out.zero_()


@triton.jit
def softmax_kernel(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    top = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, top / tl.sum(top, axis=0), mask=at < n)


def softmax() -> None:
    x = torch.randn(4096, 2000, device="cuda")
    out = torch.empty_like(x)
    for i in range(_TIMES):
        emptied(out, i)
        softmax_kernel[(4096,)](out, x, x.stride(0), 2000, BLOCK=2048, num_warps=8)
    torch.testing.assert_close(out, torch.softmax(x, -1))


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


def layer_norm() -> None:
    x, w, b = half(4096, 3072), half(3072), half(3072)
    out = torch.empty_like(x)
    for i in range(_TIMES):
        emptied(out, i)
        layer_norm_kernel[(4096,)](x, w, b, out, 3072, 1e-5, BLOCK=4096, num_warps=8)
    right = torch.nn.functional.layer_norm(x, (3072,), w, b, 1e-5)
    torch.testing.assert_close(out, right, rtol=1e-2, atol=1e-2)


@triton.autotune(
    configs=[
        triton.Config({"BM": 128, "BN": 256, "BK": 64}, num_stages=3, num_warps=8),
        triton.Config({"BM": 128, "BN": 128, "BK": 64}, num_stages=4, num_warps=4),
        triton.Config({"BM": 128, "BN": 128, "BK": 32, "SPLIT_K": 4}, num_stages=4, num_warps=8),
        triton.Config({"BM": 64, "BN": 64, "BK": 64, "SPLIT_K": 2}, num_stages=3, num_warps=4),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT_K: tl.constexpr = 1
):
    """Sums of SPLIT_K parts of K, one after the other in a program, so that configurations sum otherwise."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    result = tl.zeros((BM, BN), tl.float32)
    for part in range(SPLIT_K):
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(part * (K // SPLIT_K), (part + 1) * (K // SPLIT_K), BK):
            inner = k + tl.arange(0, BK)
            x = tl.load(a + rows[:, None] * K + inner[None, :])
            y = tl.load(b + inner[:, None] * N + columns[None, :])
            total = tl.dot(x, y, total)
        result += total
    tl.store(c + rows[:, None] * N + columns[None, :], result.to(tl.float16))


def matmul() -> None:
    n = 4096
    a, b, c = half(n, n), half(n, n), half(n, n)
    for i in range(_TIMES):
        emptied(c, i)
        matmul_kernel[lambda meta: (n // meta["BM"], n // meta["BN"])](a, b, c, n, n, n)
    torch.testing.assert_close(c, a @ b, rtol=2e-2, atol=2e-1)


@triton.autotune(
    configs=[
        triton.Config({"BM": 128, "BN": 128}, num_stages=2, num_warps=8),
        triton.Config({"BM": 128, "BN": 64}, num_stages=3, num_warps=8),
        triton.Config({"BM": 64, "BN": 64}, num_stages=3, num_warps=4),
        triton.Config({"BM": 64, "BN": 32}, num_stages=4, num_warps=4),
    ],
    key=["length"],
)
@triton.jit
def attention_kernel(q, k, v, out, scale, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * length * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    queries = tl.load(q + head + rows[:, None] * D + d[None, :])
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        columns = start + tl.arange(0, BN)
        keys = tl.load(k + head + columns[None, :] * D + d[:, None])
        scores = tl.dot(queries, keys) * (scale * 1.4426950408889634)
        new = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + head + columns[:, None] * D + d[None, :])
        result = tl.dot(weights.to(tl.float16), values, result * shrink[:, None])
        top = new
    tl.store(out + head + rows[:, None] * D + d[None, :], (result / total[:, None]).to(tl.float16))


def attention() -> None:
    batch, heads, length, d = 2, 16, 4096, 128
    q, k, v = (half(batch, heads, length, d) for _ in range(3))
    out = torch.empty_like(q)
    for i in range(_TIMES):
        emptied(out, i)
        attention_kernel[lambda meta: (length // meta["BM"], batch * heads)](
            q, k, v, out, d**-0.5, length, D=d
        )
    right = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(out, right, rtol=1e-2, atol=1e-2)


@triton.jit
def moe_kernel(
    x, experts, block_expert, block_rows, weights, out, K, N,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A block of rows of one expert: gathers tokens, multiplies, applies silu and the router's weight."""
    block = tl.program_id(0)
    matrix = tl.load(experts + tl.load(block_expert + block)).to(tl.pointer_type(tl.float16))
    rows = tl.load(block_rows + block * BM + tl.arange(0, BM))
    there = rows >= 0
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        values = tl.load(x + rows[:, None] // 2 * K + inner[None, :], mask=there[:, None], other=0.0)
        total = tl.dot(values, tl.load(matrix + inner[:, None] * N + columns[None, :]), total)
    total = total * tl.sigmoid(total) * tl.load(weights + rows, mask=there, other=0.0)[:, None]
    tl.store(out + rows[:, None] * N + columns[None, :], total.to(tl.float16), mask=there[:, None])


def moe() -> None:
    tokens, k, n, count, block = 1024, 1024, 2048, 32, 64
    x, experts = half(tokens, k), [half(k, n) / 32 for _ in range(count)]
    table = torch.tensor([e.data_ptr() for e in experts], device="cuda", dtype=torch.int64)
    weights, chosen = torch.softmax(torch.randn(tokens, count, device="cuda"), -1).topk(2)
    flat = chosen.flatten()
    block_expert, block_rows = [], []
    for expert in range(count):
        rows = (flat == expert).nonzero().flatten()
        for part in rows.split(block):
            block_expert.append(expert)
            block_rows.append(torch.nn.functional.pad(part, (0, block - len(part)), value=-1))
    which = torch.tensor(block_expert, device="cuda", dtype=torch.int32)
    rows = torch.cat(block_rows).to(torch.int32)
    out = half(2 * tokens, n)
    for i in range(_TIMES):
        emptied(out, i)
        moe_kernel[(len(block_expert), n // 128)](
            x, table, which, rows, weights, out, k, n, BM=block, BN=128, BK=64, num_warps=4, num_stages=3
        )
    for row in range(0, 2 * tokens, 97):
        product = x[row // 2].float() @ experts[flat[row]].float()
        right = torch.nn.functional.silu(product) * weights.flatten()[row]
        torch.testing.assert_close(out[row].float(), right, rtol=2e-2, atol=2e-2)


def mlp() -> None:
    sizes = (torch.nn.Linear(2048, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 2048))
    model = torch.nn.Sequential(*sizes).cuda().eval()
    fast, x = torch.compile(model), torch.randn(2048, 2048, device="cuda")
    with torch.no_grad():
        for _ in range(_TIMES):
            got = fast(x)
        torch.testing.assert_close(got, model(x), rtol=1e-2, atol=1e-2)


CASES = {
    "softmax": softmax,
    "layer_norm": layer_norm,
    "matmul": matmul,
    "attention": attention,
    "moe": moe,
    "mlp": mlp,
}

if __name__ == "__main__":
    torch.manual_seed(0)
    CASES[sys.argv[1]]()
    torch.cuda.synchronize()
