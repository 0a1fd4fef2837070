"""core/ stands alone: no front end, and no library for drawing one, is imported by it."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parents[2] / "app"
FORBIDDEN = ("textual", "rich", "click", "kerncap.cli", "kerncap.tui")
MODULES = sorted(
    str(path.relative_to(APP).with_suffix("")).replace("/", ".")
    for folder in ("core", "source")
    for path in (APP / "kerncap" / folder).rglob("*.py")
)


def imports(path: Path) -> set[str]:
    """Every module that a file imports, at any depth of nesting."""
    found: set[str] = set()
    package = list(path.relative_to(APP).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module} | {f"{module}.{name.name}" for name in node.names}
    return found


@pytest.mark.parametrize("module", MODULES)
def test_no_import_statement_of_a_front_end(module: str) -> None:
    path = APP / (module.replace(".", "/") + ".py")
    bad = {name for name in imports(path) if any(name == f or name.startswith(f + ".") for f in FORBIDDEN)}
    assert not bad


# From the bottom up, as docs/architecture.md lists them.
PACKAGES = [
    "code",
    "device",
    "capture",
    "triton",
    "program",
    "build",
    "replay",
    "judge",
    "loop",
    "extract",
    "doctor",
]


def test_packages_of_core_import_only_from_those_below_them() -> None:
    modules = [name for name in MODULES if name.startswith("kerncap.core.")]
    assert {name.split(".")[2] for name in modules if name.count(".") > 2} == set(PACKAGES)
    upward = []
    for module in modules:
        name = module.split(".")
        height = PACKAGES.index(name[2]) if name[2] in PACKAGES else -1
        for other in imports(APP / (module.replace(".", "/") + ".py")):
            words = other.split(".")
            if words[:2] == ["kerncap", "core"] and len(words) > 2 and words[2] in PACKAGES[height + 1 :]:
                upward.append(f"{module} -> {other}")
    assert not upward


def test_no_modules_of_core_import_each_other() -> None:
    """Nor in a circle of several; imports within functions count."""
    modules = {name for name in MODULES if not name.endswith("__init__")}
    graph = {name: imports(APP / (name.replace(".", "/") + ".py")) & modules for name in modules}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_nothing_of_a_front_end_is_loaded_with_all_of_core() -> None:
    program = "import importlib, sys\n"
    program += "".join(f"importlib.import_module({name.removesuffix('.__init__')!r})\n" for name in MODULES)
    program += (
        f"print([n for n in sys.modules if any(n == f or n.startswith(f + '.') for f in {FORBIDDEN!r})])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(APP)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_importing_kerncap_loads_no_numpy() -> None:
    program = "import kerncap, sys; print('numpy' in sys.modules, kerncap.profile.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(APP)},
    )
    assert done.stdout.split() == ["False", "kerncap.core.program.profile"], done.stderr
