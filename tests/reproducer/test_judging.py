"""The tolerance and the types that a reproducer remembers, in the edit loop on the simulated GPU."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from test_session_replayer import out

from kerncap.core.errors import UsageError
from kerncap.core.loop.bench import ReplayBench
from kerncap.core.loop.judging import EXACTLY, NAME, Judging, changed, parse_judging, remember, remembered
from kerncap.core.loop.loop_worker import Request
from kerncap.core.loop.session import EditLoop

__all__ = ["out"]
BODY = "if (i < n) p[i] = twice(p[i]);"


def test_an_attempt_is_judged_as_the_reproducer_remembers(out: Path) -> None:
    variant = out / "kernel_variant.cpp"
    variant.write_text(variant.read_text().replace(BODY, "if (i < n) p[i] = twice(p[i]) * 1.0000002f;"))
    with EditLoop(out, ReplayBench(out, "sim:gfx942"), lambda _: None) as loop:
        exact = loop.attempt()
        assert exact
        assert exact.outcome == "failed"
        validation = exact.document["validation"]
        assert validation["judging"] == EXACTLY.to_json()
        ident = str(validation["regions"][0]["id"])
        remember(out, Judging(rtol=1e-6, dtypes=((ident, "f32"),)))
        loop.repeat(Request("validate"))
        kept = json.loads((out / "iterations/001/iteration.json").read_text())
        assert (kept["outcome"], kept["validation"]["verdict"]) == ("passed", "WITHIN_TOLERANCE")
        assert f"(judged with rtol 1e-06, {ident}=f32)" in kept["validation"]["summary"]
        assert kept["validation"]["judging"]["rtol"] == 1e-6
        remember(out, Judging(rtol=1e-6, dtypes=((ident, "i32"),)))  # whole numbers have none
        kept = loop.attempt()
        assert kept
        assert kept.outcome == "failed"
        assert kept.document["validation"]["regions"][0]["dtype"] == "i32"
    with EditLoop(out, ReplayBench(out, "sim:gfx942"), lambda _: None) as later:
        kept = later.attempt()
        assert kept
        assert kept.document["validation"]["regions"][0]["dtype"] == "i32"


def test_what_is_remembered_is_right_or_refused(out: Path, tmp_path: Path) -> None:
    assert remembered(out) == EXACTLY
    wanted = Judging(1e-5, 1e-6, 2, (("1", "f32"),))
    remember(out, wanted)
    assert remembered(out) == wanted
    assert (out / NAME).stat().st_mode & 0o077 == 0
    assert wanted.text == "atol 1e-05, rtol 1e-06, ulp 2, 1=f32"
    assert changed(wanted, {"rtol": 0.0, "ulp": None, "dtypes": (("0x7000", "f16"),)}) == Judging(
        1e-5, 0.0, 2, (("1", "f32"), ("0x7000", "f16"))
    )
    for bad in (Judging(rtol=-1.0), Judging(atol=float("nan")), Judging(dtypes=(("1", "float33"),))):
        with pytest.raises(UsageError):
            remember(out, bad)
    with pytest.raises(UsageError, match="no region 77"):
        remember(out, Judging(dtypes=(("77", "f32"),)))
    assert remembered(out) == wanted
    copy = Path(shutil.copytree(out, tmp_path / "copy"))
    for text in ("{", "[]", '{"schema": "other/1", "atol": 0, "rtol": 0, "ulp": 0, "dtypes": {}}'):
        (copy / NAME).write_text(text)
        where = "line 1, column 2: a name in double quotes is expected. " if text == "{" else ""
        with pytest.raises(UsageError, match=f"{where}Remove it to compare exactly"):
            remembered(copy)
    remember(out, EXACTLY)
    assert not (out / NAME).exists()


@pytest.mark.parametrize("text", ["", "rtol 1e-06", "atol 0.001, rtol 2, ulp 3, 4=f32, 0x7f00=f16"])
def test_a_judging_in_words_is_read_back(text: str) -> None:
    assert parse_judging(text).text == text
    assert parse_judging(text.replace(" 1e", "=1e").replace(", ", " ,")).text == text


@pytest.mark.parametrize("text", ["rtol", "rtol x", "ulp 1.5", "much", "1e-6", "a=f32"])
def test_a_judging_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_judging(text)
