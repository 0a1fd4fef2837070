"""Whose a CUDA kernel is, by its name."""

from __future__ import annotations

import pytest

from kerncap.core.device.cuda_libraries import kind_of, library_of


@pytest.mark.parametrize(
    ("symbol", "library"),
    [
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "cuBLAS"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3", "cuBLAS"),
        ("ampere_sgemm_128x64_nn", "cuBLAS"),
        ("_ZN7cublas15splitKreduce_kernelILi32EEEvv", "cuBLAS"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "cuDNN"),
        ("_ZN13pytorch_flash16flash_fwd_kernelEv", "FlashAttention"),
        ("_ZN7cutlass13device_kernelIN4gemmEEEvv", "CUTLASS"),
        ("_Z22ncclDevKernel_AllReducev", "NCCL"),
        ("_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi", None),
        ("_Z3addPKfS0_Pfi", None),
        ("my_gemm", None),
    ],
)
def test_libraries_by_name(symbol: str, library: str | None) -> None:
    assert library_of(symbol) == library
    assert kind_of("cuda", symbol, symbol) == ("library" if library else "cuda")
    assert kind_of("triton", symbol, symbol) == "triton"  # the interposer knows better
