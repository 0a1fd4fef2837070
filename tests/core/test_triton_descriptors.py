"""TMA descriptors that a program makes: which candidates the captured launch holds under, what the kernel's
arguments are, and what `make recompile` refuses.
"""

from __future__ import annotations

import types
from typing import Any

import pytest

from kerncap.core.triton.triton_descriptors import captured_note, pointers, signature_under
from kerncap.core.triton.triton_record import Candidate, TritonRecord
from kerncap.triton_hook.compile_variant import Refused, _configuration

A = "'tensordesc<fp16[64, 32]>'"


def record(maps: bool, version: str = "3.9.0", **signature: str) -> TritonRecord:
    row: dict[str, Any] = {
        "triton": version,
        "tensor_maps": maps,
        "signature": signature or {"a": A, "n": "'i32'", "BM": "'constexpr'", "BN": "'constexpr'"},
        "constexprs": {"BM": "64", "BN": "32"},
        "declared": ["BM", "BN"],
        "options": {"num_warps": "4"},
    }
    return TritonRecord(row)


def candidate(bm: int, warps: int = 4, **shapes: tuple[int, ...]) -> Candidate:
    constexprs = {"BM": str(bm), "BN": "32"}
    return Candidate(constexprs, {"num_warps": str(warps)}, descriptors=shapes)


@pytest.mark.parametrize("maps", [True, False])
@pytest.mark.parametrize(
    "other", [candidate(64, 8), candidate(64, 8, a=(64, 32)), candidate(128, a=(64, 32))]
)
def test_the_same_descriptor_holds(maps: bool, other: Candidate) -> None:
    assert signature_under(record(maps), other) == ({}, None)


def test_a_map_of_another_block_is_refused_by_name() -> None:
    assert signature_under(record(True), candidate(128, a=(128, 32))) == (
        {},
        "the program hands the kernel a TMA descriptor whose block shape belongs to the captured launch: "
        "a, made for blocks of 64x32 (here 128x32)",
    )


@pytest.mark.parametrize("maps", [True, False])
def test_so_is_one_whose_block_is_not_known(maps: bool) -> None:
    _, problem = signature_under(record(maps), candidate(128))
    assert str(problem).endswith("a, made for blocks of 64x32; which it would make here is not known")


def test_without_a_map_the_block_is_in_the_signature() -> None:
    changed = {"a": "'tensordesc<fp16[128, 32]>'"}
    assert signature_under(record(False), candidate(128, a=(128, 32))) == (changed, None)


def test_before_triton_3_4_the_signature_has_no_block() -> None:
    old = record(False, "3.3.1", a="'nvTmaDesc'", BM="'constexpr'", BN="'constexpr'")
    assert signature_under(old, candidate(64, 8)) == ({}, None)
    assert "whose block shape belongs" in str(signature_under(old, candidate(128))[1])
    assert "a: made by the program" in str(captured_note(old))


def test_a_kernel_without_any_has_no_problem() -> None:
    plain = record(True, x="'*fp32'", BM="'constexpr'", BN="'constexpr'")
    assert signature_under(plain, candidate(128)) == ({}, None)
    assert captured_note(plain) is None


@pytest.mark.parametrize(("version", "flags"), [("3.4.0", 0), ("3.5.1", 1), ("3.6.0", 1), ("3.7.1", 2)])
def test_the_parts_of_a_descriptor_are_arguments(version: str, flags: int) -> None:
    found = pointers(record(False, version, a=A, x="'*bf16'", BM="'constexpr'"))
    assert found == ["fp16", *[None] * (4 + flags + 4), "bf16"]


def test_a_map_is_one_argument_before_its_shape() -> None:
    assert pointers(record(True, a=A, x="'*kfp32'")) == [None, *[None] * 4, "fp32"]


def test_tuples_are_their_parts() -> None:
    assert pointers(record(True, t="('*fp16', 'constexpr', 'i32')", x="'*fp32'")) == ["fp16", None, "fp32"]


def configured(told: TritonRecord, **changes: Any) -> Any:
    def pinned() -> dict[str, Any]:
        signature = {name: eval(text) for name, text in told.row["signature"].items()}
        return {
            "grid": (1, 1, 1),
            "constexprs": {"BM": 64, "BN": 32} | changes.get("constexprs", {}),
            "num_warps": 4,
            "specialized": {},
            "signature": signature | changes.get("signature", {}),
            "attributes": {},
            "options": {},
        }

    module = types.SimpleNamespace(pinned=pinned)
    kernel = types.SimpleNamespace(arg_names=["a", "n", "BM", "BN"])
    taken = {"num_warps": types.SimpleNamespace(init=True)}
    return _configuration(told.row, module, kernel, taken, changes.get("override", {}))


def test_an_edit_of_a_maps_block_is_refused() -> None:
    edit = {"a": "tensordesc<fp16[128, 32]>"}
    with pytest.raises(
        Refused, match=r"'a' in pinned\(\) is 'tensordesc<fp16\[128, 32\]>', but the captured"
    ):
        configured(record(True), signature=edit)
    assert configured(record(False), signature=edit)[0]["signature"]["a"] == edit["a"]


def test_a_candidates_signature_is_laid_over_it() -> None:
    override = {"signature": {"a": "'tensordesc<fp16[128, 32]>'"}, "constexprs": {"BM": "128"}}
    pinned, constexprs, *_ = configured(record(False), override=override)
    assert (pinned["signature"]["a"], constexprs["BM"]) == ("tensordesc<fp16[128, 32]>", 128)
    assert pinned["signature"]["n"] == "i32"


def test_block_sizes_that_no_signature_has_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    old = record(False, "3.3.1", a="'nvTmaDesc'", n="'i32'", BM="'constexpr'", BN="'constexpr'")
    configured(old)
    assert capsys.readouterr().err == ""
    configured(old, constexprs={"BM": 128})
    assert "a: made by the program for the captured constexprs" in capsys.readouterr().err
