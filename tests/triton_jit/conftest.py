"""A Python with Triton for these tests: KERNCAP_TEST_TRITON, else a virtual environment that is made
once in the temporary directory (about 1 GB on disk). Where neither can be had, they are skipped and say so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

VERSION = "3.9.0"
_LIMIT_S = 900


def _made() -> Path:
    folder = Path(tempfile.gettempdir()) / f"kerncap-test-triton-{VERSION}-{os.getuid()}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, timeout=_LIMIT_S)
        wanted = [f"triton=={VERSION}", "numpy"]
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *wanted],
            check=True,
            timeout=_LIMIT_S,
            capture_output=True,
        )
        (folder / "complete").touch()
    return python


@pytest.fixture(scope="session")
def triton_python() -> str:
    """The interpreter; the tests that need it are skipped, with the reason, where there is none."""
    named = os.environ.get("KERNCAP_TEST_TRITON")
    if named:
        return named
    try:
        return str(_made())
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", b"") or b""
        pytest.skip(
            f"NO TRITON: triton=={VERSION} cannot be installed, and KERNCAP_TEST_TRITON names no Python: "
            f"{error} {said.decode(errors='replace')[-300:]}"
        )
