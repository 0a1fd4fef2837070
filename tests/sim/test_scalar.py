"""SALU instructions against definitions in Python: result and SCC."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from lanes import Lanes

VALUES = [
    0,
    1,
    2,
    31,
    32,
    63,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0x12345678,
    0xF0F0F0F0,
    0x00050003,
    0x00200000,
]
WIDE = [0, 1, 1 << 63, (1 << 64) - 1, 0x0123456789ABCDEF, 0xFFFFFFFF00000000, 0x00000000FFFFFFFF, 1 << 32]
M32, M64 = (1 << 32) - 1, (1 << 64) - 1
# name -> f(a, b) giving (result, scc); scc None: unchanged
Op = Callable[[int, int], "tuple[int, int | None]"]


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


def nonzero(r: int) -> tuple[int, int]:
    return r, int(r != 0)


def overflow(exact: int, bits: int = 32) -> int:
    return int(not -(1 << bits - 1) <= exact < 1 << bits - 1)


def field(a: int, b: int, bits: int, sign: bool) -> tuple[int, int]:
    offset, width = b & bits - 1, b >> 16 & 0x7F
    value = (signed(a, bits) if sign else a) >> offset
    if width < bits:
        value &= (1 << width) - 1
        if sign and width and value >> width - 1:
            value -= 1 << width
    return nonzero(value & (1 << bits) - 1)


def leading(x: int, bits: int) -> int:
    return bits - x.bit_length() if x else -1


def sign_leading(x: int, bits: int) -> int:
    flipped = ~x & (1 << bits) - 1 if x >> bits - 1 else x
    return leading(flipped, bits)


TWO32: dict[str, Op] = {
    "s_add_u32": lambda a, b: (a + b & M32, a + b >> 32),
    "s_sub_u32": lambda a, b: (a - b & M32, int(b > a)),
    "s_add_i32": lambda a, b: (a + b & M32, overflow(signed(a, 32) + signed(b, 32))),
    "s_sub_i32": lambda a, b: (a - b & M32, overflow(signed(a, 32) - signed(b, 32))),
    "s_min_i32": lambda a, b: (min(a, b, key=lambda x: signed(x, 32)), int(signed(a, 32) < signed(b, 32))),
    "s_max_i32": lambda a, b: (max(a, b, key=lambda x: signed(x, 32)), int(signed(a, 32) > signed(b, 32))),
    "s_min_u32": lambda a, b: (min(a, b), int(a < b)),
    "s_max_u32": lambda a, b: (max(a, b), int(a > b)),
    "s_and_b32": lambda a, b: nonzero(a & b),
    "s_or_b32": lambda a, b: nonzero(a | b),
    "s_xor_b32": lambda a, b: nonzero(a ^ b),
    "s_andn2_b32": lambda a, b: nonzero(a & ~b & M32),
    "s_orn2_b32": lambda a, b: nonzero((a | ~b) & M32),
    "s_nand_b32": lambda a, b: nonzero(~(a & b) & M32),
    "s_nor_b32": lambda a, b: nonzero(~(a | b) & M32),
    "s_xnor_b32": lambda a, b: nonzero(~(a ^ b) & M32),
    "s_lshl_b32": lambda a, b: nonzero(a << (b & 31) & M32),
    "s_lshr_b32": lambda a, b: nonzero(a >> (b & 31)),
    "s_ashr_i32": lambda a, b: nonzero(signed(a, 32) >> (b & 31) & M32),
    "s_bfm_b32": lambda a, b: (((1 << (a & 31)) - 1) << (b & 31) & M32, None),
    "s_mul_i32": lambda a, b: (a * b & M32, None),
    "s_mul_hi_u32": lambda a, b: (a * b >> 32, None),
    "s_mul_hi_i32": lambda a, b: (signed(a, 32) * signed(b, 32) >> 32 & M32, None),
    "s_bfe_u32": lambda a, b: field(a, b, 32, False),
    "s_bfe_i32": lambda a, b: field(a, b, 32, True),
    "s_absdiff_i32": lambda a, b: nonzero(abs(signed(signed(a, 32) - signed(b, 32) & M32, 32)) & M32),
    "s_lshl1_add_u32": lambda a, b: ((a << 1) + b & M32, int((a << 1) + b > M32)),
    "s_lshl4_add_u32": lambda a, b: ((a << 4) + b & M32, int((a << 4) + b > M32)),
    "s_pack_ll_b32_b16": lambda a, b: (a & 0xFFFF | (b & 0xFFFF) << 16, None),
    "s_pack_lh_b32_b16": lambda a, b: (a & 0xFFFF | b & 0xFFFF0000, None),
    "s_pack_hh_b32_b16": lambda a, b: (a >> 16 | b & 0xFFFF0000, None),
}
TWO64: dict[str, Op] = {
    "s_and_b64": lambda a, b: nonzero(a & b),
    "s_or_b64": lambda a, b: nonzero(a | b),
    "s_xor_b64": lambda a, b: nonzero(a ^ b),
    "s_andn2_b64": lambda a, b: nonzero(a & ~b & M64),
    "s_orn2_b64": lambda a, b: nonzero((a | ~b) & M64),
    "s_xnor_b64": lambda a, b: nonzero(~(a ^ b) & M64),
    "s_nand_b64": lambda a, b: nonzero(~(a & b) & M64),
    "s_nor_b64": lambda a, b: nonzero(~(a | b) & M64),
}
SHIFT64: dict[str, Op] = {
    "s_lshl_b64": lambda a, b: nonzero(a << (b & 63) & M64),
    "s_lshr_b64": lambda a, b: nonzero(a >> (b & 63)),
    "s_ashr_i64": lambda a, b: nonzero(signed(a, 64) >> (b & 63) & M64),
    "s_bfe_u64": lambda a, b: field(a, b, 64, False),
    "s_bfe_i64": lambda a, b: field(a, b, 64, True),
}
ONE32: dict[str, Op] = {
    "s_not_b32": lambda a, _: nonzero(~a & M32),
    "s_brev_b32": lambda a, _: (int(f"{a:032b}"[::-1], 2), None),
    "s_bcnt0_i32_b32": lambda a, _: nonzero(32 - a.bit_count()),
    "s_bcnt1_i32_b32": lambda a, _: nonzero(a.bit_count()),
    "s_ff0_i32_b32": lambda a, _: ((~a & M32 & -(~a & M32)).bit_length() - 1 & M32, None),
    "s_ff1_i32_b32": lambda a, _: ((a & -a).bit_length() - 1 & M32, None),
    "s_flbit_i32_b32": lambda a, _: (leading(a, 32) & M32, None),
    "s_flbit_i32": lambda a, _: (sign_leading(a, 32) & M32, None),
    "s_sext_i32_i8": lambda a, _: (signed(a & 0xFF, 8) & M32, None),
    "s_sext_i32_i16": lambda a, _: (signed(a & 0xFFFF, 16) & M32, None),
    "s_abs_i32": lambda a, _: nonzero(abs(signed(a, 32)) & M32),
    "s_wqm_b32": lambda a, _: nonzero(sum(0xF << s for s in range(0, 32, 4) if a >> s & 15)),
    "s_quadmask_b32": lambda a, _: nonzero(sum(1 << s // 4 for s in range(0, 32, 4) if a >> s & 15)),
}
ONE64: dict[str, Op] = {
    "s_not_b64": lambda a, _: nonzero(~a & M64),
    "s_brev_b64": lambda a, _: (int(f"{a:064b}"[::-1], 2), None),
    "s_wqm_b64": lambda a, _: nonzero(sum(0xF << s for s in range(0, 64, 4) if a >> s & 15)),
}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "s_cmp_eq_u32": lambda a, b: a == b,
    "s_cmp_lg_i32": lambda a, b: a != b,
    "s_cmp_gt_u32": lambda a, b: a > b,
    "s_cmp_ge_i32": lambda a, b: signed(a, 32) >= signed(b, 32),
    "s_cmp_lt_i32": lambda a, b: signed(a, 32) < signed(b, 32),
    "s_cmp_le_u32": lambda a, b: a <= b,
    "s_bitcmp0_b32": lambda a, b: not a >> (b & 31) & 1,
    "s_bitcmp1_b32": lambda a, b: bool(a >> (b & 31) & 1),
}


def load(register: int, value: int, wide: bool) -> str:
    text = f" s_mov_b32 s{register}, {value & M32:#x}\n"
    return text + (f" s_mov_b32 s{register + 1}, {value >> 32:#x}\n" if wide else "")


class Batch:
    """Many scalar computations in one piece: each stores result and SCC to the piece's memory."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes, self._text, self._want = lanes, ["s_mov_b64 s[80:81], s[98:99]\n v_mov_b32 v1, 0\n"], []

    def add(self, text: str, want: tuple[int, int | None], what: str) -> None:
        """`text` leaves its result in s[8:9]; SCC starts as 1."""
        store = "".join(
            f" v_mov_b32 v2, s{r}\n global_store_dword v1, v2, s[80:81] offset:{at}\n"
            for r, at in ((8, 0), (9, 4), (12, 8))
        )
        self._text.append(
            f" s_mov_b64 s[8:9], 0\n s_cmp_eq_u32 s8, s8\n{text}\n s_cselect_b32 s12, 1, 0\n{store}"
            " s_add_u32 s80, s80, 12\n s_addc_u32 s81, s81, 0\n"
        )
        self._want.append((want, what))

    def check(self) -> None:
        memory = np.zeros(3 * len(self._want), np.uint32)
        self._lanes.add("".join(self._text), {}, [], memory=memory)
        self._lanes.run()
        for n, ((result, scc), what) in enumerate(self._want):
            got = int(memory[3 * n]) | int(memory[3 * n + 1]) << 32
            assert got == result, f"{what}: {got:#x}, want {result:#x}"
            assert memory[3 * n + 2] == (1 if scc is None else scc), f"{what}: SCC"


def pairs(left: list[int], right: list[int]) -> list[tuple[int, int]]:
    """Each left with a few rights, every value used."""
    return [(a, right[(n * 5 + k) % len(right)]) for n, a in enumerate(left) for k in (0, 1, 3, 7)]


def test_two_operands(lanes: Lanes) -> None:
    batch = Batch(lanes)
    for name, f in TWO32.items():
        for a, b in pairs(VALUES, VALUES):
            text = load(20, a, False) + load(22, b, False) + f" {name} s8, s20, s22"
            batch.add(text, f(a, b), f"{name} {a:#x}, {b:#x}")
    batch.check()


def test_wide_operands(lanes: Lanes) -> None:
    batch = Batch(lanes)
    for table, right, wide in ((TWO64, WIDE, True), (SHIFT64, VALUES, False)):
        for name, f in table.items():
            for a, b in pairs(WIDE, right):
                second = "s[22:23]" if wide else "s22"
                text = load(20, a, True) + load(22, b, wide) + f" {name} s[8:9], s[20:21], {second}"
                batch.add(text, f(a, b), f"{name} {a:#x}, {b:#x}")
    batch.check()


def test_one_operand(lanes: Lanes) -> None:
    batch = Batch(lanes)
    for name, f in ONE32.items():
        for a in VALUES:
            batch.add(load(20, a, False) + f" {name} s8, s20", f(a, 0), f"{name} {a:#x}")
    for name, f in ONE64.items():
        for a in WIDE:
            batch.add(load(20, a, True) + f" {name} s[8:9], s[20:21]", f(a, 0), f"{name} {a:#x}")
    batch.check()


def test_comparisons_carries_and_constants(lanes: Lanes) -> None:
    batch = Batch(lanes)
    for name, compare in COMPARE.items():
        for a, b in pairs(VALUES, VALUES):
            text = load(20, a, False) + load(22, b, False) + f" {name} s20, s22"
            batch.add(text, (0, int(compare(a, b))), f"{name} {a:#x}, {b:#x}")
    for a, b in pairs(VALUES, VALUES):
        for carry in (0, 1):
            text = load(20, a, False) + load(22, b, False) + f" s_cmp_eq_u32 {carry}, 1\n"
            total = a + b + carry
            batch.add(
                text + " s_addc_u32 s8, s20, s22", (total & M32, total >> 32), f"s_addc {a:#x} {b:#x} {carry}"
            )
            total = a - b - carry
            batch.add(
                text + " s_subb_u32 s8, s20, s22",
                (total & M32, int(total < 0)),
                f"s_subb {a:#x} {b:#x} {carry}",
            )
    for text, want in (
        ("s_movk_i32 s8, 0x8001", (0xFFFF8001, None)),
        ("s_mov_b32 s8, 7\n s_addk_i32 s8, 0xfff0", (7 - 16 & M32, 0)),
        ("s_mov_b32 s8, 7\n s_mulk_i32 s8, 0xfff0", (7 * -16 & M32, None)),
        ("s_mov_b32 s8, -5\n s_cmpk_lt_i32 s8, 0xfffc", (0xFFFFFFFB, 1)),
        ("s_mov_b32 s8, 5\n s_cmpk_lt_u32 s8, 0xfffc", (5, 1)),
        ("s_mov_b64 s[8:9], -16", (-16 & M64, None)),
        ("s_mov_b64 s[8:9], 0.5", (0x3FE0000000000000, None)),
        ("s_mov_b32 s8, 0.5", (0x3F000000, None)),
        ("s_mov_b32 s8, 0.15915494", (0x3E22F983, None)),
        ("s_cmp_eq_u32 0, 1\n s_mov_b32 s8, 3\n s_cmov_b32 s8, 4", (3, 0)),
        ("s_mov_b32 s8, 3\n s_cmov_b32 s8, 4", (4, 1)),
        ("s_bitset1_b32 s8, 5", (32, None)),
        ("s_mov_b32 s8, -1\n s_bitset0_b32 s8, 31", (0x7FFFFFFF, None)),
        ("s_mov_b64 s[20:21], 5\n s_bitreplicate_b64_b32 s[8:9], s20", (0x33, None)),
        ("s_mov_b32 m0, 2\n s_mov_b32 s22, 77\n s_movrels_b32 s8, s20", (77, None)),
        ("s_mov_b32 m0, 1\n s_mov_b32 s20, 78\n s_movreld_b32 s7, s20", (78, None)),
    ):
        batch.add(text, want, text)
    batch.check()


def test_exec_and_indexed_registers(lanes: Lanes) -> None:
    lane = np.arange(64)
    saved = lanes.add(
        """s_mov_b32 s20, 0xff00ff00
  s_mov_b32 s21, 0x0000ffff
  s_and_saveexec_b64 s[22:23], s[20:21]
  s_mov_b64 s[24:25], exec
  s_orn2_saveexec_b64 s[26:27], s[20:21]
  s_mov_b64 s[28:29], exec
  s_mov_b64 exec, -1""",
        {},
        ["s22", "s24", "s25", "s26", "s28", "s29", "scc"],
    )
    indexed = lanes.add(
        """s_mov_b32 s20, 2
  s_mov_b32 s21, 3
  s_set_gpr_idx_on s20, gpr_idx(SRC0)
  v_mov_b32 v20, v8
  s_set_gpr_idx_off
  s_mov_b32 s20, 1
  s_set_gpr_idx_on s20, gpr_idx(SRC1,DST)
  v_add_u32 v21, v8, v9
  s_set_gpr_idx_mode gpr_idx(DST)
  s_set_gpr_idx_idx s21
  v_mov_b32 v23, v8
  s_set_gpr_idx_off
  v_mov_b32 v25, v8""",
        {"v8": lane, "v9": lane + 100, "v10": lane + 200, **{f"v{r}": lane * 0 for r in range(20, 27)}},
        [f"v{r}" for r in range(20, 27)],
    )
    lanes.run()
    assert [int(saved[r][0]) for r in ("s22", "s24", "s25")] == [M32, 0xFF00FF00, 0x0000FFFF]
    assert int(saved["s26"][0]) == 0xFF00FF00
    # what s[20:21] lacks, or what was active already
    assert [int(saved[r][0]) for r in ("s28", "s29")] == [M32, M32]
    assert np.array_equal(indexed["v20"], lane + 200)
    assert np.array_equal(indexed["v21"], lane * 0)
    assert np.array_equal(indexed["v22"], lane + lane + 200)
    assert np.array_equal(indexed["v26"], lane)
    assert np.array_equal(indexed["v25"], lane)
