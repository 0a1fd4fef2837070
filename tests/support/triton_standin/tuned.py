"""A kernel that is tuned, and launched four times. CUDA starts after Triton is imported, as with torch."""

import ctypes
import sys

import triton
import triton.language as tl
from triton.runtime.autotuner import Autotuner
from triton.runtime.driver import floats, start

CONFIGS = [
    triton.Config({"VARIANT": 0}, num_warps=8, num_stages=4),  # launched as the next one, with more memory
    triton.Config({"VARIANT": 1}, num_warps=8),
    triton.Config({"VARIANT": 2}, num_warps=4, num_ctas=2),
]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def tuned(y, x, a, n, VARIANT: tl.constexpr):
    """The text is not what runs: the code is taken from a file."""
    return y


start()
for name in sys.argv[1:]:  # what of the autotuner the hook does not see
    setattr(Autotuner, name, getattr(Autotuner, name).__wrapped__)
n = 1000
y, x = floats([float(i) for i in range(n)]), floats([float(i * 37 % 101) for i in range(n)])
for _ in range(4):
    tuned[lambda meta: (8 // CONFIGS[1].num_warps,)](y, x, ctypes.c_float(1.5), ctypes.c_int(n))
print("right")
