"""Configurations that are chosen otherwise than by timing all of them in this run, and descriptors that the
host makes of the chosen one, with Triton itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from triton_jit import test_triton
from triton_jit.test_triton import PROGRAMS, Extract, document, edit, kerncap, make

extract = test_triton.extract
pytestmark = test_triton.pytestmark


def tuning(directory: Path) -> Any:
    return json.loads((directory / "capture" / "triton.json").read_text())


@pytest.mark.parametrize("dispatch", ["1", "2"])
def test_a_choice_from_a_file_of_tritons(
    dispatch: str, extract: Extract, triton_python: str, tmp_path: Path
) -> None:
    program = [triton_python, "-W", "ignore", str(PROGRAMS / "choices.py"), "cached"]
    kerncap("profile", "--json", "--", *program, cwd=tmp_path)  # the run that times them and writes the file
    made = extract("cached_kernel", "choices.py", "cached", options=("--dispatch", dispatch))
    assert made["dispatch"] == int(dispatch)  # none before it timed a candidate
    assert "had its choice from a cache, among 3 configurations" in made["warnings"][0]
    row = tuning(tmp_path / "out")
    assert (row["cached"], row["tuned"]) == (True, True)
    assert [c["times_ms"][0] for c in row["candidates"]] == [3.0, 1.0, 2.0]
    found = document("replay", "out", "--candidates", cwd=tmp_path)
    assert (found["cached"], found["tuned"]) == (True, True)
    assert [c["chosen"] for c in found["candidates"]] == [False, True, False]
    assert [c["verdict"] for c in found["candidates"]] == ["IDENTICAL"] * 3
    said = kerncap("replay", "out", "--candidates", cwd=tmp_path).stdout
    assert "had its choice from a cache: the times are of the run that filled it" in said


def test_times_are_of_no_other_tuning(extract: Extract, tmp_path: Path) -> None:
    """One configuration is left for the second length: it was timed for the first one alone."""
    extract("pruned_kernel", "choices.py", "pruned", options=("--dispatch", "3"))
    (row,) = tuning(tmp_path / "out")["candidates"]
    assert row["constexprs"] == {"BLOCK": "128"}
    assert (row["chosen"], row["times_ms"]) == (True, None)


def test_what_one_configuration_alone_names_is_its_own(extract: Extract, tmp_path: Path) -> None:
    made = extract("partly_kernel", "choices.py", "partly")
    assert (
        "BLOCK=64, TWICE=True, num_warps=1, num_ctas=1, num_stages=3, waves_per_eu=2" in made["warnings"][0]
    )
    found = document("replay", "out", "--candidates", cwd=tmp_path)["candidates"]
    assert [c["captured"] for c in found] == [False, True, False]
    assert [c["verdict"] for c in found] == ["FAIL", "IDENTICAL", "FAIL"]  # three times, twice, three times
    assert "TWICE=False" in found[0]["configuration"]
    assert "waves_per_eu=0" in found[0]["configuration"]


def test_a_kernel_in_gluon_has_no_source_and_says_so(extract: Extract) -> None:
    made = extract("gluon_kernel", "choices.py", "gluon")
    assert (made["baseline"]["verdict"], made["source"]["variant"]) == ("IDENTICAL", None)
    assert "it is written in Gluon" in made["source"]["reason"]


def test_descriptors_without_a_map_are_made_for_each_candidate(extract: Extract, tmp_path: Path) -> None:
    made = extract("tiles_kernel", "choices.py", "tiles")
    assert (made["baseline"]["verdict"], made["source"]["rebuilt"]) == ("IDENTICAL", "identical")
    found = document("replay", "out", "--candidates", cwd=tmp_path)["candidates"]
    assert [c["grid"] for c in found] == [[8, 2, 1], [4, 2, 1], [2, 2, 1]]
    assert [(c["verdict"], c["problem"]) for c in found] == [("IDENTICAL", None)] * 3
    edit(tmp_path / "out", ("* factor", "* factor + 1"))
    make("recompile", tmp_path / "out")
    judged = document("validate", "out", "--hsaco", "optimized.hsaco", cwd=tmp_path, code=1)
    assert [(r["dtype"], r["dtype_source"]) for r in judged["regions"]] == [("f16", "Triton's signature")]
