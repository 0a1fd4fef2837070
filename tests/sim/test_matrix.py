"""v_mfma_* and v_smfmac_* against the definition D = A x B + C of the matrix layouts (AMD Matrix Instruction
Calculator; CDNA3 ISA document, chapter 7), on values whose sums are exact. Random full matrices tell every
misplaced element apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from lanes import Lanes, Piece
from numbers_8_16 import bf8, bf16, f16, fp8

WIDTH = {"f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "f64": 64}
DENSE = [
    "f32_32x32x1_2b_f32",
    "f32_16x16x1_4b_f32",
    "f32_4x4x1_16b_f32",
    "f32_32x32x2_f32",
    "f32_16x16x4_f32",
    "f32_32x32x4_xf32",
    "f32_16x16x8_xf32",
    "f32_32x32x4_2b_f16",
    "f32_16x16x4_4b_f16",
    "f32_4x4x4_16b_f16",
    "f32_32x32x8_f16",
    "f32_16x16x16_f16",
    "f32_32x32x4_2b_bf16",
    "f32_16x16x4_4b_bf16",
    "f32_4x4x4_16b_bf16",
    "f32_32x32x8_bf16",
    "f32_16x16x16_bf16",
    "i32_32x32x4_2b_i8",
    "i32_16x16x4_4b_i8",
    "i32_4x4x4_16b_i8",
    "i32_32x32x16_i8",
    "i32_16x16x32_i8",
    "f32_32x32x16_fp8_fp8",
    "f32_32x32x16_fp8_bf8",
    "f32_32x32x16_bf8_fp8",
    "f32_32x32x16_bf8_bf8",
    "f32_16x16x32_fp8_fp8",
    "f32_16x16x32_fp8_bf8",
    "f32_16x16x32_bf8_fp8",
    "f32_16x16x32_bf8_bf8",
    "f64_16x16x4_f64",
    "f64_4x4x4_4b_f64",
]
# As gfx90a names them, and what they are in the names above.
CDNA2 = {
    "f32_32x32x1f32": "f32_32x32x1_2b_f32",
    "f32_16x16x1f32": "f32_16x16x1_4b_f32",
    "f32_4x4x1f32": "f32_4x4x1_16b_f32",
    "f32_32x32x2f32": "f32_32x32x2_f32",
    "f32_16x16x4f32": "f32_16x16x4_f32",
    "f32_32x32x4f16": "f32_32x32x4_2b_f16",
    "f32_16x16x4f16": "f32_16x16x4_4b_f16",
    "f32_4x4x4f16": "f32_4x4x4_16b_f16",
    "f32_32x32x8f16": "f32_32x32x8_f16",
    "f32_16x16x16f16": "f32_16x16x16_f16",
    "f32_32x32x2bf16": "f32_32x32x2_2b_bf16",
    "f32_16x16x2bf16": "f32_16x16x2_4b_bf16",
    "f32_4x4x2bf16": "f32_4x4x2_16b_bf16",
    "f32_32x32x4bf16": "f32_32x32x4_bf16",
    "f32_16x16x8bf16": "f32_16x16x8_bf16",
    "f32_32x32x4bf16_1k": "f32_32x32x4_2b_bf16",
    "f32_16x16x4bf16_1k": "f32_16x16x4_4b_bf16",
    "f32_4x4x4bf16_1k": "f32_4x4x4_16b_bf16",
    "f32_32x32x8bf16_1k": "f32_32x32x8_bf16",
    "f32_16x16x16bf16_1k": "f32_16x16x16_bf16",
    "i32_32x32x4i8": "i32_32x32x4_2b_i8",
    "i32_16x16x4i8": "i32_16x16x4_4b_i8",
    "i32_4x4x4i8": "i32_4x4x4_16b_i8",
    "i32_32x32x8i8": "i32_32x32x8_i8",
    "i32_16x16x16i8": "i32_16x16x16_i8",
    "f64_16x16x4f64": "f64_16x16x4_f64",
    "f64_4x4x4f64": "f64_4x4x4_4b_f64",
}
SPARSE = [
    "f32_16x16x32_f16",
    "f32_32x32x16_f16",
    "f32_16x16x32_bf16",
    "f32_32x32x16_bf16",
    "i32_16x16x64_i8",
    "i32_32x32x32_i8",
    "f32_16x16x64_fp8_fp8",
    "f32_16x16x64_fp8_bf8",
    "f32_16x16x64_bf8_fp8",
    "f32_16x16x64_bf8_bf8",
    "f32_32x32x32_fp8_fp8",
    "f32_32x32x32_fp8_bf8",
    "f32_32x32x32_bf8_fp8",
    "f32_32x32x32_bf8_bf8",
]


@dataclass
class Shape:
    name: str
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    out: str

    @staticmethod
    def parse(name: str) -> Shape:
        out, m, n, k, blocks, kinds = re.fullmatch(
            r"(\w+?)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_(.+)", CDNA2.get(name, name)
        ).groups()  # type: ignore[union-attr]
        both = kinds.split("_")
        return Shape(name, int(m), int(n), int(k), int(blocks or 1), both[0], both[-1], out)


def random_operand(rng: np.random.Generator, kind: str, registers: int) -> np.ndarray:
    """Registers of 64 lanes with values of few significant bits."""
    count = registers * 64 * 32 // WIDTH[kind]
    small = rng.integers(-4, 5, count)
    if kind == "f64":
        halves = (small * 0.5).astype(np.float64).view(np.uint32).reshape(-1, 64, 2)
        return np.ascontiguousarray(np.moveaxis(halves, 2, 1)).reshape(-1, 64)
    if kind in ("f32", "xf32"):
        bits = (small * 0.5).astype(np.float32).view(np.uint32)
        return bits.reshape(registers, 64)
    if kind in ("f16", "bf16"):
        value = (small * 0.5).astype(np.float16 if kind == "f16" else np.float32)
        bits = value.view(np.uint16) if kind == "f16" else (value.view(np.uint32) >> 16).astype(np.uint16)
        pairs = bits.astype(np.uint32).reshape(registers, 64, 2)
        return pairs[..., 0] | pairs[..., 1] << 16
    if kind == "i8":
        bits = rng.integers(0, 256, count).astype(np.uint32)
    elif kind == "fp8":
        bits = (
            rng.integers(5, 10, count) << 3 | rng.integers(0, 8, count) | rng.integers(0, 2, count) << 7
        ).astype(np.uint32)
    else:
        bits = (
            rng.integers(14, 18, count) << 2 | rng.integers(0, 4, count) | rng.integers(0, 2, count) << 7
        ).astype(np.uint32)
    four = bits.reshape(registers, 64, 4)
    return four[..., 0] | four[..., 1] << 8 | four[..., 2] << 16 | four[..., 3] << 24


def element(registers: np.ndarray, kind: str, e: int) -> np.ndarray:
    """Element e of each lane."""
    width = WIDTH[kind]
    if width == 64:
        pair = registers[2 * e].astype(np.uint64) | registers[2 * e + 1].astype(np.uint64) << np.uint64(32)
        return pair.view(np.float64)
    if width == 32:
        return registers[e].view(np.float32).astype(np.float64)
    per = 32 // width
    raw = registers[e // per] >> np.uint32(width * (e % per)) & np.uint32((1 << width) - 1)
    if kind == "i8":
        return raw.astype(np.uint8).view(np.int8).astype(np.float64)
    return {"f16": f16, "bf16": bf16, "fp8": fp8, "bf8": bf8}[kind](raw)


def operand(registers: np.ndarray, kind: str, rows: int, k: int, blocks: int) -> np.ndarray:
    """[block][k][row] of an operand; lane row + rows * (block + blocks * (k // elements)) holds it."""
    elements = rows * k * blocks // 64
    out = np.zeros((blocks, k, rows))
    for e in range(elements):
        values = element(registers, kind, e)
        for lane in range(64):
            group = lane // (rows * blocks)
            out[lane // rows % blocks, group * elements + e, lane % rows] = values[lane]
    return out


def place(shape: Shape, i: int, j: int, block: int) -> tuple[int, int]:
    """(register, or pair for f64; lane) of D[i][j]."""
    height = 1 if shape.out == "f64" else 4
    per_register = 64 // shape.n
    blocks = max(1, 64 // (shape.n * shape.m // height))
    register = block * (shape.m * shape.n // 64) + i // (height * per_register) * height + i % height
    lane = block % blocks * shape.n + i // height % per_register * blocks * shape.n + j
    return register, lane


def gather(shape: Shape, registers: np.ndarray) -> np.ndarray:
    """D as [block][i][j]."""
    out = np.zeros((shape.blocks, shape.m, shape.n))
    if shape.out == "f64":
        values = (
            registers[0::2].astype(np.uint64) | registers[1::2].astype(np.uint64) << np.uint64(32)
        ).view(np.float64)
    else:
        values = registers.view(np.float32 if shape.out == "f32" else np.int32).astype(np.float64)
    for b in range(shape.blocks):
        for i in range(shape.m):
            for j in range(shape.n):
                register, lane = place(shape, i, j, b)
                out[b, i, j] = values[register, lane]
    return out


def tuple_of(letter: str, first: int, count: int) -> str:
    return f"{letter}{first}" if count == 1 else f"{letter}[{first}:{first + count - 1}]"


def registers_of(rows: int, k: int, blocks: int, kind: str) -> int:
    return max(1, rows * k * blocks // 64 * WIDTH[kind] // 32)


def add_dense(
    lanes: Lanes, rng: np.random.Generator, shape: Shape, modifiers: str = "", acc: bool = False
) -> tuple:
    ra = registers_of(shape.m, shape.k, shape.blocks, shape.a)
    rb = registers_of(shape.n, shape.k, shape.blocks, shape.b)
    rd = shape.m * shape.n * shape.blocks // 64 * (2 if shape.out == "f64" else 1)
    a, b = random_operand(rng, shape.a, ra), random_operand(rng, shape.b, rb)
    c = random_operand(rng, {"f32": "f32", "i32": "i8", "f64": "f64"}[shape.out], rd)
    letter = "a" if acc else "v"
    inputs = {f"{letter}{16 + r}": a[r] for r in range(ra)}
    inputs |= {f"v{32 + r}": b[r] for r in range(rb)}
    inputs |= {f"{letter}{64 + r}": c[r] for r in range(rd)}
    body = (
        f"s_nop 15\n v_mfma_{shape.name} {tuple_of(letter, 128, rd)}, {tuple_of(letter, 16, ra)}, "
        f"{tuple_of('v', 32, rb)}, {tuple_of(letter, 64, rd)} {modifiers}\n s_nop 15\n s_nop 15"
    )
    piece = lanes.add(body, inputs, [f"{letter}{128 + r}" for r in range(rd)])
    return piece, a, b, c


def result(piece: Piece) -> np.ndarray:
    return np.array([piece[r] for r in piece.outputs])


def expected(shape: Shape, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """From [block][k][row] operands and gathered C; integers modulo 2^32."""
    product = np.einsum("bki,bkj->bij", a, b) + c
    if shape.out == "i32":
        return product.astype(np.int64).astype(np.uint32).view(np.int32).astype(np.float64)
    return product


def test_layouts(lanes: Lanes) -> None:
    check_layouts(lanes, DENSE)


def test_layouts_of_gfx90a(lanes_gfx90a: Lanes) -> None:
    check_layouts(lanes_gfx90a, list(CDNA2))


def check_layouts(lanes: Lanes, names: list[str]) -> None:
    rng = np.random.default_rng(1)
    cases = [
        (Shape.parse(n), *add_dense(lanes, rng, Shape.parse(n), acc=acc))
        for n in names
        for acc in (False, True)
    ]
    lanes.run()
    for shape, piece, a, b, c in cases:
        want = expected(
            shape,
            operand(a, shape.a, shape.m, shape.k, shape.blocks),
            operand(b, shape.b, shape.n, shape.k, shape.blocks),
            gather(shape, c),
        )
        got = gather(shape, result(piece))
        assert np.array_equal(got, want), shape.name
        assert np.abs(want).max() > 0


BLOCKS = [
    "f32_32x32x4_2b_f16",
    "f32_16x16x4_4b_bf16",
    "f32_4x4x4_16b_f16",
    "i32_4x4x4_16b_i8",
    "f32_16x16x1_4b_f32",
]


def test_a_blocks_broadcast(lanes: Lanes, lanes_gfx90a: Lanes) -> None:
    """CBSZ and ABID: groups of 2^cbsz blocks use the A of the group's block abid."""
    check_a_blocks_broadcast(lanes, BLOCKS)
    check_a_blocks_broadcast(lanes_gfx90a, [old for old, new in CDNA2.items() if new in BLOCKS])


def check_a_blocks_broadcast(lanes: Lanes, names: list[str]) -> None:
    rng = np.random.default_rng(2)
    cases = []
    for name in names:
        shape = Shape.parse(name)
        for cbsz in range(1, shape.blocks.bit_length()):
            for abid in range(1 << cbsz):
                cases.append((shape, cbsz, abid, *add_dense(lanes, rng, shape, f"cbsz:{cbsz} abid:{abid}")))
    lanes.run()
    for shape, cbsz, abid, piece, a, b, c in cases:
        full = operand(a, shape.a, shape.m, shape.k, shape.blocks)
        used = np.stack([full[(block >> cbsz << cbsz) + abid] for block in range(shape.blocks)])
        want = expected(shape, used, operand(b, shape.b, shape.n, shape.k, shape.blocks), gather(shape, c))
        assert np.array_equal(gather(shape, result(piece)), want), (shape.name, cbsz, abid)


def test_b_lanes_broadcast(lanes: Lanes, lanes_gfx90a: Lanes) -> None:
    """BLGP: 1, 2: one half of the lanes; 3: rotated by 16; 4 to 7: one quarter."""
    names = ["f32_32x32x1_2b_f32", "f32_16x16x16_f16", "f32_4x4x4_16b_bf16"]
    check_b_lanes_broadcast(lanes, names)
    check_b_lanes_broadcast(lanes_gfx90a, [old for old, new in CDNA2.items() if new in names])


def check_b_lanes_broadcast(lanes: Lanes, names: list[str]) -> None:
    rng = np.random.default_rng(3)
    lane = np.arange(64)
    maps = {1: lane % 32, 2: lane % 32 + 32, 3: (lane + 16) % 64} | {
        4 + q: lane % 16 + 16 * q for q in range(4)
    }
    cases = []
    for name in names:
        for blgp in maps:
            cases.append((Shape.parse(name), blgp, *add_dense(lanes, rng, Shape.parse(name), f"blgp:{blgp}")))
    lanes.run()
    for shape, blgp, piece, a, b, c in cases:
        want = expected(
            shape,
            operand(a, shape.a, shape.m, shape.k, shape.blocks),
            operand(b[:, maps[blgp]], shape.b, shape.n, shape.k, shape.blocks),
            gather(shape, c),
        )
        assert np.array_equal(gather(shape, result(piece)), want), (shape.name, blgp)


def test_f64_negation_and_constants(lanes: Lanes) -> None:
    rng = np.random.default_rng(4)
    shape = Shape.parse("f64_16x16x4_f64")
    cases = [
        (neg, *add_dense(lanes, rng, shape, f"neg:[{neg & 1},{neg >> 1 & 1},{neg >> 2}]")) for neg in range(8)
    ]
    zero = np.zeros(64, np.uint32)
    inline = {}
    for text, want in (("1.0", 1.0), ("-4.0", -4.0), ("0", 0.0)):
        for name, regs in (("f32_16x16x16_f16", 4), ("f32_4x4x4_16b_f16", 4), ("f64_16x16x4_f64", 8)):
            body = (
                f"v_mfma_{name} {tuple_of('v', 64, regs)}, v[16:17], v[18:19], {text}\n s_nop 15\n s_nop 15"
            )
            inline[name, want] = lanes.add(
                body, {f"v{r}": zero for r in range(16, 20)}, [f"v{64 + r}" for r in range(regs)]
            )
    integer = lanes.add(
        "v_mfma_i32_16x16x32_i8 v[64:67], v[16:17], v[18:19], -7\n s_nop 15\n s_nop 15",
        {f"v{r}": zero for r in range(16, 20)},
        [f"v{64 + r}" for r in range(4)],
    )
    lanes.run()
    for neg, piece, a, b, c in cases:
        sign = [-1 if neg >> bit & 1 else 1 for bit in range(3)]
        want = expected(
            shape,
            sign[0] * operand(a, "f64", 16, 4, 1),
            sign[1] * operand(b, "f64", 16, 4, 1),
            sign[2] * gather(shape, c),
        )
        assert np.array_equal(gather(shape, result(piece)), want), neg
    for (name, want_value), piece in inline.items():
        assert (gather(Shape.parse(name), result(piece)) == want_value).all(), (name, want_value)
    assert (result(integer).view(np.int32) == -7).all()


def test_sparse(lanes: Lanes) -> None:
    """Two of every four elements along k, where the index register says; abid picks its part."""
    rng = np.random.default_rng(5)
    cases = []
    for name in SPARSE:
        shape = Shape.parse(name)
        elements = shape.m * shape.k // 2 // 64
        sets = 32 // (2 * elements)
        for abid in range(sets):
            ra = registers_of(shape.m, shape.k // 2, 1, shape.a)
            rb = registers_of(shape.n, shape.k, 1, shape.b)
            rd = shape.m * shape.n // 64
            a, b = random_operand(rng, shape.a, ra), random_operand(rng, shape.b, rb)
            d = random_operand(rng, "f32" if shape.out == "f32" else "i8", rd)
            index = np.zeros(64, np.uint32)
            for pair in range(16 // 2):
                choice = rng.integers(0, 6, 64)
                low = np.array([0, 0, 0, 1, 1, 2])[choice]
                high = np.array([1, 2, 3, 2, 3, 3])[choice]
                index |= ((low | high << 2) << 4 * pair).astype(np.uint32)
            inputs = {f"v{16 + r}": a[r] for r in range(ra)} | {f"v{32 + r}": b[r] for r in range(rb)}
            inputs |= {f"v{64 + r}": d[r] for r in range(rd)} | {"v48": index}
            body = (
                f"s_nop 15\n v_smfmac_{name} {tuple_of('v', 64, rd)}, {tuple_of('v', 16, ra)}, "
                f"{tuple_of('v', 32, rb)}, v48 abid:{abid}\n s_nop 15\n s_nop 15"
            )
            piece = lanes.add(body, inputs, [f"v{64 + r}" for r in range(rd)])
            cases.append((shape, abid, elements, index, a, b, d, piece))
    lanes.run()
    for shape, abid, elements, index, a, b, d, piece in cases:
        stored = operand(a, shape.a, shape.m, shape.k // 2, 1)[0]
        dense = np.zeros((1, shape.k, shape.m))
        for s in range(shape.k // 2):
            for i in range(shape.m):
                lane, e = i + shape.m * (s // elements), s % elements
                where = int(index[lane]) >> (2 * elements * abid + 2 * e) & 3
                dense[0, s // 2 * 4 + where, i] = stored[s, i]
        want = expected(shape, dense, operand(b, shape.b, shape.n, shape.k, 1), gather(shape, d))
        assert np.array_equal(gather(shape, result(piece)), want), (shape.name, abid)
