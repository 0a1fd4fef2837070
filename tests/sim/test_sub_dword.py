"""16-bit integers, SDWA selection, byte arithmetic and 8-bit float conversions."""

from __future__ import annotations

import numpy as np
import pytest
from lanes import Lanes
from numbers_8_16 import bf8, fp8

RNG = np.random.default_rng(1)
A, B, C, OLD = RNG.integers(0, 1 << 32, (4, 64)).astype(np.uint32)
INPUTS = {"v8": A, "v9": B, "v10": C, "v12": OLD}


def half(x: np.ndarray, high: int, signed: bool) -> np.ndarray:
    raw = (x >> np.uint32(16 * high) & np.uint32(0xFFFF)).astype(np.uint16)
    return (raw.view(np.int16) if signed else raw).astype(np.int64)


OPS = {
    "add": lambda a, b, c: a + b,
    "sub": lambda a, b, c: a - b,
    "subrev": lambda a, b, c: b - a,
    "mul_lo": lambda a, b, c: a * b,
    "mad": lambda a, b, c: a * b + c,
    "lshlrev": lambda a, b, c: b << (a & 15),
    "lshrrev": lambda a, b, c: b >> (a & 15),
    "ashrrev": lambda a, b, c: b >> (a & 15),
    "min": lambda a, b, c: np.minimum(a, b),
    "max": lambda a, b, c: np.maximum(a, b),
    "min3": lambda a, b, c: np.minimum(np.minimum(a, b), c),
    "max3": lambda a, b, c: np.maximum(np.maximum(a, b), c),
    "med3": lambda a, b, c: np.sort(np.stack([a, b, c]), axis=0)[1],
}


def test_16_bit_integers(lanes: Lanes) -> None:
    clears = {}
    for name in (
        "add_u16",
        "sub_u16",
        "subrev_u16",
        "mul_lo_u16",
        "lshlrev_b16",
        "lshrrev_b16",
        "ashrrev_i16",
        "min_u16",
        "max_u16",
        "min_i16",
        "max_i16",
    ):
        clears[name] = lanes.add(f"v_{name} v12, v8, v9", INPUTS, ["v12"])
    keeps = []
    for name, count in (
        ("add_i16", 2),
        ("sub_i16", 2),
        ("mad_u16", 3),
        ("mad_i16", 3),
        ("min3_i16", 3),
        ("min3_u16", 3),
        ("max3_i16", 3),
        ("max3_u16", 3),
        ("med3_i16", 3),
        ("med3_u16", 3),
    ):
        for sel in range(0, 16, 3):
            bits = [sel >> n & 1 for n in (*range(count), 3)]
            sources = ", ".join(f"v{8 + n}" for n in range(count))
            keeps.append((name, sel, lanes.add(f"v_{name} v12, {sources} op_sel:{bits}", INPUTS, ["v12"])))
    clamped = {
        n: lanes.add(f"v_{n} v12, {s} clamp", INPUTS, ["v12"])
        for n, s in (
            ("add_u16_e64", "v8, v9"),
            ("sub_u16_e64", "v8, v9"),
            ("mad_i16", "v8, v9, v10"),
            ("mad_u16", "v8, v9, v10"),
        )
    }
    wide = {
        "i32_i16": lanes.add("v_mad_i32_i16 v12, v8, v9, v10 op_sel:[1,0,0,0]", INPUTS, ["v12"]),
        "u32_u16": lanes.add("v_mad_u32_u16 v12, v8, v9, v10 op_sel:[0,1,0,0]", INPUTS, ["v12"]),
    }
    lanes.run()
    for name, piece in clears.items():
        op, kind = name.rsplit("_", 1)
        signed = kind == "i16"
        want = OPS[op](half(A, 0, signed), half(B, 0, signed), 0) & 0xFFFF
        assert np.array_equal(piece["v12"], want), name
    for name, sel, piece in keeps:
        op, kind = name.rsplit("_", 1)
        a, b, c = (half(x, sel >> n & 1, kind == "i16") for n, x in enumerate((A, B, C)))
        want = OPS[op](a, b, c) & 0xFFFF
        old = OLD.astype(np.int64)
        want = (old & 0xFFFF | want << 16) if sel & 8 else (old & 0xFFFF0000 | want)
        assert np.array_equal(piece["v12"], want), (name, sel)
    for name, piece in clamped.items():
        op, kind = name.removesuffix("_e64").rsplit("_", 1)
        signed = kind == "i16"
        exact = OPS[op](*(half(x, 0, signed) for x in (A, B, C)))
        want = np.clip(exact, *((-32768, 32767) if signed else (0, 65535))) & 0xFFFF
        assert np.array_equal(piece["v12"] & 0xFFFF, want), name
    want = half(A, 1, True) * half(B, 0, True) + C.view(np.int32)
    assert np.array_equal(wide["i32_i16"]["v12"], want & 0xFFFFFFFF)
    want = half(A, 0, False) * half(B, 1, False) + C
    assert np.array_equal(wide["u32_u16"]["v12"], want & 0xFFFFFFFF)


@pytest.mark.parametrize("bits", ["i16", "u16", "b16"])
def test_packed_integers(lanes: Lanes, bits: str) -> None:
    names = {
        "i16": ["add", "sub", "mad", "min", "max", "ashrrev"],
        "u16": ["add", "sub", "mad", "min", "max", "mul_lo"],
        "b16": ["lshlrev", "lshrrev"],
    }[bits]
    cases = []
    for op in names:
        count = 3 if op == "mad" else 2
        for sel, sel_hi in ((0, 7), (5, 2), (7, 0)):
            for clamp in ("", " clamp") if op in ("add", "sub", "mad") else ("",):
                lists = [[m >> n & 1 for n in range(count)] for m in (sel, sel_hi)]
                sources = ", ".join(f"v{8 + n}" for n in range(count))
                text = f"v_pk_{op}_{bits} v12, {sources} op_sel:{lists[0]} op_sel_hi:{lists[1]}{clamp}"
                cases.append((op, sel, sel_hi, clamp, lanes.add(text, INPUTS, ["v12"])))
    minus = lanes.add(
        "v_pk_add_u16 v12, v8, -3\n v_pk_add_u16 v13, v8, 5 op_sel_hi:[1,0]", INPUTS, ["v12", "v13"]
    )
    lanes.run()
    signed = bits == "i16"
    for op, sel, sel_hi, clamp, piece in cases:
        for h, pick in enumerate((sel, sel_hi)):
            exact = OPS[op](*(half(x, pick >> n & 1, signed) for n, x in enumerate((A, B, C))))
            if clamp:
                exact = np.clip(exact, *((-32768, 32767) if signed else (0, 65535)))
            assert np.array_equal(piece["v12"] >> 16 * h & 0xFFFF, exact & 0xFFFF), (
                op,
                sel,
                sel_hi,
                clamp,
                h,
            )
    # an integer constant is sign-extended to 32 bits: its upper half is -1
    for h in range(2):
        assert np.array_equal(minus["v12"] >> 16 * h & 0xFFFF, (half(A, h, False) - (3, 1)[h]) & 0xFFFF)
        assert np.array_equal(minus["v13"] >> 16 * h & 0xFFFF, (half(A, h, False) + 5) & 0xFFFF)


SELECT = {
    "BYTE_0": (0, 8),
    "BYTE_1": (8, 8),
    "BYTE_2": (16, 8),
    "BYTE_3": (24, 8),
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
    "DWORD": (0, 32),
}


def pick(x: np.ndarray, select: str, sext: bool) -> np.ndarray:
    shift, bits = SELECT[select]
    raw = (x.astype(np.int64) >> shift) & ((1 << bits) - 1)
    return np.where(raw >> (bits - 1) & 1, raw - (1 << bits), raw) if sext else raw


def test_sdwa_selections(lanes: Lanes) -> None:
    cases = []
    for s0 in SELECT:
        for s1 in ("BYTE_3", "WORD_1", "DWORD"):
            for sext in (False, True):
                for dst, unused in (
                    ("DWORD", "PAD"),
                    ("BYTE_1", "PAD"),
                    ("BYTE_2", "SEXT"),
                    ("WORD_1", "PRESERVE"),
                    ("BYTE_3", "PRESERVE"),
                    ("WORD_0", "SEXT"),
                ):
                    x = "sext(v8)" if sext else "v8"
                    text = f"v_add_u32_sdwa v12, {x}, v9 dst_sel:{dst} dst_unused:UNUSED_{unused}"
                    text += f" src0_sel:{s0} src1_sel:{s1}"
                    cases.append((s0, s1, sext, dst, unused, lanes.add(text, INPUTS, ["v12"])))
    lanes.run()
    for s0, s1, sext, dst, unused, piece in cases:
        total = (pick(A, s0, sext) + pick(B, s1, False)) & 0xFFFFFFFF
        shift, bits = SELECT[dst]
        mask = ((1 << bits) - 1) << shift
        placed = total << shift & mask
        if unused == "PRESERVE":
            placed |= OLD.astype(np.int64) & ~mask & 0xFFFFFFFF
        elif unused == "SEXT":
            negative = total >> (bits - 1) & 1 == 1
            placed = np.where(negative, (placed | ~((1 << (shift + bits)) - 1)) & 0xFFFFFFFF, placed)
        assert np.array_equal(piece["v12"], placed), (s0, s1, sext, dst, unused)


def test_sdwa_of_floats_scalars_and_compares(lanes: Lanes) -> None:
    values = RNG.standard_normal(64).astype(np.float16)
    packed = values.view(np.uint16).astype(np.uint32) << 16 | 0x3C00
    f = lanes.add(
        "v_add_f16_sdwa v12, -|v8|, v8 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE"
        " src0_sel:WORD_1 src1_sel:WORD_0",
        {"v8": packed, "v12": OLD},
        ["v12"],
    )
    s = lanes.add(
        "s_mov_b32 s20, 0xfedcba98\n"
        " v_add_u32_sdwa v12, s20, v9 dst_sel:DWORD src0_sel:BYTE_3 src1_sel:BYTE_0",
        INPUTS,
        ["v12"],
    )
    c = lanes.add(
        "v_cmp_lt_i32_sdwa s[20:21], sext(v8), sext(v9) src0_sel:BYTE_1 src1_sel:WORD_1\n"
        " v_cmp_eq_u32_sdwa vcc, v8, v8 src0_sel:BYTE_0 src1_sel:BYTE_0",
        INPUTS,
        ["s20", "s21", "vcc", "vcc_hi"],
    )
    lanes.run()
    want = (-np.abs(values) + np.float16(1)).astype(np.float16).view(np.uint16).astype(np.int64)
    assert np.array_equal(f["v12"], want << 16 | OLD.astype(np.int64) & 0xFFFF)
    assert np.array_equal(s["v12"], 0xFE + pick(B, "BYTE_0", False))
    mask = int(c["s20"][0]) | int(c["s21"][0]) << 32
    less = pick(A, "BYTE_1", True) < pick(B, "WORD_1", True)
    assert mask == sum(1 << lane for lane in range(64) if less[lane])
    assert c["vcc"][0] == c["vcc_hi"][0] == 0xFFFFFFFF


def nearest8(values: np.ndarray, decode, largest: float) -> np.ndarray:
    """Codes of the nearest 8-bit floats, ties to the even code; NaN and overflow are 0x80."""
    codes = np.arange(0x80)
    table = decode(codes)
    out = np.zeros(len(values), np.uint8)
    for n, x in enumerate(np.asarray(values, np.float64)):
        if np.isnan(x) or np.isinf(x):
            out[n] = 0x80
            continue
        distance = np.abs(table - abs(x))
        best = np.flatnonzero(distance == distance.min())
        code = best[best % 2 == 0][0] if len(best) > 1 else best[0]
        step = table[0x7F] - table[0x7E]
        if abs(x) > largest and abs(x) - largest >= step / 2:
            out[n] = 0x80
        else:
            out[n] = code | (0x80 if x < 0 and code else 0)
    return out


@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_float8_conversions(lanes: Lanes, kind: str) -> None:
    decode, largest = (fp8, 240.0) if kind == "fp8" else (bf8, 57344.0)
    rng = np.random.default_rng(2)
    x = (rng.standard_normal(64) * 2.0 ** rng.integers(-16, 12, 64)).astype(np.float32)
    x[:8] = [0, -0.0, np.inf, np.nan, largest, largest * 1.02, -largest * 4, 2.0**-20]
    ties = decode(np.arange(1, 65)) + (decode(np.arange(2, 66)) - decode(np.arange(1, 65))) / 2
    inputs = {"v8": x.view(np.uint32), "v9": ties.astype(np.float32).view(np.uint32), "v12": OLD, "v13": OLD}
    pack = lanes.add(
        f"v_cvt_pk_{kind}_f32 v12, v8, v9\n v_cvt_pk_{kind}_f32 v13, v9, -v8 op_sel:[0,0,1]",
        inputs,
        ["v12", "v13"],
    )
    codes = [rng.permutation(256)[:64].astype(np.uint32) for _ in range(4)]
    all_codes = sum(c << np.uint32(8 * n) for n, c in enumerate(codes))
    unpack = lanes.add(
        f"v_cvt_f32_{kind} v12, v8\n"
        + "".join(f" v_cvt_f32_{kind}_sdwa v{12 + n}, v8 src0_sel:BYTE_{n}\n" for n in (1, 2, 3))
        + f" v_cvt_pk_f32_{kind} v[16:17], v8\n v_cvt_pk_f32_{kind}_sdwa v[18:19], v8 src0_sel:WORD_1",
        {"v8": all_codes},
        [f"v{n}" for n in range(12, 20)],
    )
    random = rng.integers(0, 1 << 32, 64).astype(np.uint32)
    stochastic = [
        lanes.add(
            f"v_cvt_sr_{kind}_f32 v12, v8, v9 op_sel:[0,0,{n & 1},{n >> 1}]", inputs | {"v9": random}, ["v12"]
        )
        for n in range(4)
    ]
    bounds = {
        end: lanes.add(
            f"v_mov_b32 v9, {bits}\n v_cvt_sr_{kind}_f32 v12, v8, v9", inputs | {"v12": OLD * 0}, ["v12"]
        )
        for end, bits in (("down", "0"), ("up", "-1"))
    }
    lanes.run()
    low, high = nearest8(x, decode, largest), nearest8(ties, decode, largest)
    assert np.array_equal(pack["v12"], OLD & 0xFFFF0000 | low | high.astype(np.uint32) << 8)
    negative = nearest8(-x, decode, largest).astype(np.uint32)
    assert np.array_equal(pack["v13"], OLD & 0xFFFF | high.astype(np.uint32) << 16 | negative << 24)
    for n in range(4):
        want = decode(codes[n]).astype(np.float32)
        assert np.array_equal(unpack[f"v{12 + n}"].view(np.float32), want, equal_nan=True), n
        assert np.array_equal(unpack[f"v{16 + n}"].view(np.float32), want, equal_nan=True), n
    # stochastic rounding gives one of the two neighbours, the lower one without noise
    value = np.abs(x.astype(np.float64))
    fits = np.isfinite(value) & (value < largest) & (value > decode(np.array([1]))[0])
    results = {n: (p["v12"] >> 8 * n & 0xFF) for n, p in enumerate(stochastic)}
    for n, got in results.items():
        assert np.array_equal(
            stochastic[n]["v12"] & ~np.uint32(0xFF << 8 * n), OLD & ~np.uint32(0xFF << 8 * n)
        )
        assert np.array_equal(got, results[0])
    below, above = (np.abs(decode(bounds[e]["v12"] & 0xFF)) for e in ("down", "up"))
    drawn = np.abs(decode(results[0]))
    assert (below[fits] <= value[fits]).all()
    assert (above[fits] >= value[fits]).all()
    assert ((drawn == below) | (drawn == above))[fits].all()


def test_packing_conversions(lanes: Lanes) -> None:
    x = (RNG.standard_normal(64) * 2).astype(np.float32)
    x[:3] = [np.nan, 1.0, -1.0]
    y = x[::-1].copy()
    ints = {"v10": (A >> RNG.integers(0, 20, 64).astype(np.uint32)), "v11": B}
    piece = lanes.add(
        """v_cvt_pknorm_i16_f32 v12, v8, -v9
  v_cvt_pknorm_u16_f32 v13, v8, v9
  v_cvt_pk_u16_u32 v14, v10, v11
  v_cvt_pk_i16_i32 v15, v10, v11
  v_sat_pk_u8_i16 v16, v11
  v_cvt_pkaccum_u8_f32 v17, v8, 2
  v_cvt_pk_u8_f32 v18, v8, 1, v11""",
        {"v8": x.view(np.uint32), "v9": y.view(np.uint32), "v17": OLD, **ints},
        [f"v{n}" for n in range(12, 19)],
    )
    lanes.run()

    def norm(v: np.ndarray, low: float, scale: float) -> np.ndarray:
        bounded = np.where(np.isnan(v), 0, np.clip(v, low, 1)).astype(np.float32)
        return np.rint(bounded * np.float32(scale)).astype(np.int64) & 0xFFFF

    assert np.array_equal(piece["v12"], norm(x, -1, 32767) | norm(-y, -1, 32767) << 16)
    assert np.array_equal(piece["v13"], norm(x, 0, 65535) | norm(y, 0, 65535) << 16)
    assert np.array_equal(piece["v14"], np.minimum(ints["v10"], 65535) | np.minimum(B, 65535) << 16)
    signed = [np.clip(v.view(np.int32), -32768, 32767).astype(np.int64) & 0xFFFF for v in (ints["v10"], B)]
    assert np.array_equal(piece["v15"], signed[0] | signed[1] << 16)
    bytes_ = [np.clip(half(B, h, True), 0, 255) for h in (0, 1)]
    assert np.array_equal(piece["v16"], bytes_[0] | bytes_[1] << 8)
    byte = np.where(np.isnan(x), 0, np.rint(np.clip(x, 0, 255))).astype(np.int64)
    assert np.array_equal(piece["v17"], OLD.astype(np.int64) & ~0xFF0000 | byte << 16)
    assert np.array_equal(piece["v18"], B.astype(np.int64) & ~0xFF00 | byte << 8)


def test_byte_arithmetic(lanes: Lanes) -> None:
    wide = RNG.integers(0, 1 << 32, (2, 64)).astype(np.uint32)
    piece = lanes.add(
        """v_sad_u8 v12, v8, v9, v10
  v_sad_hi_u8 v13, v8, v9, v10
  v_sad_u16 v14, v8, v9, v10
  v_sad_u32 v15, v8, v9, v10
  v_msad_u8 v16, v8, v9, v10
  v_lerp_u8 v17, v8, v9, v10
  v_perm_b32 v18, v8, v9, v10
  v_alignbyte_b32 v19, v8, v9, v10
  v_alignbit_b32 v20, v8, v9, v10
  v_qsad_pk_u16_u8 v[22:23], v[6:7], v9, v[4:5]
  v_mqsad_pk_u16_u8 v[24:25], v[6:7], v9, v[4:5]
  v_mqsad_u32_u8 v[26:29], v[6:7], v9, v[30:33]""",
        INPUTS | {"v6": wide[0], "v7": wide[1], "v4": C, "v5": A, "v30": A, "v31": B, "v32": C, "v33": OLD},
        [f"v{n}" for n in (*range(12, 21), *range(22, 30))],
    )
    lanes.run()
    a, b, c = (x.astype(np.int64) for x in (A, B, C))

    def byte(x: np.ndarray, n: int) -> np.ndarray:
        return x >> 8 * n & 0xFF

    sad = sum(abs(byte(a, n) - byte(b, n)) for n in range(4))
    assert np.array_equal(piece["v12"], (sad + c) & 0xFFFFFFFF)
    assert np.array_equal(piece["v13"], ((sad << 16) + c) & 0xFFFFFFFF)
    words = sum(abs((a >> 16 * n & 0xFFFF) - (b >> 16 * n & 0xFFFF)) for n in range(2))
    assert np.array_equal(piece["v14"], (words + c) & 0xFFFFFFFF)
    assert np.array_equal(piece["v15"], (abs(a - b) + c) & 0xFFFFFFFF)

    def masked(x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return sum(
            np.where(byte(reference, n) == 0, 0, abs(byte(x, n) - byte(reference, n))) for n in range(4)
        )

    assert np.array_equal(piece["v16"], (masked(a, b) + c) & 0xFFFFFFFF)
    lerp = sum(((byte(a, n) + byte(b, n) + (c >> 8 * n & 1)) >> 1) << 8 * n for n in range(4))
    assert np.array_equal(piece["v17"], lerp)
    want = []
    for lane in range(64):
        source = int(A[lane]) << 32 | int(B[lane])
        out = 0
        for n in range(4):
            sel = int(C[lane]) >> 8 * n & 0xFF
            if sel >= 13:
                value = 0xFF
            elif sel == 12:
                value = 0
            elif sel >= 8:
                value = 0xFF if source >> (16 * (sel - 8) + 15) & 1 else 0
            else:
                value = source >> 8 * sel & 0xFF
            out |= value << 8 * n
        want.append(out)
    assert np.array_equal(piece["v18"], np.array(want))
    joined = [int(A[lane]) << 32 | int(B[lane]) for lane in range(64)]
    assert np.array_equal(
        piece["v19"], [joined[lane] >> 8 * (int(C[lane]) & 3) & 0xFFFFFFFF for lane in range(64)]
    )
    assert np.array_equal(
        piece["v20"], [joined[lane] >> (int(C[lane]) & 31) & 0xFFFFFFFF for lane in range(64)]
    )
    window = [int(wide[0][lane]) | int(wide[1][lane]) << 32 for lane in range(64)]
    addend = [int(C[lane]) | int(A[lane]) << 32 for lane in range(64)]
    fours = (A, B, C, OLD)
    for lane in range(64):
        reference = int(B[lane])

        def one(n: int, masking: bool, lane: int = lane, ref: int = reference) -> int:
            total = 0
            for k in range(4):
                r = ref >> 8 * k & 0xFF
                if not masking or r:
                    total += abs((window[lane] >> 8 * (n + k) & 0xFF) - r)
            return total

        for base, masking in ((22, False), (24, True)):
            want64 = sum(
                ((one(n, masking) + (addend[lane] >> 16 * n & 0xFFFF)) & 0xFFFF) << 16 * n for n in range(4)
            )
            assert int(piece[f"v{base}"][lane]) | int(piece[f"v{base + 1}"][lane]) << 32 == want64, (
                base,
                lane,
            )
        for n in range(4):
            assert int(piece[f"v{26 + n}"][lane]) == (one(n, True) + int(fours[n][lane])) & 0xFFFFFFFF, n
