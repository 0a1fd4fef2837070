"""Records of Triton's compiles joined to captures, by files as the hook and the interposer write them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from kerncap.core.errors import DamagedCaptureError
from kerncap.core.triton import triton_choice, triton_descriptors, triton_record
from kerncap.triton_hook.elf_text import text_digest

CUBIN = (Path(__file__).parent / "cubins" / "kernels.cubin").read_bytes()


def record(code: bytes, **more: Any) -> dict[str, Any]:
    return {
        "schema": "kerncap-triton/1",
        "code_object": hashlib.sha256(code).hexdigest(),
        "text": text_digest(code),
        "triton": "3.9.0",
        "triton_root": "/lib",
        "python": "/bin/python",
        "kernel": "scale",
        "target": ["cuda", 90, 32],
        "environment": {},
        "module": "m",
        "function": "f",
        "parameters": [],
        "signature": {"x": "'*fp16'", "n": "'i32'", "B": "'constexpr'", "y": "'*kbf16'"},
        "constexprs": {"B": "64"},
        "declared": ["B"],
        "attributes": {},
        "options": {"num_warps": "4"},
        "modules": {},
        "unresolved": {},
        **more,
    }


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, Path]:
    """A session and a capture of the code object."""
    session, capture = tmp_path / "session", tmp_path / "capture"
    (session / "triton").mkdir(parents=True)
    (capture / "code").mkdir(parents=True)
    (capture / "code" / "1.cubin").write_bytes(CUBIN)
    return session, capture


def write(session: Path, row: dict[str, Any]) -> None:
    (session / "triton" / f"{row['code_object']}.json").write_text(json.dumps(row))


def kernel_of(code: bytes) -> str:
    return next(n for n in ("scale", "kernel", "add") if n.encode() in code)


def test_by_the_code_object(place: tuple[Path, Path]) -> None:
    session, capture = place
    write(session, record(CUBIN))
    write(session, record(CUBIN + b"another", text=""))
    triton_record.keep(session, capture)
    found = triton_record.read(capture)
    assert found is not None
    assert found.code_object == hashlib.sha256(CUBIN).hexdigest()
    assert triton_descriptors.pointers(found) == ["fp16", None, "bf16"]


def test_by_the_instructions_where_the_driver_hands_out_another_file(place: tuple[Path, Path]) -> None:
    session, capture = place
    write(session, record(CUBIN + b"\0", kernel=kernel_of(CUBIN)))
    triton_record.keep(session, capture)
    assert triton_record.read(capture) is not None


def test_of_another_kernel_nothing_is_kept(place: tuple[Path, Path]) -> None:
    session, capture = place
    write(session, record(b"another"))
    (session / "triton" / "problem-7.txt").write_text("Traceback\nKeyError: 'x'\n")
    triton_record.keep(session, capture)
    assert triton_record.read(capture) is None
    assert triton_record.problem_of(capture) == "KeyError: 'x'"


def test_a_record_that_was_spoilt_is_a_problem_and_no_end(place: tuple[Path, Path]) -> None:
    session, capture = place
    (session / "triton" / f"{hashlib.sha256(CUBIN).hexdigest()}.json").write_text("{")
    triton_record.keep(session, capture)
    assert "JSONDecodeError" in str(triton_record.problem_of(capture))


def test_a_record_that_cannot_be_used_is_a_problem_too(place: tuple[Path, Path]) -> None:
    session, capture = place
    write(session, record(CUBIN, schema=[]))
    triton_record.keep(session, capture)
    assert triton_record.read(capture) is None
    assert "the record of the kernel cannot be used: schema is [], not text" in str(
        triton_record.problem_of(capture)
    )


SPOILT = ['{"module": "m', "[1]", "null", "[" * 100_000, '{"module": "m", "function": "f", "candidates": 7}']


@pytest.mark.parametrize("name", ["tuning-0-0.json", f"{'0' * 64}.json"])
@pytest.mark.parametrize("text", SPOILT)
def test_what_another_process_spoilt_does_not_matter(text: str, name: str, place: tuple[Path, Path]) -> None:
    session, capture = place
    write(session, record(CUBIN + b"\0", kernel=kernel_of(CUBIN)))
    (session / "triton" / name).write_text(text)
    triton_record.keep(session, capture)
    assert triton_record.read(capture) is not None, triton_record.problem_of(capture)
    assert triton_choice.chosen_kernel(session, ["0"]) is None


def test_the_tuning_that_has_the_captured_configuration(place: tuple[Path, Path]) -> None:
    session, capture = place
    write(session, record(CUBIN))
    for number, blocks in ((1, ("32", "64")), (2, ("128", "256"))):
        rows = [
            {"constexprs": {"B": b}, "options": {}, "times_ms": [1.0], "chosen": False, "grid": [1, 1, 1]}
            for b in blocks
        ]
        tuning = {"module": "m", "function": "f", "finished": True, "candidates": rows}
        (session / "triton" / f"tuning-1-{number}.json").write_text(json.dumps(tuning))
    triton_record.keep(session, capture)
    found = triton_record.read(capture)
    assert found is not None
    assert [c.constexprs["B"] for c in found.candidates] == ["32", "64"]
    assert [found.is_pinned(c) for c in found.candidates] == [False, True]


def test_what_a_candidate_does_not_name_is_the_default_and_not_what_was_captured() -> None:
    rows = [
        {"constexprs": {"B": "64"}, "options": {"num_warps": "4"}},
        {"constexprs": {"B": "64", "SPLIT": "True"}, "options": {"num_warps": "4", "waves_per_eu": "2"}},
    ]
    values: dict[str, Any] = {
        "constexprs": {"B": "64", "SPLIT": "True"},
        "options": {"num_warps": "4", "waves_per_eu": "2", "kpack": "1"},
        "candidates": rows,
    }
    defaults = {"constexprs": {"SPLIT": "False"}, "options": {"waves_per_eu": "0"}}
    told = triton_record.TritonRecord(record(CUBIN, **values, defaults=defaults))
    first, second = told.candidates
    assert first.constexprs == {"B": "64", "SPLIT": "False"}
    assert first.options == {"num_warps": "4", "waves_per_eu": "0"}
    assert [told.is_pinned(c) for c in (first, second)] == [False, True]
    # Of what is captured as it is by default, the record has no other default.
    values["options"]["waves_per_eu"] = "0"
    plain = triton_record.TritonRecord(record(CUBIN, **values, defaults={"constexprs": {}, "options": {}}))
    assert plain.candidates[0].options == {"num_warps": "4", "waves_per_eu": "0"}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "[" * 100_000,
        '{"schema": 1}',
        json.dumps(record(CUBIN, schema="kerncap-triton/9")),
        json.dumps(record(CUBIN, candidates=[{"constexprs": 1}])),
    ],
)
def test_a_damaged_record_is_told(text: str, place: tuple[Path, Path]) -> None:
    _, capture = place
    (capture / "triton.json").write_text(text)
    with pytest.raises(DamagedCaptureError, match=r"triton\.json"):
        triton_record.read(capture)
