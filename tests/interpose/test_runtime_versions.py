"""API tables of other runtimes: older, newer, with holes, and strange ones.

A runtime that cannot be watched is said to be so, and the program runs as ever.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from watching import HERE, ROOT, plain, watched

from kerncap.core.capture import records
from kerncap.core.capture.reading import read_capture
from kerncap.core.code.layout import CaptureState
from kerncap.core.program.control import CaptureRequest

# How the tables come: to OnLoad, or by rocprofiler-register to rocprofiler_set_api_table.
WAYS = ["HSA_TOOLS_LIB", "ROCPROFILER_REGISTER_LIBRARY"]

# Root, core and AMD majors, and the AMD table's bytes.
VERSIONS = {
    "5.7": "root=1 core=1 amd=1 amd-bytes=456",
    "6.0": "root=2 core=1 amd=1 amd-bytes=552",
    "6.1": "root=3 core=2 amd=2 amd-bytes=560",
    "6.4": "root=3 core=2 amd=2 amd-bytes=592",
    "7": "root=3 core=2 amd=2 amd-bytes=608",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    library = tmp_path_factory.mktemp("tables") / "libtables.so"
    compiler = os.environ.get("CXX", "g++").split()
    options = ["-std=c++20", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{ROOT / 'native'}"]
    source = HERE / "programs/tables.cpp"
    subprocess.run([*compiler, *options, str(source), "-o", str(library)], check=True, timeout=120)
    return str(library)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_watched_and_captured_from(
    tables: str, tmp_path: Path, way: str, version: str
) -> None:
    request = CaptureRequest("add_two", tmp_path / "capture", nth=2, exit_after=False)
    more = {way: tables, "KERNCAP_TEST_TABLES": VERSIONS[version]}
    bare = plain("batches")
    with watched("batches", request=request, **more) as run:
        assert (run.finish(), run.out, run.err) == (bare.returncode, bare.stdout, bare.stderr)
        assert run.status().state == CaptureState.DONE, run.status()
        process = run.only()
        assert process.dispatches == process.timed == 12
        assert process.message == ""
    capture = read_capture(tmp_path / "capture")
    assert any(region.flags & records.RegionFlags.WRITTEN for region in capture.regions)


@pytest.mark.parametrize("way", WAYS)
def test_a_newer_runtime_is_watched_and_said_to_be_newer(tables: str, way: str) -> None:
    with watched("batches", **{way: tables, "KERNCAP_TEST_TABLES": "amd-bytes=640"}) as run:
        assert run.finish() == 7
        assert run.only().timed == 12
        assert "newer than this kerncap" in run.only().message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name",
    [
        "hsa_memory_allocate",
        "hsa_executable_load_program_code_object",
        "hsa_amd_signal_create",
        "hsa_amd_pointer_info",
        "hsa_amd_memory_lock",
        "hsa_amd_memory_lock_to_pool",
        "hsa_amd_svm_attributes_set",
        "hsa_amd_memory_async_copy_on_engine",
        "hsa_amd_vmem_map",
    ],
)
def test_what_a_runtime_may_lack(tables: str, way: str, name: str) -> None:
    with watched("batches", **{way: tables, "KERNCAP_TEST_TABLES": f"lacks={name}"}) as run:
        assert run.finish() == 7, run.err
        assert run.only().timed == 12


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("root=4", "root table has version 4, and this kerncap knows 1 to 3"),
        ("core=0", "core table has version 0"),
        ("core=3", "core table has version 3"),
        ("amd=9", "AMD table has version 9"),
        ("amd-bytes=200", "no hsa_amd_queue_intercept_create"),
        ("core-bytes=24", "no hsa_system_get_info"),
        ("core-bytes=40", "no hsa_queue_create"),
        ("amd-bytes=3", "no hsa_amd_"),
        ("lacks=hsa_amd_queue_intercept_register", "no hsa_amd_queue_intercept_register"),
    ],
)
def test_one_that_cannot_be_watched_is_said_and_the_program_runs(
    tables: str, way: str, change: str, reason: str
) -> None:
    bare = plain("batches")
    with watched("batches", **{way: tables, "KERNCAP_TEST_TABLES": change}) as run:
        assert (run.finish(), run.out) == (bare.returncode, bare.stdout)
        assert "kerncap: not watching this process: " in run.err
        assert reason in run.err
        process = run.only()
        assert process.dispatches == 0
        assert reason in process.message
