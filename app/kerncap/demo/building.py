"""Putting the demonstration program's tree somewhere and building it, with its compile_commands.json."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from kerncap.core.build.toolchain import rocm_clang, run_tool, zig
from kerncap.core.device.devices import DEFAULT_SIM, Device, resolve_device, rocm_gpus
from kerncap.core.errors import DeviceError, UsageError, unwritable
from kerncap.core.files import write_json
from kerncap.core.native import SIM_HIP, native_path

TREE = Path(__file__).resolve().parent / "tree"
MARKER = ".kerncap-demo"
DEFAULT_TOKENS = 18
_LIMIT_S = 300.0
_HOST_OPTIONS = ("-std=c++17", "-O2", "-Wall")
# Debug information tells lines for faults and types of buffers for comparisons; the code is the same without.
_DEVICE_OPTIONS = ("-O3", "-g")


@dataclass(frozen=True)
class BuiltDemo:
    """A built demonstration program: the command that runs it, its source, and the environment it needs.

    `env` is what a run outside kerncap needs to find the runtime; `kerncap profile` and `extract` set that
    themselves.
    """

    command: list[str]
    source_dir: Path
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Entry:
    """One step of the build that belongs into compile_commands.json."""

    file: Path
    arguments: list[str]
    output: Path


def _host_compiler() -> list[str]:
    """$CXX, else g++ or clang++, else zig's clang++."""
    named = os.environ.get("CXX")
    if named:
        return named.split()
    for name in ("g++", "clang++"):
        if shutil.which(name):
            return [name]
    found = zig()
    if found:
        return [found, "c++"]
    raise DeviceError(
        "There is no C++ compiler for the demonstration program: install g++ or clang++, name one in CXX, or "
        "`pip install ziglang`."
    )


def _rocm_root() -> Path:
    for root in (os.environ.get("ROCM_PATH"), os.environ.get("HIP_PATH"), "/opt/rocm"):
        if root and (Path(root) / "include/hip/hip_runtime_api.h").is_file():
            return Path(root)
    raise DeviceError(
        "ROCm's HIP headers are not in ROCM_PATH, HIP_PATH or /opt/rocm: install ROCm's hip-dev package, or "
        "name the folder in ROCM_PATH."
    )


def hip_device(name: str | None) -> str | None:
    """The device for the demonstration program, which is HIP: `name`, but where that is merely the default
    and a GPU of NVIDIA's, the simulated one.
    """
    asked = name or os.environ.get("KERNCAP_DEVICE") or "auto"
    return f"sim:{DEFAULT_SIM}" if asked == "auto" and resolve_device(asked).kind == "cuda" else name


def _arch(device: Device) -> str:
    if device.kind == "cuda":
        raise DeviceError(
            f"The demonstration program is HIP: it cannot run on {device.name}. Leave --device out for the "
            f"simulated GPU; `kerncap doctor --self-test --device {device.name}` goes through the loop there."
        )
    if device.arch:
        return device.arch
    gpus = rocm_gpus() if device.kind == "rocm" else []
    if not gpus:
        raise DeviceError(f"The demonstration program is HIP: it cannot be built for device {device.name}.")
    return gpus[device.index or 0]


def _place(directory: Path) -> None:
    """The tree in `directory`, over an older one of ours but over nothing else."""
    try:
        if directory.exists() and not directory.is_dir():
            raise UsageError(f"{directory} is a file; name a folder to put the demonstration program in.")
        if directory.is_dir() and any(directory.iterdir()) and not (directory / MARKER).exists():
            raise UsageError(
                f"{directory} is not empty; name a new folder to put the demonstration program in."
            )
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MARKER).touch()
        shutil.copytree(TREE, directory, dirs_exist_ok=True)
    except OSError as error:
        raise unwritable(f"{directory}, where the demonstration program goes,", error) from error


def _run(words: Sequence[str], directory: Path) -> None:
    finished = run_tool(words, directory=directory, timeout_s=_LIMIT_S)
    if finished.code:
        raise DeviceError(
            f"The demonstration program does not build: `{' '.join(words)}` in {directory} ended with exit "
            f"code {finished.code}.\n{finished.output.rstrip()}"
        )


def _device_steps(directory: Path, arch: str, rocm: bool) -> tuple[list[_Entry], list[list[str]]]:
    """How each kernel file is compiled, and the links that follow where the compiler does not link."""
    entries, links = [], []
    clang = rocm_clang() if rocm else None
    zig_program = zig()
    if clang is None and zig_program is None:
        raise DeviceError(
            "There is no compiler for AMD GPUs: `pip install ziglang` (it brings clang), or install ROCm."
        )
    for source in sorted((directory / "src/kernels").glob("*.hip")):
        relative = source.relative_to(directory)
        out = Path("build/kernels") / source.stem
        common = ["-x", "hip", "--cuda-device-only", f"--offload-arch={arch}", *_DEVICE_OPTIONS]
        if clang is not None:
            words = [clang, *common, "--no-gpu-bundle-output", "-c", str(relative), "-o", f"{out}.hsaco"]
            entries.append(_Entry(source, words, directory / f"{out}.hsaco"))
            continue
        assert zig_program is not None
        # zig's clang cannot start its linker: it makes an object, which is linked by hand.
        words = [zig_program, "clang", *common, "-nogpulib", "-nogpuinc", "-Icompat"]
        words += ["-S", "-Xclang", "-emit-obj", str(relative), "-o", f"{out}.o"]
        entries.append(_Entry(source, words, directory / f"{out}.o"))
        links.append([zig_program, "ld.lld", "-shared", "--no-undefined", f"{out}.o", "-o", f"{out}.hsaco"])
    return entries, links


def _host_steps(directory: Path, rocm: bool) -> tuple[list[_Entry], list[str]]:
    """How each host file is compiled, and the link of the program."""
    compiler = _host_compiler()
    if rocm:
        root = _rocm_root()
        options = ["-D__HIP_PLATFORM_AMD__", f"-I{root}/include"]
        libraries = [f"-L{root}/lib", "-lamdhip64", f"-Wl,-rpath,{root}/lib"]
    else:
        options = ["-Icompat"]
        # The library needs the HSA runtime in turn, which is only chosen when the program is started.
        libraries = [str(native_path(SIM_HIP)), "-Wl,--allow-shlib-undefined"]
    entries = []
    for source in sorted((directory / "src").glob("*.cpp")):
        relative = source.relative_to(directory)
        out = f"build/{source.stem}.o"
        words = [*compiler, *_HOST_OPTIONS, *options, "-c", str(relative), "-o", out]
        entries.append(_Entry(source, words, directory / out))
    objects = [str(entry.output.relative_to(directory)) for entry in entries]
    return entries, [*compiler, *objects, *libraries, "-o", "build/decode"]


def build(
    directory: str | os.PathLike[str], device: str | Device | None = None, tokens: int = DEFAULT_TOKENS
) -> BuiltDemo:
    """Put the demonstration program's tree into `directory`, and build it for `device` there.

    The build also writes compile_commands.json with the commands that were run. Raises UsageError where the
    folder is in use, DeviceError where a compiler or a runtime is missing, or with the compiler's
    text where it fails.
    """
    chosen = device if isinstance(device, Device) else resolve_device(device)
    where = Path(os.path.abspath(directory))
    fresh = not os.path.lexists(where)
    try:
        return _build(where, chosen, tokens)
    except KeyboardInterrupt:
        if fresh:
            shutil.rmtree(where, ignore_errors=True)
        raise


def _build(where: Path, chosen: Device, tokens: int) -> BuiltDemo:
    arch = _arch(chosen)
    rocm = chosen.kind == "rocm"
    if not rocm:
        headers = native_path(SIM_HIP).parent / "include"
        _place(where)
        shutil.copytree(headers, where / "compat", dirs_exist_ok=True)
    else:
        _place(where)
    (where / "build/kernels").mkdir(parents=True, exist_ok=True)
    device_entries, links = _device_steps(where, arch, rocm)
    host_entries, link = _host_steps(where, rocm)
    entries = [*device_entries, *host_entries]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        list(pool.map(lambda entry: _run(entry.arguments, where), entries))
        list(pool.map(lambda words: _run(words, where), [*links, link]))
    write_json(
        where / "compile_commands.json",
        [
            {
                "directory": str(where),
                "file": str(entry.file),
                "arguments": entry.arguments,
                "output": str(entry.output),
            }
            for entry in entries
        ],
    )
    command = [str(where / "build/decode"), "--tokens", str(tokens)]
    return BuiltDemo(command, where, _environment(chosen))


def _environment(device: Device) -> dict[str, str]:
    """What the dynamic linker needs to find the simulated runtime, without kerncap's own variables."""
    if device.kind != "sim":
        return {}
    hip = native_path(SIM_HIP).parent
    paths = [str(hip.parent / "sim"), os.environ.get("LD_LIBRARY_PATH", ""), str(hip)]
    count = f"x{device.count}" if device.count > 1 else ""
    return {"KERNCAP_SIM": f"{device.arch}{count}", "LD_LIBRARY_PATH": ":".join(filter(None, paths))}
