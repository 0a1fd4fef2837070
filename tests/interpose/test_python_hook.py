"""What the interposer brings into a Python program that imports Triton; a package of ours stands for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kerncap.core.device.devices import Device, full_environment
from kerncap.core.native import INTERPOSER_HSA, SIM_RUNTIME, find_native
from kerncap.core.program.control import Session

pytestmark = pytest.mark.skipif(
    any(find_native(name) is None for name in (INTERPOSER_HSA, SIM_RUNTIME)),
    reason="the native part is not built (KERNCAP_NATIVE_DIR, or pip install .)",
)
SEEN = """
import sys
before = list(sys.path), sorted(sys.modules)
try:
    import triton
except ImportError as error:
    print(type(error).__name__, error)
else:
    triton.compiler.compiler.use()
print(sys.path == before[0], "sitecustomize" in sys.modules, sys.flags)
"""


def run(program: str, cwd: Path, session: Path | None) -> tuple[int, str, str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(cwd)}
    if session is not None:
        environment = full_environment(Device("sim", "gfx942"), session, environment)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=cwd, env=environment, text=True, timeout=60, capture_output=True
    )
    return done.returncode, done.stdout, done.stderr


def package(where: Path, compiler: str) -> None:
    (where / "triton" / "compiler").mkdir(parents=True)
    (where / "triton" / "__init__.py").write_text("__version__ = '99.0'\nimport triton.compiler.compiler\n")
    (where / "triton" / "compiler" / "__init__.py").write_text("")
    (where / "triton" / "compiler" / "compiler.py").write_text(compiler)


def problems(session: Session) -> str:
    return "".join(path.read_text() for path in (session.directory / "triton").glob("problem-*.txt"))


def test_without_triton_a_program_is_as_it_was(tmp_path: Path) -> None:
    with Session.create() as session:
        watched = run(SEEN, tmp_path, session.directory)
        assert watched == run(SEEN, tmp_path, None)
        assert watched[0] == 0
        assert problems(session) == ""


@pytest.mark.parametrize(
    ("compiler", "said"),
    [
        ("def use():\n    print('used')\n", "has no attribute 'CompiledKernel'"),
        (
            "class CompiledKernel:\n    def __init__(self, other, things=1):\n        print(things)\n\n\n"
            "def use():\n    CompiledKernel(1, things=2)\n",
            "has no attribute 'kernel'",
        ),
    ],
)
def test_another_triton_than_is_known_goes_on_and_the_reason_is_kept(
    compiler: str, said: str, tmp_path: Path
) -> None:
    package(tmp_path, compiler)
    with Session.create() as session:
        watched = run(SEEN, tmp_path, session.directory)
        assert watched == run(SEEN, tmp_path, None)
        assert watched[0] == 0
        assert said in problems(session)


def test_a_session_that_is_gone_is_no_matter_of_the_programs(tmp_path: Path) -> None:
    package(tmp_path, "def use():\n    print('used')\n")
    assert run(SEEN, tmp_path, tmp_path / "gone") == run(SEEN, tmp_path, None)
