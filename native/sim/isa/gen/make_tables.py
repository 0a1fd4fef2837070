"""Makes tables/<arch>.inc, the opcode table of the decoder, with the LLVM assembler as its only source.

Every mnemonic of mnemonics.json is written down with every plausible list of operands; what the
assembler accepts (`clang -cc1as -show-encoding`) tells the encoding, the opcode number and the width
of each operand. Run it again after an LLVM update:

    python native/sim/isa/gen/make_tables.py [--clang "python -m ziglang clang"] [ARCH ...]

A row of the table is `ROW(encoding, opcode, mnemonic, operands)`. Operands are in the order of the
assembler's syntax, each one letter and a width in dwords:

    D vdst (VGPR)      d sdst (SGPR)      b sdst of VOP3B    c the implicit vcc
    0 1 2 sources      G vdst, AGPR       g src0, AGPR       K 32-bit literal
    k simm16           l branch target    h hwreg (simm16)
    A vaddr            V data0            W data1            s saddr or "off"
    B sbase            o soffset or imm   R resource (MUBUF) O soffset (MUBUF)
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARCHES = ["gfx942", "gfx90a"]
# First register of each field: distinct, aligned for the widest tuple.
BASE = {"D": 8, "0": 64, "1": 96, "2": 128, "A": 4, "V": 160, "W": 192, "G": 8, "g": 64}


def group(letter: str, first: int, width: int) -> str:
    return f"{letter}{first}" if width == 1 else f"{letter}[{first}:{first + width - 1}]"


def vector(field: str, width: int) -> str:
    return group("a" if field in "Gg" else "v", BASE[field], width)


def scalar(first: int, width: int) -> str:
    return group("s", first, width)


Candidate = tuple[str, str]  # the line, the operands as recorded


def scalar_forms(name: str) -> Iterator[Candidate]:
    yield name, ""
    for text, slot in (("0x7", "k1"), ("16", "l1")):
        yield f"{name} {text}", slot
    yield f"{name} gpr_idx(SRC0)", "k1"
    for d in (1, 2):
        ds = scalar(8, d)
        yield f"{name} {ds}", f"d{d}"
        yield f"{name} {ds}, 0x1234", f"d{d} k1"
        yield f"{name} {ds}, 16", f"d{d} l1"
        yield f"{name} {ds}, hwreg(HW_REG_MODE)", f"d{d} h1"
        yield f"{name} hwreg(HW_REG_MODE), {ds}", f"h1 d{d}"
        yield f"{name} hwreg(HW_REG_MODE), 0x12345678", "h1 K1"
        yield f"{name} {ds}, 0x7", f"0{d} k1"
        yield f"{name} {ds}, gpr_idx(SRC0)", f"0{d} k1"
        for a in (1, 2):
            yield f"{name} {ds}, {scalar(64, a)}", f"d{d} 0{a}"
            yield f"{name} {scalar(64, d)}, {scalar(80, a)}", f"0{d} 1{a}"
            for b in (1, 2):
                yield f"{name} {ds}, {scalar(64, a)}, {scalar(80, b)}", f"d{d} 0{a} 1{b}"
    for a in (1, 2):
        yield f"{name} {scalar(64, a)}", f"0{a}"
    for d in (1, 2, 4, 8, 16):
        for base in (2, 4):
            yield f"{name} {scalar(16, d)}, {scalar(8, base)}, s3", f"d{d} B{base} o1"
    for base in (2, 4):
        yield f"{name} {scalar(8, base)}, s3", f"B{base} o1"
        yield f"{name} 0x7, {scalar(8, base)}, s3", f"k1 B{base} o1"


def vector_forms(name: str, widths: tuple[int, ...], wide: tuple[int, ...]) -> Iterator[Candidate]:
    yield name, ""
    for d in wide:
        dst = vector("D", d)
        for s0 in widths:
            a = vector("0", s0)
            yield f"{name} {dst}, {a}", f"D{d} 0{s0}"
            yield f"{name} {dst}, {vector('g', s0)}", f"D{d} g{s0}"
            yield f"{name} {vector('G', d)}, {a}", f"G{d} 0{s0}"
            yield f"{name} {vector('G', d)}, {vector('g', s0)}", f"G{d} g{s0}"
            for s1 in widths:
                b = vector("1", s1)
                yield f"{name} {dst}, {a}, {b}", f"D{d} 0{s0} 1{s1}"
                yield f"{name} {dst}, {a}, {b}, 0x12345678", f"D{d} 0{s0} 1{s1} K1"
                yield f"{name} {dst}, {a}, 0x12345678, {b}", f"D{d} 0{s0} K1 1{s1}"
                yield f"{name} {dst}, vcc, {a}, {b}", f"D{d} b2 0{s0} 1{s1}"
                yield f"{name} {dst}, vcc, {a}, {b}, vcc", f"D{d} b2 0{s0} 1{s1} 22"
                yield f"{name} {dst}, {a}, {b}, vcc", f"D{d} 0{s0} 1{s1} 22"
                for s2 in wide:
                    c = vector("2", s2)
                    yield f"{name} {dst}, {a}, {b}, {c}", f"D{d} 0{s0} 1{s1} 2{s2}"
                    yield f"{name} {dst}, vcc, {a}, {b}, {c}", f"D{d} b2 0{s0} 1{s1} 2{s2}"
    for s0 in (1, 2):
        a = vector("0", s0)
        yield f"{name} s8, {a}", f"d1 0{s0}"
        yield f"{name} s8, {a}, s64", f"d1 0{s0} 11"
        yield f"{name} v8, s64, 3", "D1 01 11"
        for s1 in (1, 2):
            yield f"{name} vcc, {a}, {vector('1', s1)}", f"d2 0{s0} 1{s1}"


def memory_forms(name: str) -> Iterator[Candidate]:
    yield name, ""
    widths = (1, 2, 3, 4)
    for a, s in ((2, ""), (2, "off"), (1, "s[20:21]"), (1, "off"), (1, "s20"), (0, "off"), (0, "s20")):
        addr = "off" if a == 0 else vector("A", a)
        tail = f", {s}" if s else ""
        slot = " s1" if s else ""
        yield f"{name} {addr}{tail}", f"A{a}{slot}"
        for d in widths:
            dst = vector("D", d)
            yield f"{name} {dst}, {addr}{tail}", f"D{d} A{a}{slot}"
            yield f"{name} {addr}, {vector('V', d)}{tail}", f"A{a} V{d}{slot}"
            for v in widths:
                yield f"{name} {dst}, {addr}, {vector('V', v)}{tail} sc0", f"D{d} A{a} V{v}{slot} r"
                yield f"{name} {dst}, {addr}, {vector('V', v)}{tail} glc", f"D{d} A{a} V{v}{slot} r"


def ds_forms(name: str) -> Iterator[Candidate]:
    widths = (1, 2, 3, 4)
    for gds in ("", " gds"):
        yield f"{name}{gds}", ""
        yield f"{name} v4{gds}", "A1"
        yield f"{name} v8{gds}", "D1"
        for d in widths:
            dst = vector("D", d)
            yield f"{name} {dst}, v4{gds}", f"D{d} A1"
            yield f"{name} v4, {vector('V', d)}{gds}", f"A1 V{d}"
            yield f"{name} v4, {vector('V', d)}, {vector('W', d)}{gds}", f"A1 V{d} W{d}"
            for v in widths:
                yield f"{name} {dst}, v4, {vector('V', v)}{gds}", f"D{d} A1 V{v}"
                yield f"{name} {dst}, v4, {vector('V', v)}, {vector('W', v)}{gds}", f"D{d} A1 V{v} W{v}"
    yield f"{name} v160 gds", "V1"
    yield f"{name} v160", "V1"


def buffer_forms(name: str) -> Iterator[Candidate]:
    yield name, ""
    for v in (1, 2, 3, 4):
        yield f"{name} {vector('V', v)}, v4, s[8:11], s3 offen", f"V{v} A1 R4 O1"
        yield f"{name} {vector('V', v)}, v4, s[8:11], s3 format:[BUF_DATA_FORMAT_32] offen", f"V{v} A1 R4 O1"
    yield f"{name} v4, s[8:11], s3 offen lds", "A1 R4 O1"
    yield f"{name} v4, s[8:11], s3 offen", "A1 R4 O1"


def forms(name: str) -> Iterator[Candidate]:
    if name.startswith("s_"):
        yield from scalar_forms(name)
    elif name.startswith("v_"):
        if "mfma" in name or "wmma" in name:
            yield from vector_forms(name, (1, 2, 4), (1, 2, 4, 8, 16, 32))
        for suffix in ("", "_e32", "_e64"):
            if "mfma" not in name:
                yield from vector_forms(name + suffix, (1, 2, 4), (1, 2, 4))
    elif name.startswith("ds_"):
        yield from ds_forms(name)
    elif name.startswith(("buffer_", "tbuffer_")):
        yield from buffer_forms(name)
    else:
        yield from memory_forms(name)


def classify(words: list[int]) -> tuple[str, int]:
    """Encoding and opcode of an instruction of gfx9 (CDNA ISA documents, "Microcode formats")."""
    w = words[0]
    top = w >> 26
    if w >> 23 == 0x17D:
        return "SOP1", w >> 8 & 0xFF
    if w >> 23 == 0x17E:
        return "SOPC", w >> 16 & 0x7F
    if w >> 23 == 0x17F:
        return "SOPP", w >> 16 & 0x7F
    if w >> 28 == 0xB:
        return "SOPK", w >> 23 & 0x1F
    if w >> 30 == 2:
        return "SOP2", w >> 23 & 0x7F
    if top == 0x30:
        return "SMEM", w >> 18 & 0xFF
    if top == 0x34:
        return ("VOP3P", w >> 16 & 0x7F) if w >> 23 == 0x1A7 else ("VOP3", w >> 16 & 0x3FF)
    if top == 0x36:
        return "DS", w >> 17 & 0xFF
    if top == 0x37:
        return ("FLAT", "SCRATCH", "GLOBAL", "GLOBAL")[w >> 14 & 3], w >> 18 & 0x7F
    if top == 0x38:
        return "MUBUF", w >> 18 & 0x7F
    if top == 0x3A:
        return "MTBUF", w >> 15 & 0xF
    if w >> 31:
        raise ValueError(f"not a gfx9 encoding: {w:#010x}")
    if w >> 25 == 0x3F:
        return "VOP1", w >> 9 & 0xFF
    if w >> 25 == 0x3E:
        return "VOPC", w >> 17 & 0xFF
    return "VOP2", w >> 25 & 0x3F


def assemble(clang: list[str], arch: str, lines: list[str]) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "sweep.s"
        source.write_text("\n".join(lines) + "\n")
        done = subprocess.run(
            [
                *clang,
                "-cc1as",
                "-triple",
                "amdgcn-amd-amdhsa",
                "-target-cpu",
                arch,
                "-filetype",
                "asm",
                "-show-encoding",
                "-o",
                "-",
                str(source),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    return done.stdout, done.stderr


SHOWN = re.compile(r"\s+(\S+)\s*(.*?)\s*; encoding: \[([^\]]*)\]")


def sweep(clang: list[str], arch: str, mnemonics: list[str]) -> dict[tuple[str, int], tuple[str, str]]:
    candidates = list(itertools.chain.from_iterable(forms(n) for n in mnemonics))
    _, errors = assemble(clang, arch, [line for line, _ in candidates])
    refused = {int(m.group(1)) for m in re.finditer(r"sweep\.s:(\d+):\d+: error", errors)}
    accepted = [c for i, c in enumerate(candidates, 1) if i not in refused]
    shown, errors = assemble(clang, arch, [line for line, _ in accepted])
    encodings = [m for m in map(SHOWN.match, shown.splitlines()) if m]
    if len(encodings) != len(accepted):
        sys.exit(f"{arch}: {len(accepted)} accepted lines, {len(encodings)} encodings\n{errors[:2000]}")
    rows: dict[tuple[str, int], tuple[str, str]] = {}
    for (line, slots), match in zip(accepted, encodings, strict=True):
        data = [int(b, 16) if b.startswith("0x") else 0 for b in match.group(3).split(",")]
        words = [int.from_bytes(bytes(data[i : i + 4]), "little") for i in range(0, len(data), 4)]
        key = classify(words)
        name = re.sub(r"_(e32|e64|dpp|sdwa)$", "", line.split()[0])
        if key[0] == "VOPC":
            slots = slots.replace("d2", "c2")
        elif key[0] == "VOP2":
            slots = slots.replace("b2", "c2").replace("22", "c2")
            if "_co_" in name and "c2" not in slots:
                slots = slots.replace("D1", "D1 c2")
            elif name == "v_cndmask_b32" and "c2" not in slots:
                slots += " c2"
        elif key[0] == "SOPP" and name.startswith(("s_branch", "s_cbranch")):
            slots = "l1"
        elif key[0] == "SOPK" and name == "s_call_b64":
            slots = "d2 l1"
        if not fits(key[0], name, slots, words):
            continue
        old = rows.get(key)
        if old is None or better(name, slots, old):
            rows[key] = (name, slots)
    return rows


# Which operands an encoding has at all, and where its vector fields lie: (word, shift).
LETTERS = {"SOP1": "d0k", "SOP2": "d01", "SOPC": "01k", "SOPK": "dkhlK", "SOPP": "kl", "SMEM": "dBok"}
FIELDS = {
    "VOP1": {"0": (0, 0), "D": (0, 17)},
    "VOP2": {"0": (0, 0), "1": (0, 9), "D": (0, 17)},
    "VOPC": {"0": (0, 0), "1": (0, 9)},
    "VOP3": {"D": (0, 0), "0": (1, 0), "1": (1, 9), "2": (1, 18)},
    "VOP3P": {"D": (0, 0), "0": (1, 0), "1": (1, 9), "2": (1, 18)},
    "DS": {"A": (1, 0), "V": (1, 8), "W": (1, 16), "D": (1, 24)},
    "FLAT": {"A": (1, 0), "V": (1, 8), "D": (1, 24)},
    "MUBUF": {"A": (1, 0), "V": (1, 8)},
}
FIELDS["GLOBAL"] = FIELDS["SCRATCH"] = FIELDS["FLAT"]
FIELDS["MTBUF"] = FIELDS["MUBUF"]
SCALAR = {"0": 64, "1": 131, "2": 106}  # s64, the constant 3, vcc


def fits(encoding: str, name: str, slots: str, words: list[int]) -> bool:
    """Two lists of operands can read as the same text; only the one whose registers went into the fields
    that the letters stand for is right."""
    for slot in slots.split():
        letter = slot[0]
        if encoding in LETTERS:
            if letter not in LETTERS[encoding]:
                return False
            if letter == "k" and (encoding == "SOP1" or (encoding == "SOPC" and "set_gpr_idx" not in name)):
                return False
            if letter == "k" and encoding == "SMEM" and not name.startswith("s_atc"):
                return False
            if letter in "kl" and "getreg" in name:
                return False
            if letter == "d" and encoding == "SMEM" and "B" not in slots and "time" not in name:
                return False
            if letter == "0" and words[0] & 0xFF != 64 and "k1" not in slots:
                return False
            if letter == "d" and encoding == "SOP1" and words[0] >> 16 & 0x7F != 8:
                return False
        elif letter in FIELDS[encoding] and slot != "A0":
            word, shift = FIELDS[encoding][letter]
            value = words[word] >> shift & 0xFF
            if value != BASE[letter] and value != SCALAR.get(letter) and not (letter == "1" and value == 64):
                return False
    return True


def better(name: str, slots: str, old: tuple[str, str]) -> bool:
    """Of two spellings of one opcode: the one with a return value is a variant of the other (sc0);
    a VGPR operand says more than the AGPR that the same field may hold; "off" forms repeat."""
    if name != old[0]:
        return False
    agpr, old_agpr = ("G" in slots) + ("g" in slots), ("G" in old[1]) + ("g" in old[1])
    if agpr != old_agpr:
        return agpr < old_agpr
    return " r" in old[1] and " r" not in slots


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clang", default=f"{sys.executable} -m ziglang clang")
    parser.add_argument("arch", nargs="*", default=ARCHES)
    options = parser.parse_args()
    mnemonics = json.loads((HERE / "mnemonics.json").read_text())
    for arch in options.arch:
        rows = sweep(options.clang.split(), arch, mnemonics[arch])
        out = [f"// Made by gen/make_tables.py for {arch}; not edited by hand."]
        for (encoding, opcode), (name, slots) in sorted(rows.items()):
            out.append(f'ROW({encoding}, {opcode}, "{name}", "{slots}")')
        target = HERE.parent / "tables" / f"{arch}.inc"
        target.write_text("\n".join(out) + "\n")
        print(f"{target}: {len(rows)} opcodes")
        missing = sorted(set(mnemonics[arch]) - {n for n, _ in rows.values()})
        print(f"  {len(missing)} names the assembler refuses: {' '.join(missing)}")


if __name__ == "__main__":
    main()
