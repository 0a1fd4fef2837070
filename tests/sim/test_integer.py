"""Scalar and vector integer instructions against Python's integers, on random and awkward values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lanes import Lanes, wide

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
AWKWARD = [
    0,
    1,
    2,
    31,
    32,
    63,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFF,
    0xFFFFFFFE,
    0x00FF00FF,
    0x800000,
    0xFFFF8000,
]


def s(x: int, bits: int = 32) -> int:
    """As a signed number."""
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def values(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    out = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    out[: len(AWKWARD)] = AWKWARD
    rng.shuffle(out)
    return out


def reverse(x: int, bits: int) -> int:
    return int(f"{x:0{bits}b}"[::-1], 2)


def leading(x: int, bits: int) -> int:
    return M32 if x == 0 else bits - x.bit_length()


def leading_sign(x: int, bits: int) -> int:
    x = s(x, bits)
    x = ~x if x < 0 else x
    return M32 if x == 0 else bits - x.bit_length()


def trailing(x: int) -> int:
    return M32 if x == 0 else (x & -x).bit_length() - 1


def bfe(x: int, spec: int, bits: int, signed: bool) -> int:
    offset, width = spec & (bits - 1), spec >> 16 & 0x7F
    if width == 0:
        return 0
    width = min(width, bits)
    field = (s(x, bits) if signed else x) >> offset
    field &= (1 << width) - 1
    return s(field, width) if signed else field


Fold = Callable[[int, int], tuple[int, int | None]]  # -> result, SCC (None: as it was)
NZ = lambda x: (x, int(x != 0))  # noqa: E731

SOP2: dict[str, Fold] = {
    "s_add_u32": lambda a, b: (a + b, a + b >> 32),
    "s_sub_u32": lambda a, b: (a - b, int(b > a)),
    "s_add_i32": lambda a, b: (a + b, int(not -(1 << 31) <= s(a) + s(b) < 1 << 31)),
    "s_sub_i32": lambda a, b: (a - b, int(not -(1 << 31) <= s(a) - s(b) < 1 << 31)),
    "s_addc_u32": lambda a, b: (a + b + 1, a + b + 1 >> 32),
    "s_subb_u32": lambda a, b: (a - b - 1, int(b + 1 > a)),
    "s_min_i32": lambda a, b: (min(s(a), s(b)), int(s(a) < s(b))),
    "s_min_u32": lambda a, b: (min(a, b), int(a < b)),
    "s_max_i32": lambda a, b: (max(s(a), s(b)), int(s(a) > s(b))),
    "s_max_u32": lambda a, b: (max(a, b), int(a > b)),
    "s_cselect_b32": lambda a, b: (a, None),
    "s_and_b32": lambda a, b: NZ(a & b),
    "s_or_b32": lambda a, b: NZ(a | b),
    "s_xor_b32": lambda a, b: NZ(a ^ b),
    "s_andn2_b32": lambda a, b: NZ(a & ~b & M32),
    "s_orn2_b32": lambda a, b: NZ((a | ~b) & M32),
    "s_nand_b32": lambda a, b: NZ(~(a & b) & M32),
    "s_nor_b32": lambda a, b: NZ(~(a | b) & M32),
    "s_xnor_b32": lambda a, b: NZ(~(a ^ b) & M32),
    "s_lshl_b32": lambda a, b: NZ(a << (b & 31) & M32),
    "s_lshr_b32": lambda a, b: NZ(a >> (b & 31)),
    "s_ashr_i32": lambda a, b: NZ(s(a) >> (b & 31)),
    "s_bfm_b32": lambda a, b: (((1 << (a & 31)) - 1) << (b & 31), None),
    "s_mul_i32": lambda a, b: (a * b, None),
    "s_mul_hi_u32": lambda a, b: (a * b >> 32, None),
    "s_mul_hi_i32": lambda a, b: (s(a) * s(b) >> 32, None),
    "s_bfe_u32": lambda a, b: NZ(bfe(a, b, 32, False)),
    "s_bfe_i32": lambda a, b: NZ(bfe(a, b, 32, True)),
    "s_absdiff_i32": lambda a, b: NZ(abs(s(s(a) - s(b))) & M32),
    "s_lshl1_add_u32": lambda a, b: ((a << 1) + b, int((a << 1) + b > M32)),
    "s_lshl4_add_u32": lambda a, b: ((a << 4) + b, int((a << 4) + b > M32)),
    "s_pack_ll_b32_b16": lambda a, b: (a & 0xFFFF | b << 16, None),
    "s_pack_lh_b32_b16": lambda a, b: (a & 0xFFFF | b & 0xFFFF0000, None),
    "s_pack_hh_b32_b16": lambda a, b: (a >> 16 | b & 0xFFFF0000, None),
}

SOP1: dict[str, Callable[[int], tuple[int, int | None]]] = {
    "s_mov_b32": lambda a: (a, None),
    "s_not_b32": lambda a: NZ(~a & M32),
    "s_brev_b32": lambda a: (reverse(a, 32), None),
    "s_bcnt0_i32_b32": lambda a: NZ(32 - a.bit_count()),
    "s_bcnt1_i32_b32": lambda a: NZ(a.bit_count()),
    "s_ff0_i32_b32": lambda a: (trailing(~a & M32), None),
    "s_ff1_i32_b32": lambda a: (trailing(a), None),
    "s_flbit_i32_b32": lambda a: (leading(a, 32), None),
    "s_flbit_i32": lambda a: (leading_sign(a, 32), None),
    "s_sext_i32_i8": lambda a: (s(a, 8), None),
    "s_sext_i32_i16": lambda a: (s(a, 16), None),
    "s_abs_i32": lambda a: NZ(abs(s(a)) & M32),
    "s_wqm_b32": lambda a: NZ(sum(15 << q for q in range(0, 32, 4) if a >> q & 15)),
    "s_quadmask_b32": lambda a: NZ(sum(1 << q for q in range(8) if a >> 4 * q & 15)),
}

SOPC: dict[str, Callable[[int, int], bool]] = {
    "s_cmp_eq_i32": lambda a, b: a == b,
    "s_cmp_lg_i32": lambda a, b: a != b,
    "s_cmp_gt_i32": lambda a, b: s(a) > s(b),
    "s_cmp_ge_i32": lambda a, b: s(a) >= s(b),
    "s_cmp_lt_i32": lambda a, b: s(a) < s(b),
    "s_cmp_le_i32": lambda a, b: s(a) <= s(b),
    "s_cmp_gt_u32": lambda a, b: a > b,
    "s_cmp_ge_u32": lambda a, b: a >= b,
    "s_cmp_lt_u32": lambda a, b: a < b,
    "s_cmp_le_u32": lambda a, b: a <= b,
    "s_bitcmp0_b32": lambda a, b: not a >> (b & 31) & 1,
    "s_bitcmp1_b32": lambda a, b: bool(a >> (b & 31) & 1),
}


def pairs(seed: int, n: int = 12) -> list[tuple[int, int]]:
    a, b = values(seed, 2 * len(AWKWARD)), values(seed + 1, 2 * len(AWKWARD))
    return [(int(x), int(y)) for x, y in zip(a[:n], b[:n], strict=True)]


# SCC is 1 before each instruction.
SET_SCC = "s_cmp_eq_u32 s20, s20\n"


def test_scalar_of_two_sources(lanes: Lanes) -> None:
    work = []
    for seed, (name, fold) in enumerate(SOP2.items()):
        for a, b in pairs(seed):
            piece = lanes.add(
                f"{SET_SCC}{name} s30, s20, s21", {"s20": np.uint32(a), "s21": np.uint32(b)}, ["s30", "scc"]
            )
            work.append((name, a, b, piece, fold(a, b)))
    lanes.run()
    wrong = [
        (name, hex(a), hex(b), hex(piece["s30"][0]), piece["scc"][0], want)
        for name, a, b, piece, want in work
        if (int(piece["s30"][0]), int(piece["scc"][0])) != (want[0] & M32, 1 if want[1] is None else want[1])
    ]
    assert not wrong


def test_scalar_of_one_source(lanes: Lanes) -> None:
    work = []
    for seed, (name, fold) in enumerate(SOP1.items()):
        for a, _ in pairs(seed + 100):
            piece = lanes.add(f"{SET_SCC}{name} s30, s20", {"s20": np.uint32(a)}, ["s30", "scc"])
            work.append((name, a, piece, fold(a)))
    lanes.run()
    wrong = [
        (name, hex(a), hex(piece["s30"][0]), want)
        for name, a, piece, want in work
        if (int(piece["s30"][0]), int(piece["scc"][0])) != (want[0] & M32, 1 if want[1] is None else want[1])
    ]
    assert not wrong


def test_scalar_comparisons(lanes: Lanes) -> None:
    work = []
    for seed, (name, compare) in enumerate(SOPC.items()):
        for a, b in [*pairs(seed + 200), (5, 5)]:
            piece = lanes.add(f"{name} s20, s21", {"s20": np.uint32(a), "s21": np.uint32(b)}, ["scc"])
            work.append((name, a, b, piece, compare(a, b)))
    lanes.run()
    assert not [(n, hex(a), hex(b)) for n, a, b, piece, want in work if bool(piece["scc"][0]) != want]


@pytest.mark.parametrize(
    ("name", "exec_of", "result"),
    [
        ("s_and_saveexec_b64", lambda a, e: a & e, "old"),
        ("s_or_saveexec_b64", lambda a, e: a | e, "old"),
        ("s_xor_saveexec_b64", lambda a, e: a ^ e, "old"),
        ("s_andn2_saveexec_b64", lambda a, e: a & ~e, "old"),
        ("s_orn2_saveexec_b64", lambda a, e: a | ~e, "old"),
        ("s_andn1_saveexec_b64", lambda a, e: ~a & e, "old"),
        ("s_orn1_saveexec_b64", lambda a, e: ~a | e, "old"),
        ("s_nand_saveexec_b64", lambda a, e: ~(a & e), "old"),
        ("s_nor_saveexec_b64", lambda a, e: ~(a | e), "old"),
        ("s_xnor_saveexec_b64", lambda a, e: ~(a ^ e), "old"),
        ("s_andn1_wrexec_b64", lambda a, e: ~a & e, "new"),
        ("s_andn2_wrexec_b64", lambda a, e: a & ~e, "new"),
    ],
)
def test_exec_masks(lanes: Lanes, name: str, exec_of: Callable[[int, int], int], result: str) -> None:
    a, e = 0x123456789ABCDEF0, 0xFFFF0000F0F0A5A5
    inputs = {
        r: np.uint32(v) for r, v in (("s20", a & M32), ("s21", a >> 32), ("s22", e & M32), ("s23", e >> 32))
    }
    piece = lanes.add(
        f"s_mov_b64 exec, s[22:23]\n{name} s[30:31], s[20:21]", inputs, ["exec", "exec_hi", "s30", "s31"]
    )
    lanes.run()
    new = exec_of(a, e) & M64
    assert int(piece["exec"][0]) | int(piece["exec_hi"][0]) << 32 == new
    assert int(piece["s30"][0]) | int(piece["s31"][0]) << 32 == (e if result == "old" else new)


def s24(x: int) -> int:
    return s(x & 0xFFFFFF, 24)


def perm(a: int, b: int, select: int) -> int:
    data = (a << 32 | b).to_bytes(8, "little")
    out = []
    for k in select.to_bytes(4, "little"):
        if k < 8:
            out.append(data[k])
        elif k < 12:
            out.append(0xFF if data[2 * (k - 8) + 1] & 0x80 else 0)
        else:
            out.append(0 if k == 12 else 0xFF)
    return int.from_bytes(bytes(out), "little")


def bytewise(a: int, b: int, f: Callable[[int, int], int]) -> int:
    return sum(f(x, y) for x, y in zip(a.to_bytes(4, "little"), b.to_bytes(4, "little"), strict=True))


VECTOR: dict[str, Callable[..., int]] = {
    "v_not_b32": lambda a: ~a,
    "v_bfrev_b32": lambda a: reverse(a, 32),
    "v_ffbh_u32": lambda a: leading(a, 32),
    "v_ffbl_b32": trailing,
    "v_ffbh_i32": lambda a: leading_sign(a, 32),
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: s(a) * s(b) >> 32,
    "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_i32_i24": lambda a, b: s24(a) * s24(b),
    "v_mul_hi_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32,
    "v_mul_hi_i32_i24": lambda a, b: s24(a) * s24(b) >> 32,
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_lshlrev_b32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32": lambda a, b: s(b) >> (a & 31),
    "v_min_i32": lambda a, b: min(s(a), s(b)),
    "v_max_i32": lambda a, b: max(s(a), s(b)),
    "v_min_u32": min,
    "v_max_u32": max,
    "v_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31),
    "v_bcnt_u32_b32": lambda a, b: a.bit_count() + b,
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_mad_i32_i24": lambda a, b, c: s24(a) * s24(b) + c,
    "v_bfe_u32": lambda a, b, c: a >> (b & 31) & ((1 << (c & 31)) - 1),
    # Beyond bit 31 there are copies of the sign.
    "v_bfe_i32": lambda a, b, c: s(s(a) >> (b & 31) & ((1 << (c & 31)) - 1), c & 31) if c & 31 else 0,
    "v_bfi_b32": lambda a, b, c: a & b | ~a & c,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: a + b << (c & 31),
    "v_lshl_or_b32": lambda a, b, c: a << (b & 31) | c,
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_min3_i32": lambda a, b, c: min(s(a), s(b), s(c)),
    "v_max3_u32": max,
    "v_med3_i32": lambda a, b, c: sorted((s(a), s(b), s(c)))[1],
    "v_med3_u32": lambda a, b, c: sorted((a, b, c))[1],
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_perm_b32": perm,
    "v_sad_u8": lambda a, b, c: bytewise(a, b, lambda x, y: abs(x - y)) + c,
    "v_msad_u8": lambda a, b, c: bytewise(a, b, lambda x, y: abs(x - y) if y else 0) + c,
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
}


def test_vector(lanes: Lanes) -> None:
    work = []
    for seed, (name, fold) in enumerate(VECTOR.items()):
        count = 1 if seed < 5 else 2 if seed < 28 else 3
        sources = [values(1000 + 7 * seed + n, 64) for n in range(count)]
        if name == "v_perm_b32":
            sources[2] &= np.uint32(0x0F0F0F0F)
        registers = {f"v{8 + n}": x for n, x in enumerate(sources)}
        # Half of the lanes are off, and keep what they had.
        body = f"s_mov_b32 exec_hi, 0xf0f0f0f0\n{name} v20, {', '.join(registers)}\ns_mov_b64 exec, -1"
        work.append(
            (name, fold, sources, lanes.add(body, {**registers, "v20": np.full(64, 77, np.uint32)}, ["v20"]))
        )
    lanes.run()
    wrong = []
    for name, fold, sources, piece in work:
        for lane in range(64):
            on = lane < 32 or 0xF0F0F0F0 >> (lane - 32) & 1
            want = fold(*(int(x[lane]) for x in sources)) & M32 if on else 77
            if int(piece["v20"][lane]) != want:
                wrong.append(
                    (name, lane, [hex(x[lane]) for x in sources], hex(piece["v20"][lane]), hex(want))
                )
    assert not wrong


def test_carries(lanes: Lanes) -> None:
    a, b = values(1, 64), values(2, 64)
    mask = 0x0123456789ABCDEF
    common = {"v8": a, "v9": b, "s20": np.uint32(mask & M32), "s21": np.uint32(mask >> 32)}
    cases = {
        "v_add_co_u32": lambda x, y, c: x + y,
        "v_sub_co_u32": lambda x, y, c: x - y,
        "v_subrev_co_u32": lambda x, y, c: y - x,
        "v_addc_co_u32": lambda x, y, c: x + y + c,
        "v_subb_co_u32": lambda x, y, c: x - y - c,
        "v_subbrev_co_u32": lambda x, y, c: y - x - c,
    }
    pieces = {}
    for name in cases:
        carry = ", s[20:21]" if "_addc" in name or "_subb" in name else ""
        pieces[name] = lanes.add(f"{name}_e64 v20, s[30:31], v8, v9{carry}", common, ["v20", "s30", "s31"])
    lanes.run()
    for name, fold in cases.items():
        piece = pieces[name]
        out = int(piece["s30"][0]) | int(piece["s31"][0]) << 32
        for lane in range(64):
            total = fold(int(a[lane]), int(b[lane]), mask >> lane & 1)
            assert int(piece["v20"][lane]) == total & M32, (name, lane)
            assert out >> lane & 1 == int(total != total & M32), (name, lane)


def test_64_bit(lanes: Lanes) -> None:
    low, high, n = values(3, 64), values(4, 64), values(5, 64)
    x = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    y = values(6, 64).astype(np.uint64) | values(7, 64).astype(np.uint64) << np.uint64(32)
    inputs = {
        "v8": low,
        "v9": high,
        "v10": n,
        "v12": y.astype(np.uint32),
        "v13": (y >> np.uint64(32)).astype(np.uint32),
    }
    bodies: dict[str, tuple[str, Callable[[int, int, int, int], int]]] = {
        "left": ("v_lshlrev_b64 v[20:21], v10, v[8:9]", lambda a, b, k, c: a << (k & 63)),
        "right": ("v_lshrrev_b64 v[20:21], v10, v[8:9]", lambda a, b, k, c: a >> (k & 63)),
        "arithmetic": ("v_ashrrev_i64 v[20:21], v10, v[8:9]", lambda a, b, k, c: s(a, 64) >> (k & 63)),
        "shift and add": ("v_lshl_add_u64 v[20:21], v[8:9], 3, v[12:13]", lambda a, b, k, c: (a << 3) + b),
        "multiply": (
            "v_mad_u64_u32 v[20:21], s[30:31], v8, v10, v[12:13]",
            lambda a, b, k, c: (a & M32) * k + b,
        ),
        "signed": ("v_mad_i64_i32 v[20:21], s[30:31], v8, v10, v[12:13]", lambda a, b, k, c: s(a) * s(k) + b),
        "overlap": ("v_lshlrev_b64 v[8:9], 5, v[8:9]\nv_mov_b64 v[20:21], v[8:9]", lambda a, b, k, c: a << 5),
    }
    pieces = {name: lanes.add(body, inputs, ["v20", "v21"]) for name, (body, _) in bodies.items()}
    lanes.run()
    for name, (_, fold) in bodies.items():
        got = wide(pieces[name], "v20", np.uint64)
        want = [fold(int(x[k]), int(y[k]), int(n[k]), 0) & M64 for k in range(64)]
        assert got.tolist() == want, name
