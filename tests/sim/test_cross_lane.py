"""Instructions that move values between lanes: DPP, ds_permute, ds_bpermute, ds_swizzle, readlane and others,
against a table written from the ISA document."""

from __future__ import annotations

import numpy as np
import pytest
from lanes import Lanes

LANE = np.arange(64)
ROW = LANE // 16 * 16
OLD = (LANE + 1000).astype(np.uint32)
DATA = (LANE * 3 + 7).astype(np.uint32)


def dpp_sources() -> dict[str, np.ndarray]:
    """DPP control -> the lane each lane reads, -1 for none."""
    at = LANE % 16
    found = {"quad_perm:[1,2,3,0]": LANE // 4 * 4 + np.array([1, 2, 3, 0])[LANE % 4]}
    found["quad_perm:[3,3,0,1]"] = LANE // 4 * 4 + np.array([3, 3, 0, 1])[LANE % 4]
    for n in (1, 5, 15):
        found[f"row_shl:{n}"] = np.where(at + n < 16, LANE + n, -1)
        found[f"row_shr:{n}"] = np.where(at - n >= 0, LANE - n, -1)
        found[f"row_ror:{n}"] = ROW + (at - n) % 16
    found["wave_shl:1"] = np.where(LANE < 63, LANE + 1, -1)
    found["wave_rol:1"] = (LANE + 1) % 64
    found["wave_shr:1"] = LANE - 1
    found["wave_ror:1"] = (LANE - 1) % 64
    found["row_mirror"] = ROW + 15 - at
    found["row_half_mirror"] = LANE // 8 * 8 + 7 - LANE % 8
    found["row_bcast:15"] = np.where(ROW > 0, ROW - 1, -1)
    found["row_bcast:31"] = np.where(LANE >= 32, 31, -1)
    found["row_newbcast:3"] = ROW + 3
    return found


SOURCES = dpp_sources()


def active(exec_mask: int) -> np.ndarray:
    return np.array([exec_mask >> lane & 1 for lane in range(64)], bool)


def dpp_result(
    control: str, rows: int, banks: int, bound: bool, exec_mask: int
) -> tuple[np.ndarray, np.ndarray]:
    """(the source values, which lanes are written)."""
    source, on = SOURCES[control], active(exec_mask)
    valid = (source >= 0) & on[source]
    value = np.where(valid, DATA[source], 0).astype(np.uint32)
    write = on & (rows >> LANE // 16 & 1 == 1) & (banks >> LANE // 4 % 4 & 1 == 1) & (valid | bound)
    return value, write


MASKS = [(0xF, 0xF), (0xA, 0xF), (0xF, 0x5), (0xC, 0x9)]
EXECS = [2**64 - 1, 0x00FF_F0F0_1234_8001]


def set_exec(mask: int) -> str:
    return f"s_mov_b32 exec_lo, {mask & 0xFFFFFFFF:#x}\n s_mov_b32 exec_hi, {mask >> 32:#x}\n s_nop 4"


@pytest.mark.parametrize("exec_mask", EXECS)
def test_dpp_controls(lanes: Lanes, exec_mask: int) -> None:
    cases = []
    for control in SOURCES:
        for rows, banks in MASKS:
            for bound in (False, True):
                text = f"{control} row_mask:{rows:#x} bank_mask:{banks:#x}{' bound_ctrl:0' if bound else ''}"
                body = (
                    f"{set_exec(exec_mask)}\n v_mov_b32_dpp v9, v8 {text}\n v_add_u32_dpp v10, v8, v11 {text}"
                )
                inputs = {"v8": DATA, "v9": OLD, "v10": OLD, "v11": LANE}
                cases.append((control, rows, banks, bound, lanes.add(body, inputs, ["v9", "v10"])))
    lanes.run()
    for control, rows, banks, bound, piece in cases:
        value, write = dpp_result(control, rows, banks, bound, exec_mask)
        assert np.array_equal(piece["v9"], np.where(write, value, OLD)), (control, rows, banks, bound)
        assert np.array_equal(piece["v10"], np.where(write, value + LANE, OLD)), (control, rows, banks, bound)


def test_dpp_modifiers_and_pairs(lanes: Lanes) -> None:
    floats = (LANE - 32.0).astype(np.float32)
    add = lanes.add(
        "v_add_f32_dpp v10, -|v8|, |v9| row_ror:4 row_mask:0xf bank_mask:0xf",
        {"v8": floats, "v9": floats},
        ["v10"],
    )
    pair = lanes.add(
        "v_mov_b64_dpp v[10:11], v[8:9] row_newbcast:2 row_mask:0xf bank_mask:0xf",
        {"v8": DATA, "v9": OLD, "v10": OLD, "v11": OLD},
        ["v10", "v11"],
    )
    lanes.run()
    rotated = floats[ROW + (LANE % 16 - 4) % 16]
    assert np.array_equal(add["v10"].view(np.float32), -np.abs(rotated) + np.abs(floats))
    assert np.array_equal(pair["v10"], DATA[ROW + 2])
    assert np.array_equal(pair["v11"], OLD[ROW + 2])


@pytest.mark.parametrize("exec_mask", EXECS)
def test_permutes(lanes: Lanes, exec_mask: int) -> None:
    rng = np.random.default_rng(1)
    address = (rng.permutation(64) * 4 + 256 * rng.integers(0, 3, 64)).astype(np.uint32)
    clash = (rng.integers(0, 8, 64) * 4).astype(np.uint32)
    text = set_exec(exec_mask)
    pull = lanes.add(
        f"{text}\n ds_bpermute_b32 v10, v9, v8 offset:8\n s_waitcnt lgkmcnt(0)",
        {"v8": DATA, "v9": address, "v10": OLD},
        ["v10"],
    )
    push = [
        lanes.add(
            f"{text}\n ds_permute_b32 v10, v9, v8\n s_waitcnt lgkmcnt(0)",
            {"v8": DATA, "v9": a, "v10": OLD},
            ["v10"],
        )
        for a in (address, clash)
    ]
    lanes.run()
    on = active(exec_mask)
    source = (address + 8) // 4 % 64
    assert np.array_equal(pull["v10"], np.where(on, np.where(on[source], DATA[source], 0), OLD))
    for piece, to in zip(push, (address, clash), strict=True):
        want = np.zeros(64, np.uint32)
        for lane in LANE[on]:
            want[to[lane] // 4 % 64] = DATA[lane]
        assert np.array_equal(piece["v10"], np.where(on, want, OLD))


def test_swizzle(lanes: Lanes) -> None:
    patterns = {}
    for text, source in (
        ("offset:swizzle(QUAD_PERM,3,1,0,2)", LANE // 4 * 4 + np.array([3, 1, 0, 2])[LANE % 4]),
        ("offset:swizzle(BROADCAST,8,5)", LANE // 8 * 8 + 5),
        ("offset:swizzle(SWAP,4)", LANE ^ 4),
        ("offset:swizzle(REVERSE,16)", LANE // 16 * 16 + 15 - LANE % 16),
        (f"offset:{0x1F | 0x03 << 5 | 0x10 << 10:#x}", LANE // 32 * 32 + ((LANE % 32 | 3) ^ 0x10)),
        (f"offset:{0x0D:#x}", LANE // 32 * 32 + (LANE % 32 & 0x0D)),
        (f"offset:{0xC000 | 3 << 5:#x}", LANE // 32 * 32 + (LANE % 32 + 3) % 32),
        (f"offset:{0xC400 | 5 << 5:#x}", LANE // 32 * 32 + (LANE % 32 - 5) % 32),
    ):
        patterns[text] = (
            lanes.add(f"ds_swizzle_b32 v10, v8 {text}\n s_waitcnt lgkmcnt(0)", {"v8": DATA}, ["v10"]),
            source,
        )
    lanes.run()
    for text, (piece, source) in patterns.items():
        assert np.array_equal(piece["v10"], DATA[source]), text


def test_single_lanes(lanes: Lanes) -> None:
    text = set_exec(EXECS[1] & ~1)
    piece = lanes.add(
        f"""{text}
  s_mov_b32 s20, 69
  v_readfirstlane_b32 s21, v8
  v_readlane_b32 s22, v8, 33
  v_readlane_b32 s23, v8, s20
  v_writelane_b32 v9, s22, 2
  s_mov_b32 m0, 17
  v_writelane_b32 v9, 5, m0
  v_mbcnt_lo_u32_b32 v10, -1, 0
  v_mbcnt_hi_u32_b32 v10, -1, v10
  v_mbcnt_lo_u32_b32 v11, s20, 9""",
        {"v8": DATA, "v9": OLD},
        ["s21", "s22", "s23", "v9", "v10", "v11"],
    )
    lanes.run()
    on = active(EXECS[1] & ~1)
    assert piece["s21"][0] == DATA[LANE[on][0]]
    assert piece["s22"][0] == DATA[33]
    assert piece["s23"][0] == DATA[69 % 64]
    want = OLD.copy()
    want[2], want[17] = DATA[33], 5
    assert np.array_equal(piece["v9"], want)
    assert np.array_equal(piece["v10"][on], LANE[on])
    counted = np.array([bin(69 & ((1 << min(lane, 32)) - 1)).count("1") + 9 for lane in LANE])
    assert np.array_equal(piece["v11"][on], counted[on])


def test_append_and_consume(lanes: Lanes) -> None:
    piece = lanes.add(
        f"""v_mov_b32 v1, 0
  v_mov_b32 v2, 100
  ds_write_b32 v1, v2 offset:24
  s_mov_b32 m0, 16
  {set_exec(EXECS[1])}
  ds_append v10 offset:8
  ds_append v11 offset:8
  ds_consume v12 offset:8
  s_waitcnt lgkmcnt(0)
  s_mov_b64 exec, -1
  ds_read_b32 v13, v1 offset:24""",
        {},
        ["v10", "v11", "v12", "v13"],
        lds=1024,
    )
    lanes.run()
    on = active(EXECS[1])
    count = int(on.sum())
    assert (piece["v10"][on] == 100).all()
    assert (piece["v11"][on] == 100 + count).all()
    assert (piece["v12"][on] == 100 + 2 * count).all()
    assert (piece["v13"] == 100 + count).all()
