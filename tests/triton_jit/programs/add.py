"""One kernel by Triton's compiler, launched through HIP's module API: no torch, no driver of Triton's."""

import numpy as np
import triton
import triton.language as tl
from helpers import leaky
from hip_driver import Tensor, launch, load
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

FLOOR = tl.constexpr(float("-inf"))


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, LOWEST: tl.constexpr, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=FLOOR)
    y = tl.load(y_ptr + at, mask=at < n, other=LOWEST)
    tl.store(out_ptr + at, ACTIVATION(x + y), mask=at < n)


n = 1000
signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
names = ["LOWEST", "ACTIVATION", "BLOCK"]
source = ASTSource(
    add_kernel,
    {**signature, **dict.fromkeys(names, "constexpr")},
    {"LOWEST": float("-inf"), "ACTIVATION": leaky, "BLOCK": 256},
)
kernel = triton.compile(source, target=GPUTarget("hip", "gfx942", 64), options={"num_warps": 2})
rng = np.random.default_rng(0)
x, y, out = (Tensor(rng.standard_normal(n).astype(np.float32)) for _ in range(3))
function = load(kernel.asm["hsaco"], kernel.metadata.name)
for _ in range(3):
    launch(function, (4,), 2, kernel.metadata.shared, list(signature.values()), (x, y, out, n))
total = x.host + y.host
np.testing.assert_array_equal(out.numpy(), np.where(total > 0, total, total * np.float32(0.25)))
print("add: right")
