"""The programs of these tests are kept between runs, and belong to the checkout that they were built from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rocm import build as build_module
from rocm.build import PROGRAMS, Builder, Built
from rocm.prefix import Prefix

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_program_belongs_to_its_checkout(
    prefix: Prefix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "_CACHE", tmp_path / "built")

    def checkout(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for file in ("streams.hip", "check.h"):
            shutil.copy(PROGRAMS / file, folder)
        return folder

    def built_in(folder: Path) -> Built:
        monkeypatch.setattr(build_module, "PROGRAMS", folder)
        return Builder(prefix).build("streams")

    first, second = checkout("first"), checkout("second")
    before = built_in(first)
    assert built_in(first) == before
    shutil.rmtree(first)
    after = built_in(second)
    assert after.folder != before.folder
    (command,) = json.loads((after.folder / "compile_commands.json").read_text())
    assert Path(command["file"]) == second / "streams.hip"
    assert str(second).encode() in after.path.with_suffix(".o").read_bytes()
