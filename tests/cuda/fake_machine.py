"""A GPU that is not there: a fake driver, "cubins" that run on the host, and a program that uses them."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"
_ENTRY = 0x10  # STO_CUDA_ENTRY
KERNELS = {"saxpy", "of_table", "nothing", "nothing_else", "lingers", "tuned", "triton_poi_tuned"}


def mark_kernels(path: Path, kernels: set[str]) -> None:
    """Makes an ELF file say that it is a cubin with those kernels."""
    data = bytearray(path.read_bytes())
    table, size, count = (struct.unpack_from(f, data, o)[0] for f, o in (("<Q", 40), ("<H", 58), ("<H", 60)))
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind != 2:
            continue
        names = sections[link][4]
        for at in range(offset, offset + length, 24):
            name_at = names + struct.unpack_from("<I", data, at)[0]
            if data[name_at : data.index(0, name_at)].decode() in kernels:
                data[at + 5] |= _ENTRY
    # Of a cubin: ELFOSABI_CUDA and its version, EM_CUDA, sm_90 in the flags.
    data[7:9] = bytes([0x33, 7])
    struct.pack_into("<H", data, 18, 190)
    struct.pack_into("<I", data, 48, 90)
    path.write_bytes(data)


@dataclass(frozen=True)
class FakeGpu:
    folder: Path
    environment: dict[str, str]

    def cubin(self, variant: int = 0) -> Path:
        """With saxpy as 0 the program has it, 1 the same in another order, 2 wrong, 3 storing outside,
        4 faulting, 5 without an end.
        """
        return self.folder / f"kernels{variant}.cubin"

    def command(self, case: str, times: int, variant: int = 0) -> list[str | Path]:
        return [self.folder / "program", self.cubin(variant), case, str(times)]

    def launches(self, case: str, times: int, *more: object) -> list[str | Path]:
        """A program that launches much."""
        return [self.folder / "launches", self.cubin(), case, str(times), *map(str, more)]

    @property
    def unhookable(self) -> dict[str, str]:
        """The environment with a driver whose functions cannot be hooked."""
        driver = self.folder / "jumps/libcuda.so.1"
        return {"LD_LIBRARY_PATH": str(driver.parent), "KERNCAP_CUPTI": str(driver)}

    def graphs(self, case: str, times: int, variant: int = 0) -> list[str | Path]:
        """A program whose kernels run within graphs."""
        return [self.folder / "graphs", self.cubin(variant), self.cubin(1), case, str(times)]


def build(folder: Path, compiler: str) -> FakeGpu:
    """Compiles all of it into `folder`; in `jumps`, a driver whose functions begin with one."""
    source = HERE / "fake_gpu"
    shared = [compiler, "-std=c++20", "-Wall", "-Wextra", f"-I{NATIVE}", "-fPIC", "-shared", "-pthread"]
    driver = folder / "libcuda.so.1"
    parts = [str(source / name) for name in ("driver.cpp", "graphs.cpp")]
    as_driver = [*shared, "-O1", *parts, "-Wl,-soname,libcuda.so.1", "-ldl", "-o"]
    jobs = [[*as_driver, str(driver)]]
    (folder / "jumps").mkdir()
    jobs.append([*as_driver, str(folder / "jumps/libcuda.so.1"), "-DFAKE_UNHOOKABLE"])
    for variant in range(6):
        cubin = folder / f"kernels{variant}.cubin"
        jobs.append(
            [
                *shared,
                f"-DVARIANT={variant}",
                str(source / "kernels.cpp"),
                "-o",
                str(cubin),
                "-ffp-contract=off",
            ]
        )
    for job in jobs:
        subprocess.run(job, check=True, timeout=120)
    programs = {"program": "program.cpp", "graphs": "graph_program.cpp", "launches": "launch_program.cpp"}
    for program, part in programs.items():
        words = [compiler, "-std=c++20", "-pthread", f"-I{NATIVE}", str(source / part), str(driver)]
        subprocess.run([*words, "-o", str(folder / program)], check=True, timeout=120)
    for variant in range(6):
        mark_kernels(folder / f"kernels{variant}.cubin", KERNELS)
    environment = {"LD_LIBRARY_PATH": str(folder), "KERNCAP_CUPTI": str(driver)}
    return FakeGpu(folder, environment)
