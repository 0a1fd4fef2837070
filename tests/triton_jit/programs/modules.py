"""A kernel whose parts come from everywhere: a module by its name, one constant name with two values, a
function in a function, constexprs that are tuples, a compile-time function.
"""

import helpers as h
import numpy as np
import triton
import triton.language as tl
from hip_driver import Tensor, install

install()
SLOPE = tl.constexpr(3.0)  # another than the one in helpers


@triton.constexpr_function
def double(n):
    return 2 * n


def make(offset):
    bias = tl.constexpr(offset)

    @triton.jit
    def shift(x):
        return x + bias

    @triton.jit
    def modules_kernel(
        x, out, n, step, MISSING: tl.constexpr, PAIR: tl.constexpr, TYPE: tl.constexpr, BLOCK: tl.constexpr
    ):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        value = h.leaky(tl.load(x + at * step, mask=at < n, other=PAIR[1]))
        if MISSING is None:
            value = shift(value).to(TYPE) * SLOPE
        tl.store(out + at, value * double(PAIR[0]), mask=at < n)

    return modules_kernel


n = 500
x = Tensor(np.random.default_rng(2).standard_normal(n).astype(np.float32))
out = Tensor(np.zeros(n, np.float32))
make(0.5)[(4,)](x, out, n, 1, None, (2, float("inf")), tl.float32, BLOCK=128, num_warps=1)
leaky = np.where(x.host > 0, x.host, x.host * np.float32(0.25))
np.testing.assert_allclose(out.numpy(), (leaky + np.float32(0.5)) * 12, rtol=1e-6)
print("modules: right")
