"""Drives `kerncap-sim-run`, the simulated GPU without a runtime around it."""

from __future__ import annotations

import functools
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import msgpack
import numpy as np
from elftools.elf.elffile import ELFFile
from memory import Argument, Array, Table, buffers, flatten

DRIVER = "kerncap-sim-run"


def find_driver() -> Path | None:
    """Where the driver is: KERNCAP_SIM_RUN, or beside kerncap's other native files."""
    override = os.environ.get("KERNCAP_SIM_RUN")
    if override:
        return Path(override)
    from kerncap.core.native import find_native

    return find_native(DRIVER)


class Failed(AssertionError):
    """The driver ended with an error: `output` is what it wrote."""

    def __init__(self, output: str, code: int) -> None:
        super().__init__(f"{DRIVER} exited with {code}:\n{output}")
        self.output = output


@functools.cache
def hidden_arguments(code_object: Path) -> dict[str, int | None]:
    """Kernel name -> where its hidden arguments start, from the code object's metadata."""
    with code_object.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            if section.name == ".note":
                for note in section.iter_notes():
                    if note["n_name"] == "AMDGPU" and note["n_type"] == 32:
                        desc = note["n_descdata"]
                        return _hidden(msgpack.unpackb(desc if isinstance(desc, bytes) else note["n_desc"]))
    return {}


def _hidden(metadata: dict) -> dict[str, int | None]:
    found = {}
    for kernel in metadata["amdhsa.kernels"]:
        offsets = [a[".offset"] for a in kernel.get(".args", []) if a[".value_kind"].startswith("hidden_")]
        found[kernel[".name"]] = min(offsets, default=None)
    return found


@dataclass
class Script:
    """A run of the driver: buffers, launches, and what is read back after the last launch."""

    simulator: Simulator
    code_object: Path
    lines: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)  # lines before the code object is loaded
    _buffers: list[Array | Table] = field(default_factory=list)

    def buffer(self, item: Array | Table) -> int:
        """Memory of the GPU with the content of `item`; a handle."""
        for index, known in enumerate(self._buffers):
            if known is item:
                return index
        handle = len(self._buffers)
        self._buffers.append(item)
        data = np.ascontiguousarray(item.data if isinstance(item, Table) else item)
        path = self.simulator.directory / f"in{handle}"
        path.write_bytes(data.tobytes())
        self.lines.append(f"alloc b{handle} {max(data.nbytes, 1)} @{path}")
        return handle

    def add_buffers(self, arguments: list[Argument]) -> None:
        for item in buffers(arguments):
            self.buffer(item)
        for item in buffers(arguments):
            if isinstance(item, Table):
                for offset, target in item.pointers.items():
                    self.lines.append(f"pointer b{self.buffer(item)} {offset} b{self.buffer(target)}")

    def variable(self, name: str, value: Array) -> None:
        """Sets a device variable of the code object; it can be read back as `name`."""
        path = self.simulator.directory / f"var_{name}"
        path.write_bytes(value.tobytes())
        self.lines += [f"symbol {name} {name}", f"fill {name} @{path}"]

    def launch(self, kernel: str, arguments: list, grid: tuple, block: tuple, dynamic_lds: int = 0) -> None:
        """`arguments`: as for the host, or handles of buffer()."""
        parts: list[str] = []
        at = 0
        resolved = [a if not isinstance(a, int) else self._buffers[a] for a in arguments]
        for offset, argument in flatten(resolved):
            if offset > at:
                parts.append("hex " + "00" * (offset - at))
            if isinstance(argument, (np.ndarray, Table)):
                parts.append(f"ptr b{self.buffer(argument)}")
                at = offset + 8
            else:
                parts.append("hex " + argument.tobytes().hex())
                at = offset + argument.dtype.itemsize
        self.lines.append("kernarg " + " ".join(parts))
        hidden = hidden_arguments(self.code_object).get(kernel)
        if hidden is not None:
            self.lines.append(f"hidden {hidden}")
        items = [g * b for g, b in zip(grid, block, strict=True)]
        sizes = " ".join(str(n) for n in (*items, *block))
        self.lines.append(f"launch {kernel} {sizes} {dynamic_lds}")

    def run(self, handles: list[int], variables: dict[str, Array] | None = None) -> dict:
        """Runs everything; the content of the buffers and variables afterwards."""
        names = {f"b{h}": h for h in handles} | {n: n for n in variables or {}}
        script = [*self.options, f"load {self.code_object}", *self.lines]
        script += [f"dump {n} {self.simulator.directory / ('out_' + n)}" for n in names]
        self.simulator.execute("\n".join(script) + "\n")
        results = {}
        for name, key in names.items():
            item = self._buffers[key] if isinstance(key, int) else (variables or {})[key]
            like = np.asarray(item.data if isinstance(item, Table) else item)
            raw = (self.simulator.directory / f"out_{name}").read_bytes()[: like.nbytes]
            results[key] = np.frombuffer(raw, like.dtype).reshape(like.shape)
        return results


@dataclass
class Simulator:
    driver: Path
    directory: Path
    arguments: tuple[str, ...] = ()

    def script(self, code_object: Path) -> Script:
        return Script(self, code_object)

    def execute(self, script: str, timeout: float = 120) -> str:
        done = subprocess.run(
            [str(self.driver), *self.arguments], input=script, capture_output=True, text=True, timeout=timeout
        )
        if done.returncode != 0:
            raise Failed(done.stdout + done.stderr, done.returncode)
        return done.stdout
