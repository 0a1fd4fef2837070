"""Which of NVIDIA's libraries, or of those that bring compiled kernels, a CUDA kernel is of, by its name."""

from __future__ import annotations

import re
from functools import lru_cache

# The first that fits counts. Names as profilers show them of CUDA 11 to 13 and PyTorch 2.
_LIBRARIES = tuple(
    (re.compile(pattern), library)
    for pattern, library in (
        (r"cudnn|^cudnn_infer|_cudnn_", "cuDNN"),
        (r"\bpytorch_flash\b|pytorch_flash|flash_(fwd|bwd)_|FlashAttnFwd|FlashAttnBwd", "FlashAttention"),
        (r"fmha_|AttentionKernel", "memory-efficient attention (CUTLASS)"),
        (r"^nvjet_|cublasLt|cublas|^gemv|gemvNSP|gemv2|gemmk1_|gemmSN_|splitKreduce|dot_kernel|"
         r"^(volta|turing|ampere|sm\d+|hopper|maxwell)_\w*(gemm|xmma|scudnn|\dx\d)|_xmma_gemm", "cuBLAS"),
        (r"cutlass", "CUTLASS"),
        (r"cufft|regular_fft|vector_fft|composite_2way_fft", "cuFFT"),
        (r"cusparse", "cuSPARSE"),
        (r"cusolver|getrf_|potrf_|geqrf_", "cuSOLVER"),
        (r"curand|XORWOW|Philox4x32_10.*curand", "cuRAND"),
        (r"^ncclDevKernel|^ncclKernel|nccl", "NCCL"),
    )
)  # fmt: skip


@lru_cache(maxsize=4096)
def library_of(symbol: str, demangled: str = "") -> str | None:
    """The library's name; None for a kernel that is the program's own as far as its name tells."""
    for pattern, library in _LIBRARIES:
        if pattern.search(symbol) or (demangled and pattern.search(demangled)):
            return library
    return None


def kind_of(kind: str, symbol: str, demangled: str) -> str:
    """The kind of a kernel that the interposer takes for a CUDA one: "library" where a library brings it."""
    return "library" if kind == "cuda" and library_of(symbol, demangled) is not None else kind
