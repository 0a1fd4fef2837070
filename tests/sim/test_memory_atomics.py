"""Atomics of DS, FLAT, GLOBAL and MUBUF: the new value in memory and the old one returned, lane by lane."""

from __future__ import annotations

import numpy as np
import pytest
from lanes import Lanes
from simulator import Failed

RNG = np.random.default_rng(1)
SLOTS = 16


def wrapped(f):
    return lambda old, data, bits: f(old, data) & ((1 << bits) - 1)


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


INTEGER = {
    "add": wrapped(lambda o, d: o + d),
    "sub": wrapped(lambda o, d: o - d),
    "and": wrapped(lambda o, d: o & d),
    "or": wrapped(lambda o, d: o | d),
    "xor": wrapped(lambda o, d: o ^ d),
    "swap": wrapped(lambda o, d: d),
    "inc": wrapped(lambda o, d: 0 if o >= d else o + 1),
    "dec": wrapped(lambda o, d: d if o == 0 or o > d else o - 1),
    "umin": wrapped(min),
    "umax": wrapped(max),
    "rsub": wrapped(lambda o, d: d - o),
    "smin": lambda o, d, bits: min(o, d, key=lambda x: signed(x, bits)),
    "smax": lambda o, d, bits: max(o, d, key=lambda x: signed(x, bits)),
}
DS_NAMES = {
    "and": "and_b",
    "or": "or_b",
    "xor": "xor_b",
    "umin": "min_u",
    "umax": "max_u",
    "smin": "min_i",
    "smax": "max_i",
    "swap": "wrxchg_b",
}


def as_float(bits: int, kind: str):
    return np.uint32(bits).view(np.float32) if kind == "f32" else np.uint64(bits).view(np.float64)


def as_bits(value) -> int:
    return int(value.view(np.uint32 if value.dtype == np.float32 else np.uint64))


def packed(old: int, data: int, decode, encode) -> int:
    return sum(encode(decode(old >> s & 0xFFFF) + decode(data >> s & 0xFFFF)) << s for s in (0, 16))


def bf16_round(x: np.float32) -> int:
    bits = int(np.float32(x).view(np.uint32))
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def half_sum(old: int, data: int) -> int:
    return packed(
        old, data, lambda b: np.uint16(b).view(np.float16), lambda v: int(np.float16(v).view(np.uint16))
    )


def bf16_sum(old: int, data: int) -> int:
    return packed(old, data, lambda b: np.uint32(b << 16).view(np.float32), bf16_round)


FLOAT = {
    "add_f32": (32, lambda o, d: as_bits(as_float(o, "f32") + as_float(d, "f32"))),
    "add_f64": (64, lambda o, d: as_bits(as_float(o, "f64") + as_float(d, "f64"))),
    "min_f64": (64, lambda o, d: as_bits(np.minimum(as_float(o, "f64"), as_float(d, "f64")))),
    "max_f64": (64, lambda o, d: as_bits(np.maximum(as_float(o, "f64"), as_float(d, "f64")))),
    "pk_add_f16": (32, half_sum),
    "pk_add_bf16": (32, bf16_sum),
    "min_f32": (32, lambda o, d: as_bits(np.minimum(as_float(o, "f32"), as_float(d, "f32")))),
    "max_f32": (32, lambda o, d: as_bits(np.maximum(as_float(o, "f32"), as_float(d, "f32")))),
}


def values(kind: str, count: int) -> np.ndarray:
    """Operands as unsigned integers of the type's width."""
    if kind in ("add_f32", "min_f32", "max_f32"):
        return RNG.standard_normal(count).astype(np.float32).view(np.uint32)
    if kind.endswith("f64"):
        return RNG.standard_normal(count).view(np.uint64)
    if kind == "pk_add_f16":
        return RNG.standard_normal(2 * count).astype(np.float16).view(np.uint32)
    if kind == "pk_add_bf16":
        return RNG.integers(0, 1 << 32, count).astype(np.uint32) & 0xBFFFBFFF  # no infinities
    bits = 64 if kind.endswith("64") else 32
    # small numbers as well, for inc and dec
    wide = RNG.integers(0, 1 << bits - 1, count, dtype=np.uint64) * 2 + RNG.integers(0, 2, count).astype(
        np.uint64
    )
    small = RNG.integers(0, 4, count).astype(np.uint64)
    return np.where(RNG.integers(0, 2, count) == 1, wide, small).astype(
        np.uint32 if bits == 32 else np.uint64
    )


def words(data: np.ndarray, bits: int) -> list[np.ndarray]:
    data = data.astype(np.uint64)
    low = (data & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return [low] if bits == 32 else [low, (data >> np.uint64(32)).astype(np.uint32)]


class Case:
    """One atomic: expected memory and returned values, worked out lane by lane."""

    def __init__(self, name: str, bits: int, f, kind: str, compare: bool = False) -> None:
        self.bits, size = bits, bits // 8
        self.slot = RNG.integers(0, SLOTS, 64)
        self.data = values(kind, 64)
        start = values(kind, SLOTS)
        # compares succeed in some lanes: with the value the slot starts with
        self.other = np.where(RNG.integers(0, 2, 64) == 1, start[self.slot], values(kind, 64))
        memory = [int(x) for x in start]
        self.old = []
        for lane in range(64):
            before = memory[self.slot[lane]]
            self.old.append(before)
            data = int(self.data[lane])
            memory[self.slot[lane]] = f(before, data, int(self.other[lane])) if compare else f(before, data)
        self.after = np.array(memory, np.uint64)
        self.start = start.astype(np.uint32 if bits == 32 else np.uint64)
        self.address = (self.slot * size).astype(np.uint32)
        self.memory = np.ascontiguousarray(self.start).view(np.uint32).copy()

    def check(self, piece, memory: np.ndarray, returns: bool, what: str) -> None:
        got = memory.view(np.uint32 if self.bits == 32 else np.uint64)
        assert np.array_equal(got.astype(np.uint64), self.after), f"{what}: memory"
        if returns:
            value = piece["v20"].astype(np.uint64)
            if self.bits == 64:
                value |= piece["v21"].astype(np.uint64) << np.uint64(32)
            assert np.array_equal(value, np.array(self.old, np.uint64)), f"{what}: returned"


def all_cases():
    for name, f in INTEGER.items():
        for bits in (32, 64):
            yield name, bits, Case(name, bits, lambda o, d, f=f, b=bits: f(o, d, b), f"u{bits}")
    for name, (bits, f) in FLOAT.items():
        yield name, bits, Case(name, bits, f, name)


def registers(case: Case) -> dict:
    inputs = {"v8": case.address}
    for n, w in enumerate(words(case.data, case.bits)):
        inputs[f"v{10 + n}"] = w
    for n, w in enumerate(words(case.other, case.bits)):
        inputs[f"v{10 + case.bits // 32 + n}"] = w
    return inputs


def tuple_of(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


V_SHARP = "s_mov_b32 s40, s98\n s_and_b32 s41, s99, 0xffff\n s_mov_b32 s42, 4096\n s_mov_b32 s43, 0x27000"


@pytest.mark.parametrize("segment", ["global", "flat", "buffer"])
def test_memory_atomics(lanes: Lanes, segment: str) -> None:
    done = []
    for name, bits, case in all_cases():
        if name in ("rsub", "min_f32", "max_f32") or (segment == "buffer" and name == "pk_add_bf16"):
            continue
        suffix = "_x2" if bits == 64 and name in INTEGER else ""
        data = tuple_of(10, bits // 32)
        for returns in (False, True):
            ret = f"{tuple_of(20, bits // 32)}, " if returns else ""
            sc0 = " sc0" if returns else ""
            setup = ""
            if segment == "global":
                text = f"global_atomic_{name}{suffix} {ret}v8, {data}, s[98:99]{sc0}"
            elif segment == "flat":
                setup = "v_mov_b32 v9, 0\n v_lshl_add_u64 v[2:3], v[8:9], 0, s[98:99]"
                text = f"flat_atomic_{name}{suffix} {ret}v[2:3], {data}{sc0}"
            else:
                setup = V_SHARP
                if returns:  # the buffer form returns into its data
                    setup += "\n v_mov_b32 v20, v10\n v_mov_b32 v21, v11"
                    data = tuple_of(20, bits // 32)
                text = f"buffer_atomic_{name}{suffix} {data}, v8, s[40:43], 0 offen{sc0}"
            memory = case.memory.copy()
            piece = lanes.add(f"{setup}\n {text}", registers(case), ["v20", "v21"], memory=memory)
            done.append((f"{text}", case, piece, memory, returns))
    lanes.run()
    for what, case, piece, memory, returns in done:
        case.check(piece, memory, returns, what)


@pytest.mark.parametrize("segment", ["global", "flat", "buffer"])
def test_compare_and_swap(lanes: Lanes, segment: str) -> None:
    done = []
    for bits in (32, 64):
        case = Case("cmpswap", bits, lambda o, d, c: d if o == c else o, f"u{bits}", compare=True)
        suffix = "_x2" if bits == 64 else ""
        data, n = tuple_of(10, bits // 16), bits // 32
        if segment == "global":
            text = f"global_atomic_cmpswap{suffix} {tuple_of(20, n)}, v8, {data}, s[98:99] sc0"
        elif segment == "flat":
            text = "v_mov_b32 v9, 0\n v_lshl_add_u64 v[2:3], v[8:9], 0, s[98:99]\n"
            text += f" flat_atomic_cmpswap{suffix} {tuple_of(20, n)}, v[2:3], {data} sc0"
        else:
            text = V_SHARP + "".join(f"\n v_mov_b32 v{20 + k}, v{10 + k}" for k in range(2 * n))
            text += f"\n buffer_atomic_cmpswap{suffix} {tuple_of(20, 2 * n)}, v8, s[40:43], 0 offen sc0"
        memory = case.memory.copy()
        piece = lanes.add(text, registers(case), ["v20", "v21"], memory=memory)
        done.append((case, piece, memory))
    lanes.run()
    for case, piece, memory in done:
        case.check(piece, memory, True, f"cmpswap {case.bits}")
        assert not np.array_equal(memory, case.memory)


def lds_frame(text: str, case: Case) -> tuple[str, list[str]]:
    """Puts the memory into LDS before, and reads it back into v32.. after."""
    count = SLOTS * case.bits // 32
    before = "v_lshlrev_b32 v30, 2, v0\n v_cmp_gt_u32 vcc, {0}, v0\n s_and_saveexec_b64 s[30:31], vcc\n"
    before = (
        before.format(count)
        + " ds_write_b32 v30, v31 offset:64\n s_mov_b64 exec, -1\n s_waitcnt lgkmcnt(0)\n"
    )
    after = "\n s_waitcnt lgkmcnt(0)\n s_mov_b64 exec, s[30:31]\n" + before.split("\n", 1)[1].replace(
        "ds_write_b32 v30, v31 offset:64", "ds_read_b32 v32, v30 offset:64"
    )
    return before + text + after, ["v20", "v21", "v32"]


def test_lds_atomics(lanes: Lanes) -> None:
    done = []
    for name, bits, case in all_cases():
        base = DS_NAMES.get(name, f"{name}_u" if name in INTEGER else name)
        data = tuple_of(10, bits // 32)
        for returns in (False, True):
            if name == "swap" and not returns:
                continue
            stem, kind = base.rsplit("_", 1)
            suffix = str(bits) if name in INTEGER else ""
            op = f"ds_{stem}_rtn_{kind}{suffix}" if returns else f"ds_{base}{suffix}"
            ret = f"{tuple_of(20, bits // 32)}, " if returns else ""
            body, outputs = lds_frame(f"{op} {ret}v8, {data} offset:64", case)
            start = np.zeros(64, np.uint32)
            start[: len(case.memory)] = case.memory
            piece = lanes.add(body, registers(case) | {"v31": start}, outputs, lds=1024)
            done.append((op, case, piece, returns))
    for bits in (32, 64):
        for op, f in (
            ("cmpst_rtn_b", lambda o, d, c: c if o == d else o),
            ("mskor_rtn_b", lambda o, d, c: (o & ~d) | c),
        ):
            case = Case(op, bits, f, f"u{bits}", compare=True)
            if op.startswith("cmpst"):  # data0 is what memory is compared with: exchange the roles
                case = Case(op, bits, lambda o, d, c: d if o == c else o, f"u{bits}", compare=True)
                first, second = tuple_of(10 + bits // 32, bits // 32), tuple_of(10, bits // 32)
            else:
                first, second = tuple_of(10, bits // 32), tuple_of(10 + bits // 32, bits // 32)
            text = f"ds_{op}{bits} {tuple_of(20, bits // 32)}, v8, {first}, {second} offset:64"
            body, outputs = lds_frame(text, case)
            start = np.zeros(64, np.uint32)
            start[: len(case.memory)] = case.memory
            done.append(
                (op, case, lanes.add(body, registers(case) | {"v31": start}, outputs, lds=1024), True)
            )
    lanes.run()
    for op, case, piece, returns in done:
        case.check(piece, np.ascontiguousarray(piece["v32"][: SLOTS * case.bits // 32]), returns, op)


def test_exchange_two_and_wrap(lanes: Lanes) -> None:
    lane = np.arange(64, dtype=np.uint32)
    piece = lanes.add(
        """v_lshlrev_b32 v8, 2, v0
  ds_write2st64_b32 v8, v10, v11 offset0:1 offset1:3
  ds_wrxchg2st64_rtn_b32 v[20:21], v8, v12, v13 offset0:3 offset1:1
  ds_read2st64_b32 v[22:23], v8 offset0:1 offset1:3
  ds_write_b32 v8, v0
  v_mov_b32 v14, 40
  v_mov_b32 v15, 7
  ds_wrap_rtn_b32 v24, v8, v14, v15
  ds_read_b32 v25, v8""",
        {"v10": lane + 100, "v11": lane + 200, "v12": lane + 300, "v13": lane + 400},
        [f"v{n}" for n in range(20, 26)],
        lds=4096,
    )
    lanes.run()
    assert np.array_equal(piece["v20"], lane + 200)
    assert np.array_equal(piece["v21"], lane + 100)
    assert np.array_equal(piece["v22"], lane + 400)
    assert np.array_equal(piece["v23"], lane + 300)
    assert np.array_equal(piece["v24"], lane)
    assert np.array_equal(piece["v25"], np.where(lane >= 40, lane - 40, lane + 7))


def test_flat_atomic_reaches_lds(lanes: Lanes) -> None:
    piece = lanes.add(
        """v_mov_b32 v8, 32
  v_mov_b32 v9, 5
  ds_write_b32 v8, v9
  s_mov_b64 s[20:21], src_shared_base
  v_mov_b32 v2, 32
  v_mov_b32 v3, s21
  v_mov_b32 v10, 2
  s_waitcnt lgkmcnt(0)
  flat_atomic_add v[2:3], v10
  s_waitcnt vmcnt(0) lgkmcnt(0)
  ds_read_b32 v11, v8""",
        {},
        ["v11"],
        lds=256,
    )
    lanes.run()
    assert (piece["v11"] == 5 + 2 * 64).all()


def test_misaligned_atomic_is_a_fault(lanes: Lanes) -> None:
    lanes.add("v_mov_b32 v8, 2\n v_mov_b32 v10, 1\n global_atomic_add v8, v10, s[98:99]", {}, [])
    with pytest.raises(Failed, match=r"misaligned|multiple of"):
        lanes.run()
