"""A kernel as torch.compile has it where a cache has the choice of its configuration; launched three times.
`of_cache.py HOW`: "worker" compiled only the chosen one; "graph" is an autotuner with all of them that was
itself in a cache; "here" is compiled in this process, "lazy" when it is launched; "table" has the choice of
the configuration; "combined" tunes the kernel after the choice; "unseen" loaded its module before the hook.
"""

import ctypes
import sys
import tempfile
import types
from copy import copy
from pathlib import Path

from torch._inductor.runtime import triton_heuristics as heuristics
from triton.compiler.compiler import CompiledKernel
from triton.runtime.driver import floats, start

NAME = "torch._inductor.runtime.compile_tasks.cabc"
SOURCE = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_heuristics

@triton_heuristics.pointwise(filename=__file__)
@triton.jit
def triton_poi_tuned(y, x, a, n, VARIANT: tl.constexpr):
    return y
"""
how = sys.argv[1]
path = Path(tempfile.mkdtemp()) / "cabc.py"
path.write_text(SOURCE)


def generated():
    """As PyCodeCache: the module is executed once."""
    if NAME not in sys.modules:
        module = sys.modules[NAME] = types.ModuleType(NAME)
        module.__file__ = str(path)
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return sys.modules[NAME].triton_poi_tuned


def of_worker():
    """What comes of another process, which the hook does not see: nothing of Python is left of the kernel."""
    seen = CompiledKernel.__init__
    CompiledKernel.__init__ = getattr(seen, "__wrapped__", seen)
    made = generated()
    made.precompile(warm_cache_only=True)
    CompiledKernel.__init__ = seen
    del sys.modules[NAME]
    without = copy(made.fn)
    without.fn = None
    info = getattr(made, "autotune_cache_info", None)
    return heuristics.CachingAutotuner(without, made.compile_results, size_hints={"x": 1024}, info=info)


start()
if how == "unseen":
    seen, heuristics.cached_autotune = (
        heuristics.cached_autotune,
        getattr(heuristics.cached_autotune, "__wrapped__", heuristics.cached_autotune),
    )
if how == "graph":
    tuner = of_worker()  # before there was a choice
    heuristics.CACHE.append(1)
    tuner.recheck_autotune_cache(generated)
    tuner.precompile(reload_kernel=generated)
else:
    (heuristics.TABLE if how == "table" else heuristics.CACHE).append(1)
    if how == "combined":
        heuristics.COMBINED.append(2)
    if how == "worker":
        tuner = of_worker()
        tuner.precompile(reload_kernel=generated)
    else:
        tuner = generated()
        if how != "lazy":
            tuner.precompile()
n = 1000
y, x = floats([float(i) for i in range(n)]), floats([float(i * 37 % 101) for i in range(n)])
plain = heuristics.CachingAutotuner.run
for _ in range(3):
    tuner.run(y, x, ctypes.c_float(1.5), ctypes.c_int(n))
assert not hasattr(heuristics.CachingAutotuner.run, "__wrapped__"), "launches go on to be watched"
print("right")
