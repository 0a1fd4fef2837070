"""A kernel as torch.compile has it: compiled elsewhere, loaded here, tuned, launched four times.
`compiled.py HOW`: "static" is for a launcher of Inductor's own, "plain" for Triton's, "lost" has no way to
the source; "ptxas" is of a torch with a ptxas of its own.
"""

import ctypes
import sys
import tempfile
import types
from copy import copy
from pathlib import Path

import torch
import triton
from torch._inductor.runtime.triton_heuristics import (
    META,
    CachingAutotuner,
    StaticKernel,
    StaticTritonCompileResult,
    TritonCompileResult,
)
from triton.compiler.compiler import ASTSource, CompiledKernel
from triton.runtime.driver import floats, start

NAME = "torch._inductor.runtime.compile_tasks.cabc"
SOURCE = """
import triton
import triton.language as tl

@triton.jit
def _triton_helper_fn_add0(a, b):
    return a + b

@triton.jit
def triton_poi_tuned(y, x, a, n, VARIANT: tl.constexpr):
    return _triton_helper_fn_add0(y, x)
"""
how = sys.argv[1]
folder = tempfile.mkdtemp()
path = Path(folder) / "cabc.py"
path.write_text(SOURCE)


def generated():
    module = types.ModuleType(NAME)
    module.__file__ = str(path)
    sys.modules[NAME] = module
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return types.SimpleNamespace(fn=module.triton_poi_tuned)


def of_worker():
    """Results that were pickled: Triton's constructor does not run for them here."""
    unseen = CompiledKernel.__init__
    CompiledKernel.__init__ = getattr(unseen, "__wrapped__", unseen)
    fn = generated().fn
    results = []
    for variant, warps in ((0, 4), (1, 8), (2, 4)):
        config = triton.Config({"VARIANT": variant}, num_warps=warps)
        meta = {**META, "constants": {"VARIANT": variant}}
        made = triton.compile(
            ASTSource(fn, META["signature"], meta["constants"], {}), None, {"num_warps": warps}
        )
        if how == "plain":
            results.append(TritonCompileResult(made, config, meta))
        else:
            kernel = StaticKernel(made, tempfile.mkdtemp())
            results.append(StaticTritonCompileResult(kernel, config, meta))
    CompiledKernel.__init__ = unseen
    del sys.modules[NAME]
    without = copy(fn)
    without.fn = None
    return CachingAutotuner(without, results)


if how == "ptxas":  # torch brings one, which its workers use
    torch.__file__ = str(Path(folder) / "__init__.py")
    (Path(folder) / "bin").mkdir()
    (Path(folder) / "bin" / "ptxas").write_text("")
    (Path(folder) / "bin" / "ptxas").chmod(0o700)
start()
tuner = of_worker()
tuner.precompile(reload_kernel=None if how == "lost" else generated)
n = 1000
y, x = floats([float(i) for i in range(n)]), floats([float(i * 37 % 101) for i in range(n)])
for _ in range(4):
    tuner.run(y, x, ctypes.c_float(1.5), ctypes.c_int(n))
print("right")
