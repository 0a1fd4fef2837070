"""What gfx90a has and gfx942 has not, and what differs there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from device_code import assemble
from lanes import Lanes
from simulator import Failed, Simulator


def bits(*values: float) -> np.ndarray:
    return np.resize(np.array(values, np.float32), 64).view(np.uint32)


def test_multiply_add_is_not_fused(lanes_gfx90a: Lanes) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal(64).astype(np.float32) for _ in range(3))
    c[::2] = -(a * b)[::2]  # fused, what the product lost would be left
    inputs = {"v8": a.view(np.uint32), "v9": b.view(np.uint32), "v10": c.view(np.uint32)}
    piece = lanes_gfx90a.add(
        """
        v_mad_f32 v20, v8, v9, v10
        v_mov_b32 v21, v10
        v_mac_f32 v21, v8, v9
        v_madak_f32 v22, v8, v9, 0x3fc00000
        v_madmk_f32 v23, v8, 0x40400000, v10
        v_mad_f32 v24, -|v8|, v9, v10 clamp
        v_mad_f32 v25, v8, v9, -v10 mul:2
        """,
        inputs,
        [f"v{n}" for n in range(20, 26)],
    )
    lanes_gfx90a.run()
    want = {
        "v20": a * b + c,
        "v21": a * b + c,
        "v22": a * b + np.float32(1.5),
        "v23": a * np.float32(3) + c,
        "v24": np.clip(-np.abs(a) * b + c, 0, 1),
        "v25": (a * b - c) * np.float32(2),
    }
    for register, value in want.items():
        np.testing.assert_array_equal(piece[register].view(np.float32), value, register)
    assert not piece["v20"].view(np.float32)[::2].any()


def test_multiply_add_flushes_denormals_and_legacy_takes_zero_times_infinity_for_zero(
    lanes_gfx90a: Lanes,
) -> None:
    piece = lanes_gfx90a.add(
        """
        v_mad_f32 v20, v8, 1.0, 0
        v_mad_legacy_f32 v21, v9, 0, v10
        v_mad_f32 v22, v9, 0, v10
        v_mad_f32 v23, v11, v12, 0
        """,
        {
            "v8": bits(1e-40, -1e-40),
            "v9": bits(np.inf),
            "v10": bits(2.0),
            "v11": bits(1e-30),
            "v12": bits(1e-10),
        },
        ["v20", "v21", "v22", "v23"],
    )
    lanes_gfx90a.run()
    assert not piece["v20"].view(np.float32).any()
    assert (piece["v21"].view(np.float32) == 2).all()
    assert np.isnan(piece["v22"].view(np.float32)).all()
    assert not piece["v23"].any()


@pytest.mark.parametrize(("arch", "flushed"), [("gfx90a", True), ("gfx942", False)])
def test_matrix_cores_and_dot_products_flush_denormals_of_f16_and_bf16(
    arch: str, flushed: bool, simulator: Simulator, tmp_path: Path
) -> None:
    """MI200 flushes them, in and out; f32 matrices keep them everywhere."""
    lanes = Lanes(simulator, tmp_path, "denormals", (arch,))
    mfma = {"gfx90a": ("16x16x16f16", "16x16x16bf16_1k", "16x16x4f32")}.get(
        arch, ("16x16x16_f16", "16x16x16_bf16", "16x16x4_f32")
    )
    half, brain, tiny = 0x0200_0200, 0x0040_0040, int(bits(1e-40)[0])
    piece = lanes.add(
        f"""
        s_nop 7
        v_mfma_f32_{mfma[0]} v[20:23], v[8:9], v[10:11], 0
        v_mfma_f32_{mfma[1]} v[24:27], v[12:13], v[14:15], 0
        v_mfma_f32_{mfma[0]} v[28:31], v[6:7], v[6:7], v[16:19]
        v_mfma_f32_{mfma[2]} v[32:35], v6, v6, v[16:19]
        s_nop 15
        s_nop 15
        v_dot2_f32_f16 v36, v8, v10, 0
        v_dot2_f32_f16 v37, v6, v6, v16
        """,
        {
            **{f"v{n}": np.full(64, half, np.uint32) for n in (8, 9)},
            **{f"v{n}": np.full(64, 0x3C00_3C00, np.uint32) for n in (10, 11)},
            **{f"v{n}": np.full(64, brain, np.uint32) for n in (12, 13)},
            **{f"v{n}": np.full(64, 0x3F80_3F80, np.uint32) for n in (14, 15)},
            **{f"v{n}": np.full(64, tiny, np.uint32) for n in (16, 17, 18, 19)},
            **{f"v{n}": np.zeros(64, np.uint32) for n in (6, 7)},
        },
        ["v20", "v24", "v28", "v32", "v36", "v37"],
    )
    lanes.run()
    for register in ("v20", "v24", "v28", "v36", "v37"):
        assert piece[register].any() != flushed, register
    assert (piece["v32"] == tiny).all()


def test_f64_matrices_have_no_modifiers(simulator: Simulator, tmp_path: Path) -> None:
    """CDNA3 has negation there, in bits that say nothing on CDNA2: such code is refused."""
    code = assemble(
        """
        .globl bad
        .type bad,@function
        bad:
          v_mfma_f64_4x4x4f64 v[0:1], v[2:3], v[4:5], v[6:7] blgp:1
          s_endpgm
        .Lend:
          .size bad, .Lend-bad
        """,
        "bad",
        tmp_path,
        "gfx90a",
    )
    with pytest.raises(Failed, match=r"v_mfma_f64_4x4x4f64 .*blgp:1' at bad\+0x0"):
        simulator.execute(f"load {code}\n")


def test_loads_to_lds_that_do_not_exist_are_refused(simulator: Simulator, tmp_path: Path) -> None:
    """The bit for LDS in a load of two dwords."""
    word = 0x37 << 26 | 21 << 18 | 2 << 14 | 1 << 13
    code = assemble(
        f"""
        .globl bad
        .type bad,@function
        bad:
          .long {word:#x}, 0x08000004
          s_endpgm
        .Lend:
          .size bad, .Lend-bad
        """,
        "bad",
        tmp_path,
        "gfx90a",
    )
    with pytest.raises(Failed, match=r"global_load_dwordx2 .*bad\+0x0: the simulator does not execute"):
        simulator.execute(f"load {code}\n")


def test_scratch_has_one_address_and_flat_scratch_loads_go_to_lds(lanes_gfx90a: Lanes) -> None:
    """A bit of a load sends it to LDS: 4 bytes a lane from M0 on."""
    lane = np.arange(64, dtype=np.uint32)
    memory = np.arange(100, 164, dtype=np.uint32)
    scratch = lanes_gfx90a.add(
        """
        s_mov_b32 s20, 8
        scratch_store_dword off, v8, s20 offset:4
        scratch_store_dword v9, v10, off offset:16
        s_waitcnt vmcnt(0)
        scratch_load_dword v20, v11, off
        scratch_load_dword v21, off, s20 offset:8
        """,
        {"v8": lane + 7, "v9": np.zeros(64, np.uint32), "v10": lane * 3, "v11": np.full(64, 12, np.uint32)},
        ["v20", "v21"],
        private=64,
    )
    to_lds = lanes_gfx90a.add(
        """
        s_mov_b32 m0, 256
        v_lshlrev_b32 v8, 2, v0
        global_load_dword v8, s[98:99] offset:0 lds
        s_waitcnt vmcnt(0)
        v_add_u32 v9, 0x100, v8
        ds_read_b32 v20, v9
        """,
        {},
        ["v20"],
        memory=memory.copy(),
        lds=1024,
    )
    lanes_gfx90a.run()
    np.testing.assert_array_equal(scratch["v20"], lane + 7)
    np.testing.assert_array_equal(scratch["v21"], lane * 3)
    np.testing.assert_array_equal(to_lds["v20"], memory)
