"""What this machine has, what it lacks, and how to get it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from kerncap.core import native
from kerncap.core.device import rocm_install
from kerncap.core.device.devices import list_devices, resolve_device
from kerncap.core.doctor.checks import NOTE, OK, PROBLEM, Check, Steps
from kerncap.core.doctor.cuda_doctor import cuda_checks, cuda_self_test
from kerncap.core.errors import DeviceError, KerncapError
from kerncap.core.loop.captures import free_bytes
from kerncap.core.program.control import Session, session_root
from kerncap.core.scratch import scratch
from kerncap.core.units import duration, many, size

SCHEMA = "kerncap-doctor/1"
_ROOM_WANTED = 1_000_000_000


def _python() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Check("python", OK, f"{version} ({sys.executable})")


def _version_of(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return next((line.strip() for line in done.stdout.splitlines() if "version" in line), "")


def _compilers() -> list[Check]:
    found = []
    rocm = Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "bin"
    for name in ("hipcc", "amdclang++"):
        path = shutil.which(name) or (str(rocm / name) if (rocm / name).exists() else None)
        if path:
            found.append(Check("compiler", OK, f"{path} {_version_of([path, '--version'])}".strip()))
    if importlib.util.find_spec("ziglang") is not None:
        version = _version_of([sys.executable, "-m", "ziglang", "clang", "--version"])
        found.append(
            Check("compiler", OK, f"ziglang's clang: {version}" if version else "ziglang is installed")
        )
    if not found:
        fix = "install ROCm, or `pip install 'kerncap[sim]'` for a clang with the AMDGPU target"
        return [Check("compiler", PROBLEM, "no compiler for AMD GPUs: edits cannot be rebuilt", fix)]
    return found


def _natives() -> list[Check]:
    fix = "`pip install .` in kerncap's source tree builds it (needs a C++20 compiler, such as g++ 12)"
    checks = []
    for name in (
        native.INTERPOSER_HSA,
        native.INTERPOSER_CUDA,
        native.REPLAYER,
        native.REPLAYER_CUDA,
        native.SIM_RUNTIME,
        native.SIM_HIP,
    ):
        path = native.find_native(name)
        if path is None:
            checks.append(Check("native", PROBLEM, f"{name} is not in {native.native_dir()}", fix))
        else:
            checks.append(Check("native", OK, str(path)))
    return checks


def _devices() -> list[Check]:
    checks = []
    for found in list_devices():
        checks.append(Check("device", OK if found.usable else NOTE, f"{found.device.name}: {found.detail}"))
    if not any(check.state == OK for check in checks):
        checks.append(Check("device", PROBLEM, "no device can be used", "see the lines above"))
    return checks


def rocm_checks(environment: Mapping[str, str], root: Path = Path("/")) -> list[Check]:
    """What there is of ROCm below `root`: versions, runtimes, the way into programs, who may open GPUs."""
    checks = []
    found = rocm_install.installs(environment, root)
    for install in found:
        version = install.version or "of a version that it does not tell"
        checks.append(Check("rocm", OK, f"ROCm {version} in {install.path}"))
    if not found:
        named = environment.get("ROCM_PATH")
        looked = f"no ROCm in {named} (ROCM_PATH), nor in /opt/rocm" if named else "no ROCm in /opt/rocm"
        checks.append(Check("rocm", NOTE, looked, "where it is elsewhere, name it in ROCM_PATH"))
    runtimes = rocm_install.runtimes(environment, root)
    for path in runtimes["hip"]:
        checks.append(Check("runtime", OK, f"HIP: {path}"))
    for path in runtimes["hsa"]:
        works, how = rocm_install.registration(path, environment)
        fix = None if works else "ROCm 5.7 or later is needed; or use --device sim:gfx942"
        checks.append(Check("runtime", OK if works else PROBLEM, f"HSA: {path}: kerncap loads {how}", fix))
    for node in rocm_install.device_nodes(root):
        if node.may_open:
            checks.append(Check("permission", OK, f"{node.path} may be opened"))
            continue
        fix = f"sudo usermod -aG {node.group} $USER, then log in again"
        checks.append(
            Check("permission", PROBLEM, f"{node.path} may not be opened (group {node.group})", fix)
        )
    return checks


def _chosen(device: str | None) -> Check:
    """The device that commands take here."""
    try:
        return Check("device", OK, f"{resolve_device(device).name} is what commands use")
    except KerncapError as error:
        # The devices that are known follow; they have lines of their own here.
        text = error.message.splitlines()[0].partition(". Known here")[0]
        return Check("device", PROBLEM, text, "name another: --device, KERNCAP_DEVICE")


def _disk() -> Check:
    try:
        here = Path.cwd()
    except OSError as error:
        return Check("disk", PROBLEM, f"the working directory is gone: {error.strerror}", "change to another")
    free = free_bytes(here)
    text = f"{size(free)} free at {here}"
    if free < _ROOM_WANTED:
        return Check("disk", NOTE, text, "captures hold a kernel's memory: name a larger place with -o")
    return Check("disk", OK, text)


def _session() -> Check:
    try:
        with Session.create() as session:
            return Check("session", OK, f"private directories can be made in {session.directory.parent}")
    except KerncapError as error:
        return Check(
            "session", PROBLEM, error.message, f"make {session_root()} writable, or set XDG_RUNTIME_DIR"
        )


def run_checks(device: str | None = None) -> list[Check]:
    """Every check, in a fixed order; none raises. `device`: as the other commands take it."""
    checks: list[Check] = [_python()]
    for group in (_compilers, _natives, _devices):
        checks.extend(group())
    checks.extend(rocm_checks(os.environ))
    checks.extend(cuda_checks())
    checks.extend([_chosen(device), _disk(), _session()])
    return checks


def self_test(device: str | None = None, on_step: Callable[[str], None] | None = None) -> list[Check]:
    """Goes through profile, extract, replay and validate with the demonstration program, in a temporary
    directory; on an NVIDIA GPU with a small CUDA program.
    """
    try:
        chosen = resolve_device(device)
    except KerncapError as error:
        return [Check("self-test", PROBLEM, error.message)]
    if chosen.kind == "cuda":
        return cuda_self_test(chosen, on_step)
    from kerncap.core.extract.extract import extract
    from kerncap.core.judge.validate import validate
    from kerncap.core.program.profile import profile
    from kerncap.core.replay.replay import replay
    from kerncap.demo import build

    steps = Steps(on_step)
    with scratch("self-test") as temporary:
        where = Path(temporary)
        command: list[str] = []
        quiet = os.open(os.devnull, os.O_WRONLY)
        output = where / "isolated"

        def do_build() -> str:
            command.extend(build(where / "demo", device=device).command)
            return "the demonstration program is built"

        def do_profile() -> str:
            report = profile(command, device=device, stdout=quiet, stderr=quiet, timeout=300)
            if report.exit_code or not report.kernels:
                raise DeviceError(
                    f"the program ended with {report.exit_code}; dispatches seen: {report.dispatches}"
                )
            kernels = many(len(report.kernels), "kernel")
            return f"{many(report.dispatches, 'dispatch')}, {kernels}, {report.lost} lost"

        def do_extract() -> str:
            result = extract(
                "mul_mat_vec_q",
                command,
                device=device,
                output=output,
                stdout=quiet,
                stderr=quiet,
                timeout=300,
            )
            return f"{size(result.bytes)}, baseline {result.baseline.get('verdict')}"

        def do_replay() -> str:
            result = replay(output, iterations=5).to_json()
            return f"median {duration(result['median_ns'])} ({result['timer']})"

        def do_validate() -> str:
            verdict = validate(output).to_json()["verdict"]
            if verdict != "IDENTICAL":
                raise DeviceError(f"the captured kernel's own replay is {verdict}")
            return str(verdict)

        try:
            steps.take(
                ("build", do_build),
                ("profile", do_profile),
                ("extract", do_extract),
                ("replay", do_replay),
                ("validate", do_validate),
            )
        finally:
            os.close(quiet)
    return steps.checks


def cost_table(arch: str) -> str:
    """The simulator's cost table as text.

    It is asked for in a process of its own: the simulated runtime reads its environment once, and starts
    threads. Raises DeviceError where the simulator is not built or does not know `arch`.
    """
    path = native.native_path(native.SIM_RUNTIME)
    environment = {**os.environ, "KERNCAP_SIM": arch}
    command = [sys.executable, "-c", _ASK_COSTS, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    except (OSError, subprocess.SubprocessError) as error:
        raise DeviceError(f"{path} does not tell its cost table: {error}") from None
    if done.returncode != 0 or not done.stdout:
        reason = (done.stderr.strip().splitlines() or ["no simulated GPU"])[-1]
        raise DeviceError(f"{path} does not tell the cost table of {arch}: {reason}")
    return done.stdout


# The simulator describes one of its agents: kerncap_sim_cost_table(hsa_agent_t.handle), null for a CPU.
_ASK_COSTS = """
import ctypes, sys
hsa = ctypes.CDLL(sys.argv[1])
found = []
Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p)
hsa.kerncap_sim_cost_table.restype = ctypes.c_char_p
hsa.kerncap_sim_cost_table.argtypes = [ctypes.c_uint64]
if hsa.hsa_init() != 0:
    sys.exit("hsa_init failed")
hsa.hsa_iterate_agents(Callback(lambda agent, data: found.append(agent) or 0), None)
texts = [text for agent in found if (text := hsa.kerncap_sim_cost_table(agent))]
if texts:
    sys.stdout.write(texts[0].decode())
    sys.stdout.flush()
hsa.hsa_shut_down()
"""
