"""VALU integer, f32 and f64 instructions against numpy: modifiers, constants, carries, EXEC."""

from __future__ import annotations

import numpy as np
import pytest
from lanes import Lanes, wide

RNG = np.random.default_rng(1)
EDGES = np.array(
    [0, 1, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x00FFFFFF, 0xFF800000, 0x12345678], np.uint32
)


def dwords() -> np.ndarray:
    bits = RNG.integers(0, 1 << 32, 64).astype(np.uint32)
    bits[:20] = RNG.choice(EDGES, 20)
    return bits


A, B, C, D = dwords(), dwords(), dwords(), dwords()
INPUTS = {"v8": A, "v9": B, "v10": C, "v11": D}
M32 = 0xFFFFFFFF


def s(x: np.ndarray) -> np.ndarray:
    return x.view(np.int32).astype(object)


def u(x: np.ndarray) -> np.ndarray:
    return x.astype(object)


def s24(x: np.ndarray) -> np.ndarray:
    return (x << np.uint32(8)).view(np.int32).astype(object) // 256


def u24(x: np.ndarray) -> np.ndarray:
    return (x & np.uint32(0xFFFFFF)).astype(object)


def count(f, *arrays: np.ndarray) -> np.ndarray:
    return np.array([f(*(int(v) for v in row)) for row in zip(*arrays, strict=True)], object)


def ffbh(x: int) -> int:
    return 32 - x.bit_length() if x else -1


INTEGER = {
    "v_add_u32 v12, v8, v9": u(A) + u(B),
    "v_sub_u32 v12, v8, v9": u(A) - u(B),
    "v_subrev_u32 v12, v8, v9": u(B) - u(A),
    "v_add_i32 v12, v8, v9 clamp": np.clip(s(A) + s(B), -(2**31), 2**31 - 1),
    "v_sub_i32 v12, v8, v9 clamp": np.clip(s(A) - s(B), -(2**31), 2**31 - 1),
    "v_add_u32_e64 v12, v8, v9 clamp": np.clip(u(A) + u(B), 0, M32),
    "v_sub_u32_e64 v12, v8, v9 clamp": np.clip(u(A) - u(B), 0, M32),
    "v_mul_lo_u32 v12, v8, v9": u(A) * u(B),
    "v_mul_hi_u32 v12, v8, v9": u(A) * u(B) >> 32,
    "v_mul_hi_i32 v12, v8, v9": s(A) * s(B) >> 32,
    "v_mul_i32_i24 v12, v8, v9": s24(A) * s24(B),
    "v_mul_hi_i32_i24 v12, v8, v9": s24(A) * s24(B) >> 32,
    "v_mul_u32_u24 v12, v8, v9": u24(A) * u24(B),
    "v_mul_hi_u32_u24 v12, v8, v9": u24(A) * u24(B) >> 32,
    "v_mad_i32_i24 v12, v8, v9, v10": s24(A) * s24(B) + s(C),
    "v_mad_u32_u24 v12, v8, v9, v10": u24(A) * u24(B) + u(C),
    "v_min_i32 v12, v8, v9": np.minimum(s(A), s(B)),
    "v_max_i32 v12, v8, v9": np.maximum(s(A), s(B)),
    "v_min_u32 v12, v8, v9": np.minimum(u(A), u(B)),
    "v_max_u32 v12, v8, v9": np.maximum(u(A), u(B)),
    "v_min3_i32 v12, v8, v9, v10": np.minimum(np.minimum(s(A), s(B)), s(C)),
    "v_max3_u32 v12, v8, v9, v10": np.maximum(np.maximum(u(A), u(B)), u(C)),
    "v_med3_i32 v12, v8, v9, v10": np.sort(np.stack([s(A), s(B), s(C)]), axis=0)[1],
    "v_med3_u32 v12, v8, v9, v10": np.sort(np.stack([u(A), u(B), u(C)]), axis=0)[1],
    "v_lshlrev_b32 v12, v8, v9": u(B) << (u(A) & 31),
    "v_lshrrev_b32 v12, v8, v9": u(B) >> (u(A) & 31),
    "v_ashrrev_i32 v12, v8, v9": s(B) >> (u(A) & 31),
    "v_and_b32 v12, v8, v9": u(A) & u(B),
    "v_or_b32 v12, v8, v9": u(A) | u(B),
    "v_xor_b32 v12, v8, v9": u(A) ^ u(B),
    "v_xnor_b32 v12, v8, v9": ~(u(A) ^ u(B)),
    "v_not_b32 v12, v8": ~u(A),
    "v_and_or_b32 v12, v8, v9, v10": u(A) & u(B) | u(C),
    "v_or3_b32 v12, v8, v9, v10": u(A) | u(B) | u(C),
    "v_lshl_or_b32 v12, v8, v9, v10": u(A) << (u(B) & 31) & M32 | u(C),
    "v_lshl_add_u32 v12, v8, v9, v10": (u(A) << (u(B) & 31)) + u(C),
    "v_add_lshl_u32 v12, v8, v9, v10": (u(A) + u(B)) << (u(C) & 31),
    "v_add3_u32 v12, v8, v9, v10": u(A) + u(B) + u(C),
    "v_xad_u32 v12, v8, v9, v10": (u(A) ^ u(B)) + u(C),
    "v_bfi_b32 v12, v8, v9, v10": u(A) & u(B) | ~u(A) & u(C),
    "v_bfm_b32 v12, v8, v9": ((1 << (u(A) & 31)) - 1) << (u(B) & 31),
    "v_bfrev_b32 v12, v8": count(lambda a: int(f"{a:032b}"[::-1], 2), A),
    "v_bcnt_u32_b32 v12, v8, v9": count(lambda a, b: a.bit_count() + b, A, B),
    "v_ffbh_u32 v12, v8": count(ffbh, A),
    "v_ffbh_i32 v12, v8": count(lambda a: ffbh(~a & M32 if a >> 31 else a), A),
    "v_ffbl_b32 v12, v8": count(lambda a: (a & -a).bit_length() - 1, A),
    "v_add_u32 v12, -16, v9": u(B) - 16,
    "v_add_u32 v12, 0x12345678, v9": u(B) + 0x12345678,
    "v_and_b32 v12, s20, v9": u(B) & 0xFF00FF,
    "v_mul_lo_u32 v12, v8, s20": u(A) * 0xFF00FF,
}


def low(value: np.ndarray) -> np.ndarray:
    return np.array([int(v) & M32 for v in value], np.uint32)


@pytest.mark.parametrize("exec_mask", [2**64 - 1, 0x8001F00F12345678])
def test_integers(lanes: Lanes, exec_mask: int) -> None:
    setup = f"s_mov_b32 s20, 0xff00ff\n s_mov_b32 exec_lo, {exec_mask & M32:#x}\n"
    setup += f" s_mov_b32 exec_hi, {exec_mask >> 32:#x}"
    pieces = {t: lanes.add(f"{setup}\n {t}", INPUTS | {"v12": D}, ["v12"]) for t in INTEGER}
    lanes.run()
    on = np.array([exec_mask >> lane & 1 for lane in range(64)], bool)
    for text, want in INTEGER.items():
        bad = np.flatnonzero(pieces[text]["v12"] != np.where(on, low(want), D))
        assert bad.size == 0, (
            f"{text}: lane {bad[0]}: {pieces[text]['v12'][bad[0]]:#x}, want {low(want)[bad[0]]:#x}"
        )


def pair(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    return u(lo) | u(hi) << 32


def test_wide_integers_and_carries(lanes: Lanes) -> None:
    first, second = pair(A, B), pair(C, D)
    ops = {
        "v_lshlrev_b64 v[12:13], v8, v[10:11]": second << (u(A) & 63),
        "v_lshrrev_b64 v[12:13], v8, v[10:11]": second >> (u(A) & 63),
        "v_ashrrev_i64 v[12:13], v8, v[10:11]": count(
            lambda a, c, d: ((c | d << 32) - (1 << 64 if d >> 31 else 0)) >> (a & 63), A, C, D
        ),
        "v_lshl_add_u64 v[12:13], v[8:9], v4, v[10:11]": (first << 3) + second,
        "v_mad_u64_u32 v[12:13], s[20:21], v8, v9, v[10:11]": u(A) * u(B) + second,
        "v_mad_i64_i32 v[12:13], s[20:21], v8, v9, v[10:11]": s(A) * s(B) + second,
        "v_mov_b64 v[12:13], v[10:11]": second,
        # a destination that overlaps a source by one register
        "v_mov_b64 v[12:13], v[8:9]\n v_lshl_add_u64 v[12:13], v[12:13], 1, v[12:13]": first * 3,
    }
    pieces = {t: lanes.add(t, INPUTS | {"v4": np.full(64, 3)}, ["v12", "v13"]) for t in ops}
    add = lanes.add(
        "v_add_co_u32 v12, vcc, v8, v10\n v_addc_co_u32 v13, vcc, v9, v11, vcc\n"
        " v_sub_co_u32_e64 v14, s[20:21], v8, v10\n v_subb_co_u32_e64 v15, s[22:23], v9, v11, s[20:21]\n"
        " v_subrev_co_u32 v16, vcc, v8, v10",
        INPUTS,
        ["v12", "v13", "v14", "v15", "v16", "vcc", "vcc_hi", "s22", "s23"],
    )
    lanes.run()
    for text, want in ops.items():
        got = wide(pieces[text], "v12", np.uint64)
        assert np.array_equal(got, np.array([int(v) & (1 << 64) - 1 for v in want], np.uint64)), text
    total = wide(add, "v12", np.uint64)
    assert np.array_equal(total, np.array([int(v) & (1 << 64) - 1 for v in first + second], np.uint64))
    rest = wide(add, "v14", np.uint64)
    assert np.array_equal(rest, np.array([int(v) & (1 << 64) - 1 for v in first - second], np.uint64))
    borrow = int(add["s22"][0]) | int(add["s23"][0]) << 32
    assert borrow == sum(1 << lane for lane in range(64) if first[lane] < second[lane])
    assert np.array_equal(add["v16"], low(u(C) - u(A)))
    mask = int(add["vcc"][0]) | int(add["vcc_hi"][0]) << 32
    assert mask == sum(1 << lane for lane in range(64) if A[lane] > C[lane])


def test_compares_and_selection(lanes: Lanes) -> None:
    equal = {**INPUTS, "v9": np.where(RNG.integers(0, 2, 64) == 1, A, B)}
    b = equal["v9"]
    relations = {
        "lt": np.less,
        "eq": np.equal,
        "le": np.less_equal,
        "gt": np.greater,
        "ne": np.not_equal,
        "ge": np.greater_equal,
    }
    pieces = {}
    for name in relations:
        for kind in ("i32", "u32", "i64", "u64"):
            sources = "v[8:9], v[10:11]" if "64" in kind else "v8, v9"
            pieces[name, kind] = lanes.add(
                f"v_cmp_{name}_{kind}_e64 s[20:21], {sources}", equal, ["s20", "s21"]
            )
    cmpx = lanes.add(
        "s_mov_b32 exec_hi, 0\n v_cmpx_gt_u32 vcc, v8, v9\n v_mov_b32 v12, 1", equal | {"v12": A * 0}, ["v12"]
    )
    select = lanes.add(
        "s_mov_b32 s20, 0x0f0f0f0f\n s_mov_b32 s21, 0x12345678\n v_cndmask_b32_e64 v12, v8, v9, s[20:21]\n"
        " v_cndmask_b32_e64 v13, -v8, |v9|, s[20:21]",
        equal,
        ["v12", "v13"],
    )
    lanes.run()
    wide_a = A.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    wide_b = C.astype(np.uint64) | D.astype(np.uint64) << np.uint64(32)
    types = {
        "i32": (A.view(np.int32), b.view(np.int32)),
        "u32": (A, b),
        "u64": (wide_a, wide_b),
        "i64": (wide_a.view(np.int64), wide_b.view(np.int64)),
    }
    for (name, kind), piece in pieces.items():
        mask = int(piece["s20"][0]) | int(piece["s21"][0]) << 32
        want = relations[name](*types[kind])
        assert mask == sum(1 << lane for lane in range(64) if want[lane]), (name, kind)
    assert np.array_equal(cmpx["v12"], (b < A) & (np.arange(64) < 32))
    chosen = np.array([0x123456780F0F0F0F >> lane & 1 for lane in range(64)], bool)
    assert np.array_equal(select["v12"], np.where(chosen, b, A))
    assert np.array_equal(select["v13"], np.where(chosen, b & 0x7FFFFFFF, A ^ 0x80000000))


def floats(kind: type) -> np.ndarray:
    values = RNG.standard_normal(64) * 10.0 ** RNG.integers(-6, 7, 64)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        np.finfo(kind).tiny / 4,
        -np.finfo(kind).max,
        0.5,
        2.5,
    ]
    values[: len(special)] = RNG.permutation(special)
    with np.errstate(over="ignore"):
        return values.astype(kind)


def less(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    low_ = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, low_)).astype(a.dtype)


def more(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return -less(-a, -b)


def same(got: np.ndarray, want: np.ndarray, what: str) -> None:
    bits = f"u{got.itemsize}"
    bad = np.flatnonzero((got.view(bits) != want.view(bits)) & ~(np.isnan(got) & np.isnan(want)))
    assert bad.size == 0, f"{what}: lane {bad[0]}: {got[bad[0]]!r}, want {want[bad[0]]!r}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_f32(lanes: Lanes) -> None:
    x, y, z = (floats(np.float32) for _ in range(3))
    exact = x.astype(np.longdouble) * y + z
    ops = {
        "v_add_f32 v12, v8, v9": x + y,
        "v_sub_f32 v12, v8, v9": x - y,
        "v_subrev_f32 v12, v8, v9": y - x,
        "v_mul_f32 v12, v8, v9": x * y,
        "v_min_f32 v12, v8, v9": less(x, y),
        "v_max_f32 v12, v8, v9": more(x, y),
        "v_min3_f32 v12, v8, v9, v10": less(less(x, y), z),
        "v_max3_f32 v12, v8, v9, v10": more(more(x, y), z),
        "v_fma_f32 v12, v8, v9, v10": exact.astype(np.float32),
        "v_mov_b32 v12, v10\n v_fmac_f32 v12, v8, v9": exact.astype(np.float32),
        "v_fmamk_f32 v12, v8, 0x40400000, v10": (x.astype(np.longdouble) * 3 + z).astype(np.float32),
        "v_fmaak_f32 v12, v8, v9, 0xc0400000": (x.astype(np.longdouble) * y - 3).astype(np.float32),
        "v_add_f32_e64 v12, -v8, |v9|": -x + np.abs(y),
        "v_mul_f32_e64 v12, v8, v9 mul:2": x * y * np.float32(2),
        "v_add_f32_e64 v12, v8, v9 clamp": np.where(np.isnan(x + y), 0, np.clip(x + y, 0, 1)).astype(
            np.float32
        )
        + 0,
        "v_floor_f32 v12, v8": np.floor(x),
        "v_ceil_f32 v12, v8": np.ceil(x),
        "v_trunc_f32 v12, v8": np.trunc(x),
        "v_rndne_f32 v12, v8": np.rint(x),
        "v_sqrt_f32 v12, |v8|": np.sqrt(np.abs(x)),
        "v_cvt_f32_i32 v12, v11": D.view(np.int32).astype(np.float32),
        "v_cvt_f32_u32 v12, v11": D.astype(np.float32),
        "v_cvt_f32_ubyte2 v12, v11": (D >> 16 & 0xFF).astype(np.float32),
        "v_add_f32 v12, 0.5, v8": x + np.float32(0.5),
        "v_mul_f32 v12, 0.15915494, v8": x * np.uint32(0x3E22F983).view(np.float32),
    }
    inputs = {"v8": x.view(np.uint32), "v9": y.view(np.uint32), "v10": z.view(np.uint32), "v11": D}
    pieces = {t: lanes.add(t, inputs, ["v12"]) for t in ops}
    to_int = lanes.add(
        "v_cvt_i32_f32 v12, v8\n v_cvt_u32_f32 v13, v8\n"
        " v_cvt_flr_i32_f32 v14, v8\n v_cvt_rpi_i32_f32 v15, v8",
        inputs,
        ["v12", "v13", "v14", "v15"],
    )
    relations = {
        "lt": x < y,
        "eq": x == x,
        "nle": ~(x <= y),
        "u": np.isnan(x) | np.isnan(y),
        "lg": (x < y) | (x > y),
    }
    compares = {
        n: lanes.add(f"v_cmp_{n}_f32_e64 s[20:21], v8, {'v8' if n == 'eq' else 'v9'}", inputs, ["s20", "s21"])
        for n in relations
    }
    lanes.run()
    for text, want in ops.items():
        same(pieces[text]["v12"].view(np.float32), want.astype(np.float32), text)
    wide_x = np.where(np.isnan(x), 0, x.astype(np.float64))
    assert np.array_equal(to_int["v12"].view(np.int32), np.clip(np.trunc(wide_x), -(2.0**31), 2.0**31 - 1))
    assert np.array_equal(to_int["v13"], np.clip(np.trunc(wide_x), 0, 2.0**32 - 1).astype(np.uint64))
    assert np.array_equal(to_int["v14"].view(np.int32), np.clip(np.floor(wide_x), -(2.0**31), 2.0**31 - 1))
    assert np.array_equal(
        to_int["v15"].view(np.int32), np.clip(np.floor(wide_x + 0.5), -(2.0**31), 2.0**31 - 1)
    )
    for name, want in relations.items():
        mask = int(compares[name]["s20"][0]) | int(compares[name]["s21"][0]) << 32
        assert mask == sum(1 << lane for lane in range(64) if want[lane]), name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_f64(lanes: Lanes) -> None:
    x, y = floats(np.float64), floats(np.float64)
    ops = {
        "v_add_f64 v[12:13], v[8:9], v[10:11]": x + y,
        "v_mul_f64 v[12:13], v[8:9], v[10:11]": x * y,
        "v_min_f64 v[12:13], v[8:9], v[10:11]": less(x, y),
        "v_max_f64 v[12:13], v[8:9], v[10:11]": more(x, y),
        "v_add_f64 v[12:13], -v[8:9], |v[10:11]|": -x + np.abs(y),
        "v_fma_f64 v[12:13], v[8:9], 1.0, v[10:11]": x + y,
        "v_floor_f64 v[12:13], v[8:9]": np.floor(x),
        "v_ceil_f64 v[12:13], v[8:9]": np.ceil(x),
        "v_trunc_f64 v[12:13], v[8:9]": np.trunc(x),
        "v_rndne_f64 v[12:13], v[8:9]": np.rint(x),
        "v_cvt_f64_i32 v[12:13], v8": x.view(np.uint32)[0::2].view(np.int32).astype(np.float64),
        "v_cvt_f64_u32 v[12:13], v8": x.view(np.uint32)[0::2].astype(np.float64),
        "v_add_f64 v[12:13], 4.0, v[8:9]": x + 4,
        "v_ldexp_f64 v[12:13], v[8:9], -3": np.ldexp(x, -3),
    }
    inputs = {
        "v8": x.view(np.uint32)[0::2],
        "v9": x.view(np.uint32)[1::2],
        "v10": y.view(np.uint32)[0::2],
        "v11": y.view(np.uint32)[1::2],
    }
    pieces = {t: lanes.add(t, inputs, ["v12", "v13"]) for t in ops}
    narrow = lanes.add(
        "v_cvt_f32_f64 v12, v[8:9]\n v_cvt_f64_f32 v[14:15], v12\n"
        " v_cvt_i32_f64 v16, v[8:9]\n v_cvt_u32_f64 v17, v[8:9]",
        inputs,
        ["v12", "v14", "v15", "v16", "v17"],
    )
    lanes.run()
    for text, want in ops.items():
        same(wide(pieces[text], "v12", np.float64), want, text)
    same(narrow["v12"].view(np.float32), x.astype(np.float32), "to f32")
    same(wide(narrow, "v14", np.float64), x.astype(np.float32).astype(np.float64), "from f32")
    whole = np.where(np.isnan(x), 0, np.trunc(x))
    assert np.array_equal(narrow["v16"].view(np.int32), np.clip(whole, -(2.0**31), 2.0**31 - 1))
    assert np.array_equal(narrow["v17"], np.clip(whole, 0, 2.0**32 - 1))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_transcendentals(lanes: Lanes) -> None:
    """They agree to the tolerance the ISA document gives, about one unit in the last place."""
    x = np.abs(floats(np.float32))
    inputs = {"v8": x.view(np.uint32), "v9": floats(np.float32).view(np.uint32)}
    small = np.abs(RNG.standard_normal(64)).astype(np.float32)
    text = {
        "v_rcp_f32 v12, v8": 1 / x.astype(np.float64),
        "v_rsq_f32 v12, v8": 1 / np.sqrt(x.astype(np.float64)),
        "v_log_f32 v12, v8": np.log2(x.astype(np.float64)),
    }
    pieces = {t: lanes.add(t, inputs, ["v12"]) for t in text}
    exp = lanes.add(
        "v_exp_f32 v12, v8\n v_sin_f32 v13, v8\n v_cos_f32 v14, v8",
        {"v8": small.view(np.uint32)},
        ["v12", "v13", "v14"],
    )
    lanes.run()
    for name, want in text.items():
        np.testing.assert_allclose(
            pieces[name]["v12"].view(np.float32), want.astype(np.float32), rtol=3e-7, err_msg=name
        )
    np.testing.assert_allclose(exp["v12"].view(np.float32), np.exp2(small.astype(np.float64)), rtol=3e-7)
    turns = 2 * np.pi * small.astype(np.float64)
    np.testing.assert_allclose(exp["v13"].view(np.float32), np.sin(turns), atol=1e-6)
    np.testing.assert_allclose(exp["v14"].view(np.float32), np.cos(turns), atol=1e-6)
