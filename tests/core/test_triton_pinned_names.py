"""What `make recompile` takes of pinned(): nothing that Triton would leave out without a word."""

from __future__ import annotations

import types
from dataclasses import fields, make_dataclass
from typing import Any

import pytest

from kerncap.triton_hook.compile_variant import Refused, _configuration, left_out

RECORD = {
    "options": {"num_warps": "8", "num_ctas": "1", "kpack": "1", "warp_size": "64"},
    "constexprs": {"VARIANT": "1", "n": "1", "(0, 1)": "2"},
    "declared": ["VARIANT"],
    "signature": {"x": "'*fp32'", "n": "'constexpr'", "VARIANT": "'constexpr'"},
}
OPTIONS = ("num_warps", "num_stages", "num_ctas", "kpack", "debug")
TAKEN = {field.name: field for field in fields(make_dataclass("Options", OPTIONS))}


def pinned() -> dict[str, Any]:
    return {
        "grid": (1, 2, 1),
        "constexprs": {"VARIANT": 1},
        "num_warps": 8,
        "num_ctas": 1,
        "specialized": {"n": 1, "(0, 1)": 2},
        "signature": {"x": "*fp32", "n": "constexpr", "VARIANT": "constexpr"},
        "attributes": {(0,): []},
        "options": {"kpack": 1, "warp_size": 64},
    }


def read(returned: Any, *parameters: str, **override: Any) -> Any:
    module = types.SimpleNamespace(pinned=lambda: returned)
    kernel = types.SimpleNamespace(arg_names=["x", "n", "VARIANT", *parameters])
    return _configuration(RECORD, module, kernel, TAKEN, override)[1:]


def without(name: str, **more: Any) -> dict[str, Any]:
    return {**{key: value for key, value in pinned().items() if key != name}, **more}


def within(group: str, **more: Any) -> dict[str, Any]:
    return {**pinned(), group: {**pinned()[group], **more}}


def test_what_was_captured_is_taken() -> None:
    constexprs, options, grid = read(pinned())
    assert constexprs == {"VARIANT": 1, "n": 1, "(0, 1)": 2}
    assert options == {"num_warps": 8, "num_ctas": 1, "kpack": 1, "warp_size": 64}
    assert grid == [1, 2, 1]


def test_so_is_what_the_kernel_and_the_backend_have_besides() -> None:
    """Also a candidate's, laid over it: those the autotuner handed to Triton itself."""
    changed = within("constexprs", NEW=2) | {"num_stages": 2, "grid": [3]}
    changed["options"] = {"debug": True}
    constexprs, options, grid = read(changed, "NEW")
    assert (constexprs["NEW"], options["num_stages"], options["debug"], grid) == (2, 2, True, [3, 1, 1])
    assert read(pinned(), options={"waves_per_eu": "2"}, grid=[4, 1, 1])[1]["waves_per_eu"] == 2


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (
            without("num_warps", num_wraps=4),
            "pinned() has 'num_wraps', which nothing takes; did you mean 'num_warps'? Captured was "
            "num_warps=8",
        ),
        (
            {**pinned(), "waves_per_eu": 2},
            "pinned() has 'waves_per_eu', which nothing takes. Captured was num_warps=8, num_ctas=1",
        ),
        ({**pinned(), "kpack": 2}, "pinned() has 'kpack', which belongs into its 'options'"),
        (within("options", kpak=2), "'options' in pinned() has 'kpak', which nothing takes; did you mean"),
        (within("options", num_warps=4), "pinned() has 'num_warps' twice: in 'options', and elsewhere"),
        (within("options", warp_size=32), "'warp_size' in pinned() is 32, but Triton sets it itself: 64"),
        (within("constexprs", VARAINT=2), "did you mean 'VARIANT'? Captured was VARIANT=1"),
        (within("constexprs", n=2), "pinned() has 'n' twice: in 'constexprs', and elsewhere"),
        (within("specialized", m=2), "'specialized' in pinned() has 'm', which nothing takes"),
        (within("signature", xx="i32"), "'signature' in pinned() has 'xx', which nothing takes"),
        (without("specialized", specialised={}), "did you mean 'specialized'?"),
        (without("attributes"), "pinned() no longer has attributes"),
        (
            {**pinned(), "constexprs": {}},
            "'constexprs' in pinned() no longer has 'VARIANT'; captured was VARIANT=1",
        ),
        (
            {**pinned(), "specialized": {}},
            "'specialized' in pinned() no longer has 'n'; captured was n=1",
        ),
        (
            {**pinned(), "signature": {"n": "constexpr", "VARIANT": "constexpr"}},
            "'signature' in pinned() no longer has 'x'; captured was x='*fp32'",
        ),
        (without("options", options=None), "'options' in pinned() is None, no dictionary"),
        (None, "pinned() returns None, no dictionary"),
    ],
)
def test_what_nothing_takes_is_refused_by_name(returned: Any, said: str) -> None:
    with pytest.raises(Refused) as caught:
        read(returned)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "grid", [(0, 1, 1), (1, -2, 1), (1.5,), (2.0,), 4, (), (1, 1, 1, 1), (2**31,), ("1",), None]
)
def test_a_grid_that_no_launch_has_is_refused(grid: Any) -> None:
    with pytest.raises(Refused) as caught:
        read(without("grid", grid=grid))
    assert f"'grid' in pinned() is {grid!r}: it is one to three whole numbers" in str(caught.value)


def test_an_argument_may_become_one_of_run_time_or_go() -> None:
    """And a candidate's value stands for one that is left out."""
    at_run_time = {**pinned(), "specialized": {}, "signature": {**pinned()["signature"], "n": "i32"}}
    assert read(at_run_time)[0] == {"VARIANT": 1}
    assert read({**pinned(), "constexprs": {}}, constexprs={"VARIANT": "2"})[0]["VARIANT"] == 2
    module = types.SimpleNamespace(pinned=lambda: {**pinned(), "specialized": {}, "constexprs": {}})
    kernel = types.SimpleNamespace(arg_names=["x"])
    assert _configuration(RECORD, module, kernel, TAKEN, {})[1] == {}


def test_options_that_are_left_out_are_named_where_the_default_is_another() -> None:
    record = {"options": {**RECORD["options"], "debug": "('a', 'b')", "extern_libs": "()", "gone": "1"}}
    used = types.SimpleNamespace(num_warps=4, num_ctas=1, kpack=1, warp_size=64, debug=["a", "b"])
    taken = {**TAKEN, "extern_libs": TAKEN["debug"]}

    def found(*given: str) -> Any:
        return left_out(record, set(given), taken, used, {})

    assert found() == [("num_warps", "8", 4)]
    assert found("num_warps") == []
    used.kpack = 2
    assert found("num_warps", "num_ctas") == [("kpack", "1", 2)]
    used.debug = ["a"]
    assert found("num_warps", "kpack") == [("debug", "('a', 'b')", ["a"])]
