"""What kerncap declares of HSA against the headers of Debian's libhsa-runtime-dev, which its HIP needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocm.prefix import Prefix

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[1] / "abi/test_hsa_declarations.py"


def test_declarations_agree_with_debians_headers(prefix: Prefix) -> None:
    headers = prefix.root / "usr/include/hsa"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS)],
        env={**os.environ, "KERNCAP_HSA_HEADERS": str(headers)},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout, done.stdout
