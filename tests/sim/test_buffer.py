"""MUBUF, MTBUF, SCRATCH and loads that go to LDS: addressing, bounds and formats."""

from __future__ import annotations

import numpy as np
import pytest
from lanes import Lanes
from simulator import Failed

RNG = np.random.default_rng(1)
LANE = np.arange(64, dtype=np.uint32)
MEMORY = RNG.integers(0, 1 << 32, 4096).astype(np.uint32)
BYTES = MEMORY.view(np.uint8)
OLD = np.full(64, 0x12345678, np.uint32)


def resource(records: int, stride: int = 0, word3: int = 0x27000, swizzle: bool = False) -> str:
    """s[40:43]: a descriptor of the piece's memory."""
    word1 = stride << 16 | (1 << 31 if swizzle else 0)
    return (
        f"s_mov_b32 s40, s98\n s_and_b32 s41, s99, 0xffff\n s_or_b32 s41, s41, {word1:#x}\n"
        f" s_mov_b32 s42, {records}\n s_mov_b32 s43, {word3:#x}\n"
    )


def dword(at: np.ndarray) -> np.ndarray:
    return np.array([int.from_bytes(BYTES[int(a) : int(a) + 4].tobytes(), "little") for a in at], np.uint32)


def test_loads(lanes: Lanes) -> None:
    offset = (RNG.permutation(64) * 36).astype(np.uint32)
    inputs = {"v8": offset, "v20": OLD}
    raw = resource(64 * 36)
    pieces = {
        n: lanes.add(
            f"{raw} buffer_load_dword{'' if n == 1 else f'x{n}'} "
            f"{'v20' if n == 1 else f'v[20:{19 + n}]'}, v8, s[40:43], 0 offen offset:20",
            inputs,
            [f"v{20 + k}" for k in range(n)],
            memory=MEMORY.copy(),
        )
        for n in (1, 2, 3, 4)
    }
    small = {}
    for name, size, signed in (
        ("ubyte", 1, False),
        ("sbyte", 1, True),
        ("ushort", 2, False),
        ("sshort", 2, True),
    ):
        text = f"{raw} buffer_load_{name} v20, v8, s[40:43], 4 offen offset:2"
        small[name] = (size, signed, lanes.add(text, inputs, ["v20"], memory=MEMORY.copy()))
    halves = {
        n: lanes.add(
            f"{raw} buffer_load_{n} v20, v8, s[40:43], 0 offen", inputs, ["v20"], memory=MEMORY.copy()
        )
        for n in ("short_d16", "short_d16_hi", "sbyte_d16", "ubyte_d16_hi")
    }
    lanes.run()
    for n, piece in pieces.items():
        for k in range(n):
            at = offset + 20 + 4 * k
            want = np.where(at + 4 <= 64 * 36, dword(np.minimum(at, 64 * 36)), 0)
            assert np.array_equal(piece[f"v{20 + k}"], want), (n, k)
    for name, (size, signed, piece) in small.items():
        at = offset + 6
        value = np.array([int.from_bytes(BYTES[a : a + size].tobytes(), "little", signed=signed) for a in at])
        assert np.array_equal(piece["v20"].view(np.int32), value), name
    first, second = dword(offset) & 0xFFFF, dword(offset) & 0xFF
    # with ECC of the registers (sramecc+) the other half becomes zero
    assert np.array_equal(halves["short_d16"]["v20"], first)
    assert np.array_equal(halves["short_d16_hi"]["v20"], first << 16)
    sign = second.astype(np.uint8).view(np.int8).astype(np.int32).view(np.uint32) & 0xFFFF
    assert np.array_equal(halves["sbyte_d16"]["v20"], sign)
    assert np.array_equal(halves["ubyte_d16_hi"]["v20"], second << 16)


def test_addressing(lanes: Lanes) -> None:
    """Index times stride, the lane added to it, swizzled elements, an SGPR offset; and structured bounds."""
    index = RNG.permutation(64).astype(np.uint32)
    inside = {"v8": index, "v9": (LANE % 3 * 4).astype(np.uint32), "v20": OLD}
    structured = lanes.add(
        resource(40, stride=16)
        + "s_mov_b32 s30, 32\n buffer_load_dword v20, v[8:9], s[40:43], s30 idxen offen",
        inside,
        ["v20"],
        memory=MEMORY.copy(),
    )
    by_lane = lanes.add(
        resource(64, stride=8, word3=0x27000 | 1 << 23).replace("0x827000", f"{1 << 23:#x}")
        + " buffer_load_dword v20, off, s[40:43], 0 offset:4",
        inside,
        ["v20"],
        memory=MEMORY.copy(),
    )
    swizzled = lanes.add(
        resource(64, stride=12, word3=0x27000 | 1 << 21, swizzle=True)
        + " buffer_load_dword v20, v[8:9], s[40:43], 0 idxen offen",
        inside,
        ["v20"],
        memory=MEMORY.copy(),
    )
    lanes.run()
    at = index * 16 + inside["v9"] + 32
    assert np.array_equal(structured["v20"], np.where(index < 40, dword(at), 0))
    assert np.array_equal(by_lane["v20"], dword(LANE * 8 + 4))
    # 16 records of 12 bytes: their first dwords, then their second, then their third
    at = (index // 16 * 12 + inside["v9"]) * 16 + index % 16 * 4
    assert np.array_equal(swizzled["v20"], dword(at))


def test_stores_stop_at_the_bound(lanes: Lanes) -> None:
    offset = (LANE * 16).astype(np.uint32)
    memory = np.zeros(512, np.uint32)
    small = np.zeros(512, np.uint32)
    lanes.add(
        resource(50 * 16 + 8) + " buffer_store_dwordx4 v[20:23], v8, s[40:43], 0 offen",
        {"v8": offset} | {f"v{20 + k}": LANE * 4 + k for k in range(4)},
        [],
        memory=memory,
    )
    lanes.add(
        resource(1024)
        + """buffer_store_byte v20, v8, s[40:43], 0 offen
  buffer_store_short v20, v8, s[40:43], 0 offen offset:2
  buffer_store_byte_d16_hi v20, v8, s[40:43], 0 offen offset:4
  buffer_store_short_d16_hi v20, v8, s[40:43], 0 offen offset:6""",
        {"v8": offset, "v20": MEMORY[:64]},
        [],
        memory=small,
    )
    lanes.run()
    want = np.zeros(512, np.uint32)
    want[: 50 * 4 + 2] = np.arange(50 * 4 + 2)
    assert np.array_equal(memory, want)
    low, high = MEMORY[:64] & 0xFFFF, MEMORY[:64] >> 16
    assert np.array_equal(small[0:256:4], low & 0xFF | low << 16)
    assert np.array_equal(small[1:256:4], high & 0xFF | high << 16)


FORMATS = {
    # dfmt, nfmt: the components of element 0xRAW by definition
    "BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_UNORM": (4, lambda b: b[:4].astype(np.float64) / 255),
    "BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_SNORM": (4, lambda b: np.maximum(b[:4].view(np.int8) / 127, -1)),
    "BUF_DATA_FORMAT_16_16,BUF_NUM_FORMAT_USCALED": (4, lambda b: b[:4].view(np.uint16).astype(np.float64)),
    "BUF_DATA_FORMAT_16_16,BUF_NUM_FORMAT_SSCALED": (4, lambda b: b[:4].view(np.int16).astype(np.float64)),
    "BUF_DATA_FORMAT_16_16_16_16,BUF_NUM_FORMAT_FLOAT": (
        8,
        lambda b: b[:8].view(np.float16).astype(np.float64),
    ),
    "BUF_DATA_FORMAT_2_10_10_10,BUF_NUM_FORMAT_UNORM": (
        4,
        lambda b: (
            np.array(
                [int(b.view(np.uint32)[0]) >> s & m for s, m in ((0, 1023), (10, 1023), (20, 1023), (30, 3))]
            )
            / np.array([1023, 1023, 1023, 3])
        ),
    ),
    "BUF_DATA_FORMAT_32_32,BUF_NUM_FORMAT_FLOAT": (8, lambda b: b[:8].view(np.float32).astype(np.float64)),
}


def finite_memory() -> np.ndarray:
    """Dwords that are ordinary numbers as f16 pairs and as f32."""
    return RNG.standard_normal(2048).astype(np.float16).view(np.uint32)


def test_typed_formats(lanes: Lanes) -> None:
    memory = finite_memory()
    offset = (RNG.permutation(64) * 16).astype(np.uint32)
    pieces = {
        f: lanes.add(
            resource(8192) + f"tbuffer_load_format_xyzw v[20:23], v8, s[40:43], 0 format:[{f}] offen",
            {"v8": offset},
            ["v20", "v21", "v22", "v23"],
            memory=memory.copy(),
        )
        for f in FORMATS
    }
    integer = lanes.add(
        resource(8192) + "tbuffer_load_format_xy v[20:21], v8, s[40:43], 0 "
        "format:[BUF_DATA_FORMAT_8_8,BUF_NUM_FORMAT_SINT] offen",
        {"v8": offset},
        ["v20", "v21"],
        memory=memory.copy(),
    )
    halves = lanes.add(
        resource(8192) + "tbuffer_load_format_d16_xyz v[20:21], v8, s[40:43], 0 "
        "format:[BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_UNORM] offen",
        {"v8": offset},
        ["v20", "v21"],
        memory=memory.copy(),
    )
    lanes.run()
    raw = memory.view(np.uint8)
    for name, (size, define) in FORMATS.items():
        for lane in range(64):
            parts = define(raw[offset[lane] : offset[lane] + size].copy())
            want = np.concatenate([parts, [0, 0, 0, 1][len(parts) :]]).astype(np.float32)
            got = np.array([pieces[name][f"v{20 + k}"][lane] for k in range(4)], np.uint32).view(np.float32)
            assert np.array_equal(got, want), (name, lane)
    for lane in range(64):
        at = offset[lane]
        assert np.array_equal(
            [int(integer[r].view(np.int32)[lane]) for r in ("v20", "v21")], raw[at : at + 2].view(np.int8)
        )
        parts = (raw[at : at + 3] / 255.0).astype(np.float32).astype(np.float16).view(np.uint16).astype(int)
        assert halves["v20"][lane] == parts[0] | parts[1] << 16
        assert halves["v21"][lane] == parts[2]


def test_format_stores_read_back(lanes: Lanes) -> None:
    values = [(RNG.integers(0, 256, 64) / 255).astype(np.float32) for _ in range(4)]
    memory = np.zeros(256, np.uint32)
    untyped = np.zeros(256, np.uint32)
    inputs = {f"v{20 + k}": v.view(np.uint32) for k, v in enumerate(values)} | {"v8": LANE * 4}
    lanes.add(
        resource(1024) + "tbuffer_store_format_xyzw v[20:23], v8, s[40:43], 0 "
        "format:[BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_UNORM] offen",
        inputs,
        [],
        memory=memory,
    )
    # the resource's own format: dfmt 10 is 8_8_8_8, nfmt 0 unorm; selected w, z, y, x on the way in
    word3 = 10 << 15 | 0 << 12 | 7 | 6 << 3 | 5 << 6 | 4 << 9
    swizzled = lanes.add(
        resource(1024, word3=word3) + "buffer_store_format_xyzw v[20:23], v8, s[40:43], 0 offen\n"
        " s_waitcnt vmcnt(0)\n buffer_load_format_xyzw v[24:27], v8, s[40:43], 0 offen",
        inputs,
        ["v24", "v25", "v26", "v27"],
        memory=untyped,
    )
    lanes.run()
    codes = [np.rint(v * 255).astype(np.uint32) for v in values]
    want = codes[0] | codes[1] << 8 | codes[2] << 16 | codes[3] << 24
    assert np.array_equal(memory[:64], want)
    assert np.array_equal(untyped[:64], want)
    for k in range(4):
        assert np.array_equal(swizzled[f"v{24 + k}"].view(np.float32), values[3 - k])


def test_loads_to_lds(lanes: Lanes) -> None:
    offset = (RNG.permutation(64) * 4).astype(np.uint32)
    pieces = {
        "global_load_lds_dword": "global_load_lds_dword v8, s[98:99] offset:16",
        "buffer_load_dword": resource(4096) + "buffer_load_dword v8, s[40:43], 0 offen offset:16 lds",
        "global_load_lds_ubyte": "global_load_lds_ubyte v8, s[98:99] offset:16",
    }
    got = {}
    for name, text in pieces.items():
        got[name] = lanes.add(
            f"s_mov_b32 m0, 64\n {text}\n s_waitcnt vmcnt(0)\n"
            " v_lshlrev_b32 v9, 2, v0\n ds_read_b32 v20, v9 offset:80",
            {"v8": offset},
            ["v20"],
            memory=MEMORY.copy(),
            lds=2048,
        )
    lanes.run()
    want = dword(offset + 16)
    assert np.array_equal(got["global_load_lds_dword"]["v20"], want)
    assert np.array_equal(got["buffer_load_dword"]["v20"], want)
    assert np.array_equal(got["global_load_lds_ubyte"]["v20"], want & 0xFF)


def test_scratch(lanes: Lanes) -> None:
    piece = lanes.add(
        """v_and_b32 v8, 3, v0
  v_lshlrev_b32 v8, 2, v8
  scratch_store_dword off, v9, off offset:64
  scratch_store_dwordx2 v8, v[10:11], off offset:16
  s_mov_b32 s20, 32
  scratch_store_short_d16_hi off, v9, s20 offset:4
  s_waitcnt vmcnt(0)
  scratch_load_dword v20, off, off offset:64
  scratch_load_dword v21, v8, off offset:20
  v_add_u32 v12, 12, v8
  scratch_load_dword v22, v12, off offset:4
  scratch_load_ushort v23, off, s20 offset:4
  scratch_load_sbyte_d16_hi v24, off, off offset:64""",
        {"v9": MEMORY[:64], "v10": MEMORY[64:128], "v11": MEMORY[128:192], "v24": OLD},
        ["v20", "v21", "v22", "v23", "v24"],
        private=128,
    )
    lanes.run()
    assert np.array_equal(piece["v20"], MEMORY[:64])
    assert np.array_equal(piece["v21"], MEMORY[128:192])
    assert np.array_equal(piece["v22"], MEMORY[64:128])
    assert np.array_equal(piece["v23"], MEMORY[:64] >> 16)
    byte = (MEMORY[:64] & 0xFF).astype(np.uint8).view(np.int8).astype(np.int32).view(np.uint32) & 0xFFFF
    assert np.array_equal(piece["v24"], byte << 16)


def test_lds_reads_from_nowhere_give_zeros(lanes: Lanes) -> None:
    """Tensile gives lanes an address that no LDS has where it wants zeros."""
    lane = np.arange(64, dtype=np.uint32)
    piece = lanes.add(
        """v_lshlrev_b32 v8, 2, v0
  ds_write_b32 v8, v9
  v_mov_b32 v10, 0xf00000
  v_cmp_lt_u32 vcc, 9, v0
  v_cndmask_b32 v8, v8, v10, vcc
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v20, v8
  ds_read2_b32 v[22:23], v8 offset1:1
  ds_read_u16_d16_hi v24, v8""",
        {"v9": lane + 5, "v24": OLD},
        ["v20", "v23", "v24"],
        lds=256,
    )
    lanes.run()
    assert np.array_equal(piece["v20"], np.where(lane > 9, 0, lane + 5))
    assert np.array_equal(piece["v23"], np.where(lane > 9, 0, lane + 6))
    assert np.array_equal(piece["v24"], np.where(lane > 9, 0, (lane + 5) << 16))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            resource(1 << 30) + "v_mov_b32 v8, 0x1000000\n buffer_load_dword v20, v8, s[40:43], 0 offen",
            "not allocated",
        ),
        ("v_mov_b32 v8, 0x1000\n scratch_load_dword v20, v8, off", "private memory"),
        ("v_mov_b32 v8, 0x1000\n ds_read_b32 v20, v8", "LDS"),
        ("v_mov_b32 v8, 0xf00000\n ds_write_b32 v8, v20", "LDS"),
    ],
)
def test_wild_accesses_are_faults(lanes: Lanes, text: str, message: str) -> None:
    lanes.add(text, {}, [], lds=256, private=64)
    with pytest.raises(Failed, match=message):
        lanes.run()
