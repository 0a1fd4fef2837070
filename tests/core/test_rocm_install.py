"""What `doctor` says of a machine's ROCm: made-up machines below a folder, with real libraries that have, or
lack, what the ways into a program need.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kerncap.core.doctor.checks import OK, PROBLEM, Check
from kerncap.core.doctor.doctor import rocm_checks

TOOLS = 'const char* looked_for() { return "HSA_AMD_TOOL_PRIORITY"; }'
REGISTER = 'const char* called() { return "rocprofiler_register_library_api_table"; }'


def library(path: Path, *parts: str) -> None:
    """A shared library whose data has what a runtime's has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".cpp")
    source.write_text("\n".join(parts))
    compiler = os.environ.get("CXX", "g++").split()
    subprocess.run([*compiler, "-shared", "-fPIC", str(source), "-o", str(path)], check=True, timeout=60)
    source.unlink()


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """ROCm 6.4.3 with both ways, linked from /opt/rocm as its packages do, and an older one beside it."""
    new = tmp_path / "opt/rocm-6.4.3"
    library(new / "lib/libhsa-runtime64.so.1.15.60403", TOOLS, REGISTER)
    (new / "lib/libhsa-runtime64.so.1").symlink_to("libhsa-runtime64.so.1.15.60403")
    library(new / "lib/libamdhip64.so.6", "int hip;")
    (new / ".info").mkdir()
    (new / ".info/version").write_text("6.4.3-128\n")
    (tmp_path / "opt/rocm").symlink_to("rocm-6.4.3")
    old = tmp_path / "opt/rocm-5.7.1"
    library(old / "lib/libhsa-runtime64.so.1", TOOLS)
    (old / ".info").mkdir()
    (old / ".info/version").write_text("5.7.1\n")
    return tmp_path


def texts(checks: list[Check], name: str) -> list[str]:
    return [check.detail for check in checks if check.name == name]


def test_versions_and_runtimes_each_once_and_in_order(machine: Path) -> None:
    checks = rocm_checks({}, machine)
    assert [text.split(" in ")[0] for text in texts(checks, "rocm")] == ["ROCm 6.4.3", "ROCm 5.7.1"]
    hsa = [text for text in texts(checks, "runtime") if text.startswith("HSA")]
    assert [text.split(": ")[1] for text in hsa] == [
        str(machine / "opt/rocm/lib/libhsa-runtime64.so.1"),
        str(machine / "opt/rocm-5.7.1/lib/libhsa-runtime64.so.1"),
    ]
    assert all("preloaded tool" in text for text in hsa)
    assert f"HIP: {machine}/opt/rocm/lib/libamdhip64.so.6" in texts(checks, "runtime")


@pytest.mark.parametrize(
    "variable", ["ROCP_TOOL_LIBRARIES", "ROCPROFILER_REGISTER_LIBRARY", "ROCPROFILER_REGISTER_FORCE_LOAD"]
)
def test_beside_a_profiler_the_register_is_used_where_the_runtime_has_it(
    machine: Path, variable: str
) -> None:
    new, old = (
        text for text in texts(rocm_checks({variable: "1"}, machine), "runtime") if text.startswith("HSA")
    )
    assert "rocprofiler-register" in new
    assert variable in new
    assert "preloaded tool" in old


@pytest.mark.parametrize("off", [{"ROCPROFILER_REGISTER_ENABLED": "0"}, {"HSA_TOOLS_DISABLE_REGISTER": "1"}])
def test_a_register_that_is_switched_off(machine: Path, off: dict[str, str]) -> None:
    new = texts(rocm_checks({"ROCP_TOOL_LIBRARIES": "x.so", **off}, machine), "runtime")[-2]
    assert "preloaded tool" in new


def test_a_runtime_that_cannot_be_watched_is_a_problem_with_a_way_out(tmp_path: Path) -> None:
    library(tmp_path / "elsewhere/libhsa-runtime64.so.1", "int nothing;")
    checks = rocm_checks({"LD_LIBRARY_PATH": str(tmp_path / "elsewhere")}, tmp_path)
    [check] = [check for check in checks if check.name == "runtime"]
    assert check.state == PROBLEM
    assert "does not look for preloaded tools" in check.detail
    assert check.fix


@pytest.mark.parametrize("content", [b"", b"not an ELF file"])
def test_a_runtime_that_is_no_library(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "opt/rocm/lib").mkdir(parents=True)
    (tmp_path / "opt/rocm/lib/libhsa-runtime64.so.1").write_bytes(content)
    [check] = [check for check in rocm_checks({}, tmp_path) if check.name == "runtime"]
    assert check.state == PROBLEM


def test_rocm_path_goes_first_and_a_directory_without_version_is_said(machine: Path, tmp_path: Path) -> None:
    own = tmp_path / "my rocm"
    (own / "lib").mkdir(parents=True)
    first = texts(rocm_checks({"ROCM_PATH": str(own)}, machine), "rocm")[0]
    assert str(own) in first
    assert "does not tell" in first


def test_no_rocm_is_no_problem(tmp_path: Path) -> None:
    [check] = rocm_checks({}, tmp_path)
    assert check.state != PROBLEM
    assert "ROCM_PATH" in (check.fix or "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not")
def test_device_files_that_may_not_be_opened(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    for directory in (tmp_path / "dev", tmp_path / "dev/dri"):
        directory.mkdir()
    for name, mode in (("kfd", 0o600), ("dri/renderD128", 0o600), ("dri/renderD129", 0o666)):
        (tmp_path / "dev" / name).touch()
        (tmp_path / "dev" / name).chmod(mode)
    # access() asks for the real user: a child that is nobody looks.
    parents = [parent for parent in tmp_path.parents if not os.stat(parent).st_mode & 0o001]
    for parent in parents:
        parent.chmod(parent.stat().st_mode | 0o001)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            lines = [
                f"{c.state} {c.detail} {c.fix}" for c in rocm_checks({}, tmp_path) if c.name == "permission"
            ]
            os.write(writing, "\n".join(lines).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    kfd, first, second = os.read(reading, 4096).decode().splitlines()
    os.close(reading)
    assert kfd.startswith(PROBLEM)
    assert "usermod -aG root" in kfd
    assert first.startswith(PROBLEM)
    assert second.startswith(OK)
