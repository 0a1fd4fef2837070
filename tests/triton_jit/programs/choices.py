"""Kernels whose configuration is chosen in unusual ways; the first argument names one. `cached` has the
choice from a file of Triton's, if an earlier run wrote one; `pruned` is tuned among two configurations, and
for another length left with one of them; `partly` names more in one configuration than in the others;
`tiles` takes descriptors that the host makes, of the blocks of the configuration; `gluon` is another
language.
"""

import sys

import numpy as np
import triton
import triton.language as tl
from hip_driver import Tensor, install
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.tools.tensor_descriptor import TensorDescriptor

install()
n = 1024


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=1) for block in (64, 128, 256)],
    key=["n"],
    cache_results=True,
)
@triton.jit
def cached_kernel(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def cached():
    x, out = Tensor(np.arange(n, dtype=np.float32)), Tensor(np.zeros(n, np.float32))
    for _ in range(2):
        cached_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](out, x, n)
    np.testing.assert_array_equal(out.numpy(), x.host * 2)


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=1) for block in (64, 128)],
    key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, named, **_: configs[named["n"] < n :]},
)
@triton.jit
def pruned_kernel(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + 3, mask=at < n)


def pruned():
    x, out = Tensor(np.arange(n, dtype=np.float32)), Tensor(np.zeros(n, np.float32))
    for length in (n, n // 2, n // 2):
        pruned_kernel[lambda meta, length=length: (triton.cdiv(length, meta["BLOCK"]),)](out, x, length)
    np.testing.assert_array_equal(out.numpy(), x.host + 3)


@triton.autotune(
    configs=[
        triton.Config(values, num_warps=1)
        for values in ({"BLOCK": 64}, {"BLOCK": 64, "TWICE": True, "waves_per_eu": 2}, {"BLOCK": 128})
    ],
    key=["n"],
)
@triton.jit
def partly_kernel(out, x, n, BLOCK: tl.constexpr, TWICE: tl.constexpr = False):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    factor = 2 if TWICE else 3
    tl.store(out + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


def partly():
    x, out = Tensor(np.arange(n, dtype=np.float32)), Tensor(np.zeros(n, np.float32))
    for _ in range(2):
        partly_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](out, x, n)
    np.testing.assert_array_equal(out.numpy(), x.host * 2)


@gluon.jit
def gluon_kernel(out, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [1], [0])
    at = gl.arange(0, BLOCK, layout=layout)
    gl.store(out + at, at)


def in_gluon():
    out = Tensor(np.zeros(64, np.int32))
    gluon_kernel[(1,)](out, BLOCK=64, num_warps=1)
    np.testing.assert_array_equal(out.numpy(), np.arange(64))


def of_blocks(arguments):
    arguments["x"].block_shape = arguments["out"].block_shape = [arguments["BM"], arguments["BN"]]


@triton.autotune(
    configs=[triton.Config({"BM": m, "BN": 32}, num_warps=1, pre_hook=of_blocks) for m in (8, 16, 32)],
    key=["factor"],
)
@triton.jit
def tiles_kernel(out, x, factor, BM: tl.constexpr, BN: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    out.store([row, column], x.load([row, column]) * factor)


def descriptor(tensor):
    """What TensorDescriptor.from_tensor makes of a tensor of torch's."""
    made = object.__new__(TensorDescriptor)
    rows, columns = tensor.shape
    fields = {"base": tensor, "shape": [rows, columns], "strides": [columns, 1], "block_shape": [8, 32]}
    fields |= {"padding": "zero", "round_f32_to_tf32": False}
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def tiles():
    x = Tensor(np.arange(64 * 64, dtype=np.float16).reshape(64, 64) / 64)
    out = Tensor(np.zeros((64, 64), np.float16))
    for _ in range(2):
        tiles_kernel[lambda meta: (64 // meta["BM"], 64 // meta["BN"])](descriptor(out), descriptor(x), 3)
    np.testing.assert_array_equal(out.numpy(), x.host * 3)


{"cached": cached, "pruned": pruned, "partly": partly, "tiles": tiles, "gluon": in_gluon}[sys.argv[1]]()
print(sys.argv[1], "right")
