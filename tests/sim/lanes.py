"""Runs short pieces of assembly on one wave of the simulated GPU: registers in, registers out.

Many pieces share one code object and one simulator process, so that a sweep over hundreds of
instructions takes a second. What the first target gives is what a test looks at; the others must give the
same, with all pieces that their assembler takes.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from device_code import ARCHES, assemble, refused_lines
from simulator import Simulator

LANES = 64
# Registers of the frame around a piece; a piece must leave them alone.
_OUT, _OFFSET, _SPARE = "s[96:97]", "v254", "v253"

_PROLOGUE = f"""
  s_load_dwordx4 s[92:95], s[0:1], 0x0
  s_load_dwordx2 s[98:99], s[0:1], 0x10
  v_lshlrev_b32 {_OFFSET}, 2, v0
  s_waitcnt lgkmcnt(0)
  s_mov_b64 s[96:97], s[94:95]
"""

_DESCRIPTOR = """
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_next_free_vgpr 512
  .amdhsa_next_free_sgpr 100
  .amdhsa_accum_offset 256
  .amdhsa_user_sgpr_count 2
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 24
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_private_segment_fixed_size {private}
  {scratch} {enable}
  .amdhsa_ieee_mode {ieee}
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
"""

# How a kernel asks for private memory: architected flat scratch, or an offset to compute addresses with.
_SCRATCH = {
    "gfx942": ".amdhsa_enable_private_segment",
    "gfx90a": ".amdhsa_system_sgpr_private_segment_wavefront_offset",
}


@dataclass
class Piece:
    body: str
    inputs: dict[str, np.ndarray]  # "v8", "a4": 64 dwords each; "s20": one dword
    outputs: list[str]
    memory: np.ndarray | None = None  # its address is in s[98:99]; compared by the caller after
    lds: int = 0
    private: int = 0
    ieee: bool = True
    result: dict[str, np.ndarray] = field(default_factory=dict)

    def text(self, arch: str) -> str:
        """The body as `arch` spells cache policies: sc0, sc1 and nt were glc, scc and slc."""
        names = {"sc0": "glc", "sc1": "scc", "nt": "slc"} if arch == "gfx90a" else {}
        return re.sub(r"\b(sc0|sc1|nt)\b", lambda m: names.get(m[0], m[0]), self.body)

    def __getitem__(self, register: str) -> np.ndarray:
        return self.result[register]


def _advance(index: int) -> list[str]:
    """Between registers: the 13-bit offsets of global accesses reach 15 of them."""
    return ["  s_add_u32 {0}, {0}, 256", "  s_addc_u32 {1}, {1}, 0"] if index else []


def _text(name: str, piece: Piece, arch: str) -> str:
    lines = [f".text\n.globl {name}\n.p2align 8\n.type {name},@function\n{name}:", _PROLOGUE]
    for index, (register, value) in enumerate(piece.inputs.items()):
        lines += [line.format("s92", "s93") for line in _advance(index)]
        if register[0] == "s":
            lines.append(f"  s_load_dword {register}, s[92:93], 0x0\n  s_waitcnt lgkmcnt(0)")
        else:
            lines.append(f"  global_load_dword {register}, {_OFFSET}, s[92:93]")
        assert np.asarray(value).size in (1, LANES), register
    lines += ["  s_waitcnt vmcnt(0) lgkmcnt(0)", piece.text(arch), "  s_waitcnt vmcnt(0) lgkmcnt(0)"]
    if any(r in ("exec", "vcc", "scc") for r in piece.outputs):
        lines += ["  s_mov_b64 s[90:91], exec", "  s_cselect_b32 s89, 1, 0"]
    lines.append("  s_mov_b64 exec, -1")
    for index, register in enumerate(piece.outputs):
        lines += [line.format("s96", "s97") for line in _advance(index)]
        source = {"exec": "s90", "exec_hi": "s91", "scc": "s89", "vcc": "vcc_lo"}.get(register, register)
        if source[0] in "va" and source[1].isdigit():
            lines.append(f"  global_store_dword {_OFFSET}, {source}, {_OUT}")
        else:
            lines.append(f"  v_mov_b32 {_SPARE}, {source}\n  global_store_dword {_OFFSET}, {_SPARE}, {_OUT}")
    lines.append("  s_endpgm")
    lines.append(f".size {name}, .-{name}")
    lines.append(
        _DESCRIPTOR.format(
            name=name,
            lds=piece.lds,
            private=piece.private,
            scratch=_SCRATCH[arch],
            enable=int(piece.private > 0),
            ieee=int(piece.ieee),
        )
    )
    return "\n".join(lines)


class Lanes:
    """Pieces to run together: add() them, then run()."""

    def __init__(
        self, simulator: Simulator, directory: Path, name: str, arches: tuple[str, ...] = ARCHES
    ) -> None:
        self._simulator, self._directory, self._name, self._arches = simulator, directory, name, arches
        self._pieces: list[Piece] = []

    def add(self, body: str, inputs: dict[str, np.ndarray], outputs: list[str], **more: object) -> Piece:
        """A piece of assembly. Inputs of 64 values of 32 bits go to a VGPR or AGPR, of one to an SGPR."""
        piece = Piece(body, {k: _dwords(v) for k, v in inputs.items()}, outputs, **more)  # type: ignore[arg-type]
        self._pieces.append(piece)
        return piece

    def run(self) -> None:
        first, *others = self._arches
        results = self._run_on(first, self._pieces)
        for arch in others:
            pieces = self._known(arch)
            expected = [r for p, r in zip(self._pieces, results, strict=True) if any(p is q for q in pieces)]
            for piece, got, want in zip(pieces, self._run_on(arch, pieces), expected, strict=True):
                for name, value in want.items():
                    assert np.array_equal(got[name], value), f"{arch}: {name} after\n{piece.body}"
        for piece, result in zip(self._pieces, results, strict=True):
            memory = result.pop("memory")
            if piece.memory is not None:
                piece.memory[...] = memory
            piece.result = result

    def _known(self, arch: str) -> list[Piece]:
        """The pieces that the assembler takes for `arch`."""
        starts, lines = [], 0
        texts = [p.text(arch) + "\n" for p in self._pieces]
        for text in texts:
            starts.append(lines + 1)
            lines += text.count("\n")
        refused = {
            bisect.bisect_right(starts, line) - 1
            for line in refused_lines("".join(texts), self._directory, arch)
        }
        return [piece for n, piece in enumerate(self._pieces) if n not in refused]

    def _run_on(self, arch: str, pieces: list[Piece]) -> list[dict[str, np.ndarray]]:
        """For each piece its outputs, and its memory as "memory"."""
        if not pieces:
            return []
        names = [f"piece{i}" for i in range(len(pieces))]
        text = f'.amdgcn_target "amdgcn-amd-amdhsa--{arch}"\n'
        text += "\n".join(_text(n, p, arch) for n, p in zip(names, pieces, strict=True))
        script = self._simulator.script(assemble(text, f"{self._name}_{arch}", self._directory, arch))
        outs = []
        for name, piece in zip(names, pieces, strict=True):
            data = [np.resize(v, LANES).astype(np.uint32) for v in piece.inputs.values()]
            source = script.buffer(np.concatenate(data) if data else np.zeros(LANES, np.uint32))
            out = script.buffer(np.zeros((max(1, len(piece.outputs)), LANES), np.uint32))
            memory = script.buffer(piece.memory if piece.memory is not None else np.zeros(16, np.uint32))
            script.launch(name, [source, out, memory], (1, 1, 1), (LANES, 1, 1))
            outs.append((out, memory))
        results = script.run([b for pair in outs for b in pair])
        return [
            {**dict(zip(piece.outputs, results[out], strict=False)), "memory": results[memory]}
            for piece, (out, memory) in zip(pieces, outs, strict=True)
        ]


def _dwords(value: np.ndarray) -> np.ndarray:
    array = np.atleast_1d(np.asarray(value))
    if array.dtype.itemsize != 4:
        array = array.astype(np.int64).astype(np.uint32)
    return np.ascontiguousarray(array).view(np.uint32)


def wide(piece: Piece, register: str, dtype: type) -> np.ndarray:
    """The 64-bit values of a register pair whose first register is given."""
    kind, number = re.fullmatch(r"([va])(\d+)", register).groups()  # type: ignore[union-attr]
    low, high = piece[register], piece[f"{kind}{int(number) + 1}"]
    return (low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)).view(dtype)
