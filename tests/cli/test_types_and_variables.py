"""Tolerances by what is declared, and module variables of variants: from the program to the verdict."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from whole import built, document, extracted, kerncap, rebuilt

pytestmark = built
NEARLY = "1.000001f * "


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extracted("pointers", "run_entries", tmp_path_factory.mktemp("pointers"))


@pytest.fixture(scope="module")
def untyped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extracted("untyped", "fill", tmp_path_factory.mktemp("untyped"))


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extracted("variables", "polynomial", tmp_path_factory.mktemp("variables"), "--dispatch", "2")


def test_a_tolerance_applies_to_outputs_behind_pointers_in_memory(entries: Path, tmp_path: Path) -> None:
    variant = rebuilt(entries, "entry.in[i] * entry.scale", f"{NEARLY}entry.in[i] * entry.scale")
    words = (str(entries), "--hsaco", variant)
    exact = document("validate", *words, cwd=tmp_path, code=1)
    assert {region["tolerance_applied"] for region in exact["regions"]} == {None}
    close = document("validate", *words, "--rtol", "1e-5", cwd=tmp_path)
    assert close["verdict"] == "WITHIN_TOLERANCE"
    written = [region for region in close["regions"] if region["tolerated"]]
    assert written
    assert {(r["dtype"], r["dtype_source"]) for r in written} == {("f32", "debug information")}
    assert {region["tolerance_applied"] for region in written} == {True}
    assert close["tolerance"]["rtol"] == 1e-5


def test_a_tolerance_that_does_not_apply_is_said_and_how_to_declare(untyped: Path, tmp_path: Path) -> None:
    variant = rebuilt(untyped, "1.0f +", "1.000001f +")
    words = (str(untyped), "--hsaco", variant, "--atol", "0.1")
    verdict = document("validate", *words, cwd=tmp_path, code=1)
    (region,) = verdict["regions"]
    assert region["tolerance_applied"] is False
    declare = f"--dtype {region['id']}=f32"
    assert declare in verdict["reason"]
    assert any("the tolerance was not applied to region" in w and declare in w for w in verdict["warnings"])
    shown = kerncap("validate", *words, cwd=tmp_path, code=1)
    assert f"the tolerance was not applied to region {region['id']}" in shown.stderr
    assert declare in shown.stdout
    declared = document("validate", *words, *declare.split(), cwd=tmp_path)
    assert (declared["verdict"], declared["warnings"]) == ("WITHIN_TOLERANCE", [])
    same = document("validate", str(untyped), "--rtol", "1e-3", cwd=tmp_path)  # also where nothing differs
    assert any(declare in warning for warning in same["warnings"])
    integers = document("validate", *words, "--dtype", f"{region['id']}=u32", cwd=tmp_path, code=1)
    assert integers["regions"][0]["tolerance_applied"] is False
    assert integers["warnings"] == []  # that they are no floats was said


def test_watch_judges_with_a_tolerance_and_remembers_it(untyped: Path, tmp_path: Path) -> None:
    directory = shutil.copytree(untyped, tmp_path / "edited")
    source = directory / "kernel_variant.cpp"
    source.write_text(source.read_text().replace("1.0f +", "1.000001f +"))
    watch = ("watch", "--once", str(directory))
    (exact,) = document(*watch, cwd=tmp_path, code=1)["iterations"]
    region = exact["validation"]["regions"][0]["id"]
    given = ("--atol", "0.1", "--rtol", "1e-5", "--dtype", f"{region}=f32")
    told = f"judged with atol 0.1, rtol 1e-05, {region}=f32"
    first = kerncap(*watch, *given, cwd=tmp_path)
    assert "WITHIN_TOLERANCE" in first.stdout
    assert f"({told})" in first.stdout
    assert f"results are {told}" in first.stderr
    assert document(*watch, cwd=tmp_path)["iterations"][0]["validation"]["judging"]["atol"] == 0.1
    assert "FAIL" in kerncap(*watch, "--atol", "0", "--rtol", "1e-9", cwd=tmp_path, code=1).stdout
    assert "judged with" not in kerncap(*watch, "--exact", cwd=tmp_path, code=1).stdout
    for wrong in (["--rtol", "-1"], ["--dtype", "99=f32"], ["--dtype", f"{region}=f33"], ["--dtype", "3"]):
        kerncap(*watch, *wrong, cwd=tmp_path, code=2)
    assert not (directory / "judging.json").exists()


def test_smoke_takes_no_tolerance(untyped: Path, tmp_path: Path) -> None:
    for option in (["--atol", "1"], ["--ulp", "1"], ["--bitwise"], ["--dtype", "1=f32"]):
        error = document("validate", str(untyped), "--smoke", *option, cwd=tmp_path, code=2)
        assert "compares nothing" in error["error"]


def test_variables_are_typed_and_compared(variables: Path, tmp_path: Path) -> None:  # R10
    same = rebuilt(variables, "const float v = x[i];", "const float v = x[i] * 1.0f + 0.0f;", "same.hsaco")
    verdict = document("validate", str(variables), "--hsaco", same, cwd=tmp_path)
    assert (verdict["verdict"], verdict["warnings"], verdict["skipped_bytes"]) == ("IDENTICAL", [], 0)
    wrong = rebuilt(variables, "calls += 1", "calls += 2")
    verdict = document("validate", str(variables), "--hsaco", wrong, "--rtol", "1", cwd=tmp_path, code=1)
    (bad,) = [region for region in verdict["regions"] if region["mismatches"]]
    assert (bad["first"]["expected"], bad["first"]["actual"]) == (2, 3)
    assert bad["dtype_source"] == "debug information"
    close = rebuilt(variables, "history[i] += r", f"history[i] += {NEARLY}r")
    words = (str(variables), "--hsaco", close)
    assert document("validate", *words, cwd=tmp_path, code=1)["verdict"] == "FAIL"
    verdict = document("validate", *words, "--rtol", "1e-5", cwd=tmp_path)
    assert (verdict["verdict"], verdict["warnings"]) == ("WITHIN_TOLERANCE", [])


def test_a_variable_of_another_size_is_refused(variables: Path, tmp_path: Path) -> None:
    variant = rebuilt(variables, "coefficients[4];", "coefficients[8];")
    for command in ("validate", "replay"):
        error = document(command, str(variables), "--hsaco", variant, cwd=tmp_path, code=2)
        assert "coefficients has 32 bytes, 16 were captured" in error["error"]


def test_variables_that_are_missing_or_added_are_named(variables: Path, tmp_path: Path) -> None:
    gone = rebuilt(variables, "calls", "times")
    verdict = document("validate", str(variables), "--hsaco", gone, cwd=tmp_path, code=1)
    assert ["calls" in w or "times" in w for w in verdict["warnings"]] == [True, True]
    more = rebuilt(
        variables, "__device__ int calls = 0;", "__device__ int calls = 0; __device__ float one = 1.0f;"
    )
    verdict = document("validate", str(variables), "--hsaco", more, cwd=tmp_path)
    assert verdict["verdict"] == "IDENTICAL"
    (warning,) = verdict["warnings"]
    assert "variable one (4 bytes) is not in the captured code object" in warning
    assert "variable one" in kerncap("replay", str(variables), "--hsaco", more, cwd=tmp_path).stderr
