"""The decoder and the disassembler against LLVM's assembler: bytes -> text -> the same bytes.

The bytes are those of compiled kernels, and of a sweep over operands and modifiers of every instruction the
decoder knows.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import device_code
import pytest
from simulator import find_driver

ISA = Path(__file__).resolve().parent.parent.parent / "native" / "sim" / "isa"
SHOWN = re.compile(r"\s+(\S.*?)\s*; encoding: \[([^\]]*)\]")


def disassembler() -> Path:
    driver = find_driver()
    assert driver
    return driver.with_name("kerncap-sim-disasm")


def assemble(lines: list[str], directory: Path, arch: str) -> dict[int, bytes]:
    """Line number -> encoding, of the lines that the assembler takes (branch targets as numbers)."""
    source = directory / "lines.s"
    command = [
        *(sys.executable, "-m", "ziglang", "clang", "-cc1as", "-triple", "amdgcn-amd-amdhsa"),
        *("-target-cpu", arch, "-filetype", "asm", "-show-encoding", "-o", "-", str(source)),
    ]
    source.write_text("\n".join(lines) + "\n")
    errors = subprocess.run(command, capture_output=True, text=True, timeout=300).stderr
    refused = {int(m.group(1)) - 1 for m in re.finditer(r"lines\.s:(\d+):\d+: error", errors)}
    accepted = [n for n in range(len(lines)) if n not in refused]
    source.write_text("\n".join(lines[n] for n in accepted) + "\n")
    shown = subprocess.run(command, capture_output=True, text=True, timeout=300)
    encodings = [m.group(2) for m in map(SHOWN.match, shown.stdout.splitlines()) if m]
    assert len(encodings) == len(accepted), shown.stderr[:2000]
    return {
        n: bytes(int(b, 16) for b in text.split(","))
        for n, text in zip(accepted, encodings, strict=True)
        if "A" not in text and "'" not in text  # no fixups
    }


def disassemble(codes: list[bytes], arch: str) -> list[tuple[int, str]]:
    """(length, text) of each."""
    script = "\n".join(c.hex() for c in codes) + "\n"
    done = subprocess.run(
        [disassembler(), arch], input=script, capture_output=True, text=True, timeout=120, check=True
    )
    out = []
    for line in done.stdout.splitlines():
        length, _, text = line.partition(" ")
        out.append((int(length), text))
    assert len(out) == len(codes)
    return out


def check_round_trip(codes: list[bytes], directory: Path, arch: str) -> None:
    decoded = disassemble(codes, arch)
    again = assemble([text for _, text in decoded], directory, arch)
    wrong = []
    for n, code in enumerate(codes):
        length, text = decoded[n]
        if length != len(code) or again.get(n) != code:
            got = again[n].hex() if n in again else "refused"
            wrong.append(f"{code.hex()} -> {length} bytes, {text!r} -> {got}")
    assert not wrong, f"{len(wrong)} of {len(codes)} differ:\n" + "\n".join(wrong[:40])


@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize("arch", device_code.ARCHES)
def test_compiled_kernels(arch: str, level: str, compiled, code_directory: Path, tmp_path: Path) -> None:
    compiled(arch, level)
    codes: set[bytes] = set()
    for source in device_code.corpus_sources():
        assembly = device_code.compile_device(source, level, code_directory, arch).with_suffix(".s")
        lines = [
            re.sub(r"\.LBB\w+|\w+@\w+(@\w+)?\S*", "4", line.split(";")[0].strip())
            for line in assembly.read_text().splitlines()
            if line.startswith("\t") and not line.strip().startswith((".", ";"))
        ]
        codes |= set(assemble(sorted(set(lines)), tmp_path, arch).values())
    assert len(codes) > 1500
    check_round_trip(sorted(codes), tmp_path, arch)


# ---- A sweep over operands

ROW = re.compile(r'ROW\((\w+), (\d+), "([^"]+)", "([^"]*)"\)')
SCALARS = {
    1: [
        "s0",
        "s101",
        "vcc_lo",
        "vcc_hi",
        "m0",
        "exec_lo",
        "exec_hi",
        "ttmp3",
        "flat_scratch_lo",
        "xnack_mask_hi",
        "src_shared_base",
        "src_private_limit",
        "src_vccz",
        "src_execz",
        "src_scc",
    ],
    2: [
        "s[0:1]",
        "s[100:101]",
        "vcc",
        "exec",
        "ttmp[2:3]",
        "flat_scratch",
        "src_shared_base",
        "src_private_base",
    ],
}
CONSTANTS = ["0", "1", "64", "-1", "-16", "0.5", "-0.5", "1.0", "-4.0", "0.15915494"]
LITERALS = ["0x12345678", "65", "0xffffff00"]


def vector(first: int, width: int, letter: str = "v") -> str:
    return f"{letter}{first}" if width == 1 else f"{letter}[{first}:{first + width - 1}]"


def scalar(first: int, width: int) -> str:
    return f"s{first}" if width == 1 else f"s[{first}:{first + width - 1}]"


def choices(field: str, width: int, valu: bool) -> list[str]:
    """Texts for one operand of a table row; the first is plain."""
    if field in "DGVWg":
        letter = "a" if field in "Gg" else "v"
        plain = [vector(8, width, letter), vector(256 - width - width % 2, width, letter)]
        return plain + ([vector(16, width, "a")] if field in "VD" and not valu else [])
    if field == "A":
        return ["off"] if width == 0 else [vector(4, width), vector(252, width)]
    if field in "db":
        written = [text for text in SCALARS.get(width, []) if not text.startswith("src_")]
        return [scalar(8, width), *written, scalar(96, width)]
    if field == "c":
        return ["vcc"]
    if field in "012":
        if valu:
            vgpr = [vector(64, width), vector(254, width)] + ([vector(32, width, "a")] if width > 1 else [])
            signed = [f"-{vector(64, width)}", f"|{vector(64, width)}|", f"-|{vector(64, width)}|"]
            return vgpr + SCALARS.get(width, [])[:14] + [scalar(4, width)] + CONSTANTS + LITERALS + signed
        return [scalar(64, width), *SCALARS.get(width, []), *CONSTANTS, *LITERALS]
    if field == "k":
        return ["0x7", "0", "0xfffe", "0x8000", "gpr_idx(SRC0,DST)"]
    if field == "K":
        return LITERALS
    if field == "l":
        return ["16", "0xfffc"]
    if field == "h":
        return ["hwreg(HW_REG_MODE)", "hwreg(HW_REG_TRAPSTS, 3, 5)", "hwreg(20, 1, 1)"]
    if field == "s":
        return ["off"] if width == 0 else ["off", "s[20:21]", "s[100:101]", "vcc", "s20"]
    if field == "B":
        return [scalar(8, width), scalar(96, width)]
    if field == "o":
        return ["0x0", "0x10", "-0x8", "0xfffff", "s3", "m0", "s7 offset:0x40"]
    if field == "R":
        return ["s[8:11]", "s[96:99]"]
    if field == "O":
        return ["s3", "0", "m0", "64", "s101"]
    raise AssertionError(f"operand {field!r}")


MODIFIERS = {
    "VOP1": [""],
    "VOP2": [""],
    "VOPC": [""],
    "VOP3": [
        "",
        " clamp",
        " mul:2",
        " div:2 clamp",
        " op_sel:[1,0]",
        " op_sel:[0,1,1]",
        " op_sel:[1,0,1,1]",
        " op_sel:[0,0,0,1]",
        " op_sel:[0,0,1,0]",
    ],
    "VOP3P": [
        "",
        " clamp",
        " op_sel:[1,0]",
        " op_sel:[0,1]",
        " op_sel:[1,0,1]",
        " op_sel_hi:[0,1]",
        " op_sel_hi:[1,0,0]",
        " neg_lo:[1,0]",
        " neg_hi:[0,1,1]",
        " neg_lo:[0,0,1] neg_hi:[1,0,0]",
        " cbsz:1 abid:1",
        " cbsz:2 abid:3",
        " blgp:3",
        " cbsz:4 abid:9 blgp:7",
        " neg:[1,0,1]",
        " abid:1",
    ],
    "DS": ["", " offset:4", " offset:65535", " offset0:3 offset1:255", " offset1:7"],
    "FLAT": ["", " offset:4095", " sc0", " sc1", " nt", " sc0 sc1 nt offset:8"],
    "GLOBAL": ["", " offset:4095", " offset:-4096", " sc0", " sc1", " nt", " sc0 sc1 nt offset:-8"],
    "SCRATCH": ["", " offset:4095", " offset:-4096", " sc0", " nt sc1"],
    "MUBUF": [
        "",
        " offen",
        " idxen",
        " offset:4095",
        " offen offset:8 sc0",
        " sc1",
        " nt",
        " offen lds",
        " sc0 sc1",
        " lds",
    ],
    "MTBUF": [
        "",
        " offen",
        " idxen offset:9",
        " format:[BUF_DATA_FORMAT_32] offen",
        " format:[BUF_DATA_FORMAT_16_16,BUF_NUM_FORMAT_FLOAT]",
        " sc0 nt",
        " format:12 sc1",
    ],
    "SMEM": ["", " glc"],
}
DPP = [
    " row_half_mirror row_mask:0xf bank_mask:0xf",
    " row_bcast:15 row_mask:0xa bank_mask:0xf",
    " wave_shl:1 row_mask:0xf bank_mask:0xf",
    " wave_rol:1 row_mask:0xf bank_mask:0xf",
    " wave_ror:1 row_mask:0xf bank_mask:0xf",
    " quad_perm:[3,1,0,2] row_mask:0xa bank_mask:0x5",
    " row_shl:3 row_mask:0xf bank_mask:0xf bound_ctrl:0",
    " row_ror:15 row_mask:0x0 bank_mask:0xf",
    " wave_shr:1 row_mask:0xf bank_mask:0x0",
    " row_mirror row_mask:0xf bank_mask:0xf",
    " row_bcast:31 row_mask:0xc bank_mask:0xf",
    " row_newbcast:7 row_mask:0xf bank_mask:0xf",
]
SDWA = [
    " dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1",
    " dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:WORD_0",
    " dst_sel:WORD_1 dst_unused:UNUSED_SEXT src0_sel:DWORD src1_sel:BYTE_2",
    " src0_sel:BYTE_0 src1_sel:DWORD",
    " clamp dst_sel:BYTE_3 dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:DWORD",
    " src0_sel:WORD_1",
]


def variants(operands: list[list[str]]) -> Iterator[list[str]]:
    """The plain operands, then each operand's other choices in turn."""
    plain = [o[0] for o in operands]
    yield plain
    for n, options in enumerate(operands):
        for text in options[1:]:
            yield [*plain[:n], text, *plain[n + 1 :]]


def table(arch: str) -> list[tuple[str, str, str, str]]:
    """Encoding, number, name and operands of each instruction that the decoder knows."""
    return ROW.findall((ISA / "tables" / f"{arch}.inc").read_text())


# Cache policies, and what CDNA3 has other instructions for.
CDNA2 = {"sc0": "glc", "sc1": "scc", "nt": "slc"}


def sweep(part: int, arch: str) -> Iterator[str]:
    """Lines of one third of the sweep: every instruction plainly, and a third of its variants."""
    rows = table(arch)
    assert len(rows) > 1400
    short = {name for encoding, _, name, _ in rows if encoding in ("VOP1", "VOP2", "VOPC")}
    for row, (encoding, _, name, slots) in enumerate(rows):
        lines = list(instruction(encoding, name, slots, short))
        if arch == "gfx90a":
            lines = [re.sub(r"\b(sc0|sc1|nt)\b", lambda m: CDNA2[m[0]], line) for line in lines]
            if name.startswith(("global_load", "scratch_load")):
                addresses = ("v4, s[20:21]", "v[4:5], off", "v4, off", "off, s20")
                lines += [f"{name} {address} offset:8 lds" for address in addresses]
        yield from (text for n, text in enumerate(lines) if n < 2 or (n + row) % 3 == part)


def instruction(encoding: str, name: str, slots: str, short: set[str]) -> Iterator[str]:
    """Lines for one row of the decoder's table, the plain one first. Not all of them exist."""
    valu = encoding in ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3P")
    fields = [(s[0], int(s[1:])) for s in slots.split()]
    operands = [choices(f, w, valu) for f, w in fields]
    suffix = "_e32" if encoding in ("VOP1", "VOP2", "VOPC") else "_e64" if name in short else ""
    bare = ("madmk", "madak", "fmamk", "fmaak", "accvgpr")
    stem = name if any(part in name for part in bare) else name + suffix
    if name == "v_writelane_b32":
        yield from (f"{name} v8, {a}, {b}" for a in ("s4", "-3", "vcc_hi") for b in ("s6", "63", "m0"))
    if encoding in ("MUBUF", "MTBUF"):
        yield f"{name} {', '.join(o[0] for o in operands)} offen"
    if name.startswith("ds_gws"):
        yield f"{name} {', '.join(o[0] for o in operands)} gds"
    for chosen in variants(operands):
        yield f"{stem} {', '.join(chosen)}"
    plain = ", ".join(o[0] for o in operands)
    for modifier in MODIFIERS.get(encoding, [""])[1:]:
        yield f"{stem} {plain}{modifier}"
        if encoding in ("MUBUF", "MTBUF"):
            yield f"{name} {plain.replace('v4', 'v[4:5]')}{modifier} idxen offen"
            yield f"{name} {plain.replace('v4', 'off')}{modifier}"
    if encoding == "SCRATCH":
        for address, base in itertools.product(("off", "v4"), ("off", "s20")):
            others = [o[0] for (f, _), o in zip(fields, operands, strict=True) if f not in "As"]
            order = [address, *others, base] if "store" in name else [*others, address, base]
            yield f"{name} {', '.join(order)} offset:16"
    if encoding in ("VOP1", "VOP2", "VOPC"):
        for modifier in DPP:
            yield f"{name}_dpp {plain}{modifier}"
            yield f"{name}_dpp {plain.replace('v64', '-|v64|')}{modifier}"
        for modifier in SDWA:
            yield f"{name}_sdwa {plain}{modifier}"
            for replaced in ("sext(v64)", "-|v64|", "s9"):
                yield f"{name}_sdwa {plain.replace('v64', replaced, 1)}{modifier}"
            if encoding == "VOPC":
                yield f"{name}_sdwa {plain.replace('vcc', 's[20:21]')}{modifier}"


@pytest.mark.parametrize(
    "part", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("arch", device_code.ARCHES)
def test_operand_sweep(arch: str, part: int, tmp_path: Path) -> None:
    lines = list(dict.fromkeys(sweep(part, arch)))
    codes = assemble(lines, tmp_path, arch)
    if part == 0:  # every instruction of the table is among them
        seen = {lines[n].split()[0].removesuffix("_e64").removesuffix("_e32") for n in codes}
        known = {name for _, _, name, _ in table(arch)}
        assert known <= seen, sorted(known - seen)[:20]
    check_round_trip(sorted(set(codes.values())), tmp_path, arch)


@pytest.mark.parametrize("arch", device_code.ARCHES)
def test_garbage_does_not_decode(arch: str) -> None:
    """Bytes of no instruction are refused, and nothing is read past the end."""
    bad = [bytes.fromhex(h) for h in ("ffffffff", "00000000f0", "0000", "000000f4", "0000d1ff")]
    lengths = [length for length, _ in disassemble(bad, arch)]
    assert lengths[0] == 0
    assert lengths[2] == 0
