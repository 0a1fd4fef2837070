"""Choices that an autotuner has from a cache, so that the program times no configuration: Triton's and
torch.compile's, in the shapes that several versions of torch have.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from driving import STANDIN

import kerncap
from kerncap.core.errors import UsageError
from kerncap.core.loop.candidates import candidates, known_candidates
from kerncap.core.triton import triton_record
from kerncap.core.triton.triton_record import TritonRecord

CHOSEN = {"VARIANT": "1"}
pytestmark = pytest.mark.usefixtures("triton_standin")


def extract(kernel: str, out: Path, program: str, *arguments: str) -> tuple[Any, TritonRecord]:
    words = [sys.executable, str(STANDIN / program), *arguments]
    made = kerncap.extract(kernel, words, device="cuda", output=out, stdout=2)
    record = triton_record.read(out / "capture")
    assert record is not None
    return made, record


@pytest.mark.parametrize(
    ("version", "how"),
    [
        ("2.7", "worker"),
        ("2.7", "here"),
        ("2.7", "lazy"),
        ("2.8", "worker"),
        ("2.8", "graph"),
        ("2.9", "table"),
        ("2.14", "worker"),
        ("2.14", "graph"),
        ("2.14", "lazy"),
    ],
)
def test_what_inductors_cache_chose_among_is_known_without_times(
    version: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_STANDIN", version)
    made, record = extract("triton_poi_tuned", tmp_path / "o", "of_cache.py", how)
    assert (made.baseline["verdict"], made.source.variant) == ("IDENTICAL", "kernel_variant.py")
    assert any("had its choice from a cache, among 3 configurations" in text for text in made.warnings)
    found = record.candidates
    assert (record.cached, record.row["tuned"]) == (True, True)
    assert [c.constexprs["VARIANT"] for c in found] == ["0", "1", "2"]
    assert [c.chosen for c in found] == [False, True, False]
    assert {c.times_ms for c in found} == {()}
    assert [c.grid for c in found] == [(2, 1, 1), (1, 1, 1), (2, 1, 1)]


def test_they_are_replayed_all_the_same(tmp_path: Path) -> None:
    extract("triton_poi_tuned", tmp_path / "o", "of_cache.py", "worker")
    result = candidates(tmp_path / "o", device="cuda", iterations=3)
    assert (result.cached, result.to_json()["cached"]) == (True, True)
    assert [row.program_ms for row in result.rows] == [None] * 3
    assert [row.captured for row in result.rows] == [False, True, False]
    assert [row.grid for row in result.rows] == [(2, 1, 1), (1, 1, 1), (2, 1, 1)]
    assert all(row.median_ns for row in result.rows), result.rows


def test_a_list_that_was_not_seen_is_told(tmp_path: Path) -> None:
    made, record = extract("triton_poi_tuned", tmp_path / "o", "of_cache.py", "unseen")
    assert record.cached
    assert any(
        "chosen among are not known: Inductor had the choice in its cache" in n for n in made.source.notes
    )
    with pytest.raises(UsageError, match="had loaded the kernel's module"):
        known_candidates(tmp_path / "o")


def test_what_was_chosen_after_the_cache_is_the_choice(tmp_path: Path) -> None:
    _, record = extract("triton_poi_tuned", tmp_path / "o", "of_cache.py", "combined")
    (chosen,) = (c for c in record.candidates if c.chosen)
    assert chosen.constexprs == {"VARIANT": "2"}
    assert not record.cached
