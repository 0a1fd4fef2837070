"""The Python programs of h200.py: `h200_torch.py CASE`. Loops print their seconds as JSON on stdout."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable

_LAUNCHES = 100_000
_ROUNDS = 2


def timed(body: Callable[[], object], repeats: int) -> list[float]:
    """Seconds that so many calls of `body` take, of each round."""
    import torch

    seconds = []
    for _ in range(_ROUNDS):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(repeats):
            body()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return seconds


def loops() -> None:
    """Launches of about 5 us, launches as fast as Python makes them, and a loop that decodes tokens."""
    import torch

    torch.manual_seed(0)
    found = {}
    for name, count in (("short", 1 << 22), ("launch-bound", 1 << 10)):
        x = torch.zeros(count, device="cuda")
        for _ in range(1000):
            x.add_(1)
        found[name] = timed(lambda x=x: x.add_(1), _LAUNCHES)
    layers = [torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True) for _ in range(8)]
    model = torch.nn.Sequential(*layers).cuda().to(torch.bfloat16).eval()
    tokens = torch.randn(8, 64, 1024, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        for _ in range(10):
            model(tokens)
        found["decode"] = timed(lambda: model(tokens), 200)
        found["decode graph"] = []
        graph = torch.cuda.CUDAGraph()
        with contextlib.suppress(RuntimeError), torch.cuda.graph(graph):
            model(tokens)
        with contextlib.suppress(RuntimeError):
            found["decode graph"] = timed(graph.replay, 200)
    print(json.dumps(found))


def case(name: str) -> None:
    """One operation, ten times, on data that does not change."""
    import torch

    torch.manual_seed(0)
    x = torch.randn(2048, 2048, device="cuda")
    half = x.to(torch.bfloat16)
    heads = torch.randn(4, 16, 1024, 64, device="cuda", dtype=torch.bfloat16)
    if name == "mlp":
        sizes = (torch.nn.Linear(2048, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 2048))
        mlp = torch.compile(torch.nn.Sequential(*sizes).cuda().eval())
    for _ in range(10):
        with torch.no_grad():
            if name == "layer_norm":
                torch.nn.functional.layer_norm(x, (2048,))
            elif name == "softmax":
                torch.softmax(x, -1)
            elif name == "gemm":
                half @ half
            elif name == "attention":
                torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
            elif name == "mlp":
                mlp(x)
    torch.cuda.synchronize()


def cupy_case() -> None:
    """An elementwise kernel that CuPy compiles while the program runs."""
    import cupy

    x = cupy.arange(1 << 20, dtype=cupy.float32)
    for _ in range(10):
        y = cupy.sin(x) + x
    cupy.cuda.runtime.deviceSynchronize()
    assert y is not None


if __name__ == "__main__":
    chosen = sys.argv[1]
    if chosen == "loops":
        loops()
    elif chosen == "cupy":
        cupy_case()
    else:
        case(chosen)
