"""Makes kernels.inc, the code objects of the simulator's bench: kernels.s and two files of the kernel corpus.

    python native/sim/device/bench/build.py        (needs the ziglang wheel)

The result is checked in, so that the bench measures the same instructions everywhere.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parents[3] / "tests" / "kernels"
ZIG = [sys.executable, "-m", "ziglang"]


def run(*command: str) -> None:
    subprocess.run([*ZIG, *command], check=True, timeout=300)


def code_object(source: Path, folder: Path) -> bytes:
    assembly = source
    if source.suffix == ".hip":
        assembly = folder / f"{source.stem}.s"
        run(
            "clang",
            "-x",
            "hip",
            "--cuda-device-only",
            "--offload-arch=gfx942",
            "-nogpulib",
            "-nogpuinc",
            "-O3",
            "-S",
            str(source),
            "-o",
            str(assembly),
        )
    compiled, linked = folder / f"{source.stem}.o", folder / f"{source.stem}.hsaco"
    run("clang", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", "-c", str(assembly), "-o", str(compiled))
    run("ld.lld", "-shared", "--strip-debug", str(compiled), "-o", str(linked))
    return linked.read_bytes()


def main() -> None:
    out = ["// Made by build.py; not edited by hand."]
    with tempfile.TemporaryDirectory() as folder:
        for name, source in (
            ("kLoops", HERE / "kernels.s"),
            ("kGemm", CORPUS / "gemm_lds.hip"),
            ("kVectorAdd", CORPUS / "vector_add.hip"),
        ):
            data = code_object(source, Path(folder))
            out.append(f"constexpr unsigned char {name}[] = {{")
            out += ["    " + "".join(f"{b}," for b in data[n : n + 28]) for n in range(0, len(data), 28)]
            out.append("};")
    (HERE / "kernels.inc").write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
