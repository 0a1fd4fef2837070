"""The interposer's parts under AddressSanitizer and UBSan: names, captures, memory images, statistics."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from watching import ROOT


@pytest.fixture(scope="module")
def unit_tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cmake") is None:
        pytest.skip("no cmake on the path")
    build = tmp_path_factory.mktemp("units")
    configure = ["cmake", "-S", str(ROOT / "native"), "-B", str(build), "-DCMAKE_BUILD_TYPE=RelWithDebInfo"]
    options = ["-DKERNCAP_SANITIZE=ON", "-DKERNCAP_NATIVE_TESTS=ON"]
    target = ["cmake", "--build", str(build), "--target", "kerncap_interpose_tests", "--parallel", "2"]
    for command in ([*configure, *options], target):
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return build / "interpose/hsa/kerncap_interpose_tests"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_parts_under_sanitizers(unit_tests: Path) -> None:
    environment = {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "ASAN_OPTIONS": "detect_leaks=1"}
    done = subprocess.run([str(unit_tests)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed checks" in done.stdout
