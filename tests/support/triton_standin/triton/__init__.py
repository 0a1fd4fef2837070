"""Stands for Triton where it is not installed: what the hook uses of Triton 3.6, over CUDA's driver API.

Its compiler takes the code object that the constexpr VARIANT names of TRITON_STANDIN_CODE ("..{}..").
"""

__version__ = "3.6.0"

from triton import language
from triton.compiler.compiler import compile
from triton.runtime.autotuner import Config, autotune
from triton.runtime.jit import constexpr_function, jit

__all__ = ["Config", "autotune", "compile", "constexpr_function", "jit", "language"]
