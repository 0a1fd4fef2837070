"""Where a capture goes when nobody says: by the kernel's own name, however it was asked for."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kerncap.core.errors import UsageError
from kerncap.core.extract import extract as extract_module
from kerncap.core.extract.extract import extract
from kerncap.core.extract.extract_running import extract_running
from kerncap.core.extract.placing import default_output
from kerncap.core.extract.reproducer_info import ReproducerInfo
from kerncap.core.loop.captures import list_captures
from kerncap.core.program.control import Session
from kerncap.core.program.profile import profile

Fake = Callable[..., list[str]]
INT = {"name": "void block_sum<int, 128>(int*)", "symbol": "_Z9block_sumIiLi128EEvPT_"}
FLOAT = {"name": "void block_sum<float, 128>(float*)", "symbol": "_Z9block_sumIfLi128EEvPT_"}
RACY = {"name": "red::racy(float*)", "symbol": "_ZN3red4racyEPf"}


@pytest.fixture(autouse=True)
def _no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        extract_module, "_write_reproducer", lambda *a: ReproducerInfo("unknown", None, reason="none")
    )
    monkeypatch.setattr(extract_module, "_baseline", lambda *a: {"verdict": "IDENTICAL"})


def marking(program: list[str]) -> list[str]:
    """The program, which leaves the file `ran`."""
    return ["sh", "-c", f"touch ran; exec {shlex.join(program)}"]


def refused(pattern: str, program: list[str], place: str) -> None:
    """It must be, and before the program runs."""
    with pytest.raises(UsageError, match=f"{place} exists already; --force replaces it"):
        extract(pattern, marking(program))
    assert not Path("ran").exists()


def test_an_id_a_part_and_a_mangled_name_go_to_the_kernels_own(fake: Fake) -> None:
    program = fake(kernels=[INT, RACY])
    ids = {k.symbol: k.id for k in profile(program).kernels}
    by_id = extract(ids[INT["symbol"]][:6], program)
    assert by_id.output == "isolated/block_sum"
    assert extract("_ZN3red4racyEPf", program).output == "isolated/racy"
    # However it is asked for, it is the same kernel, and there.
    captured = {one.directory.name: one.id for one in list_captures()}["block_sum"]
    for pattern in (captured, captured[:6], "block_sum<int", "block_sum", INT["symbol"]):
        refused(pattern, program, "isolated/block_sum")
    for pattern in ("_ZN3red4racyEPf", "red::racy", "racy"):
        refused(pattern, program, "isolated/racy")
    assert sorted(os.listdir("isolated")) == ["block_sum", "racy"]
    assert extract("block_sum<int", program, force=True).output == "isolated/block_sum"
    assert sorted(os.listdir("isolated")) == ["block_sum", "racy"]


def test_another_instance_has_a_number(fake: Fake) -> None:
    program = fake(kernels=[INT, FLOAT])
    assert extract("block_sum<int", program).output == "isolated/block_sum"
    assert extract("block_sum<float", program).output == "isolated/block_sum-2"
    refused("block_sum<float", program, "isolated/block_sum-2")
    refused(FLOAT["symbol"], program, "isolated/block_sum-2")
    assert extract(FLOAT["symbol"], program, force=True).output == "isolated/block_sum-2"
    assert {one.directory.name: one.symbol for one in list_captures()} == {
        "block_sum": INT["symbol"],
        "block_sum-2": FLOAT["symbol"],
    }


def test_a_word_that_is_a_part_of_a_captured_name_may_be_another_kernels_whole_name(fake: Fake) -> None:
    program = fake(kernels=[INT, {"name": "sum"}])
    extract("block_sum", program)
    assert extract("sum", program).output == "isolated/sum"


def test_what_could_not_be_foreseen_goes_beside_and_replaces_nothing(fake: Fake) -> None:
    program = fake(kernels=[INT])
    mine = Path("isolated/block_sum/mine")
    mine.parent.mkdir(parents=True)
    mine.write_text("x")
    assert extract("block_s", program).output == "isolated/block_sum-2"
    assert mine.read_text() == "x"
    assert extract("block_s", program).output == "isolated/block_sum-3"
    assert extract("block_s", program, force=True).output == "isolated/block_sum-2"
    assert mine.read_text() == "x"


def test_what_was_named_stays(fake: Fake) -> None:
    assert extract("block_sum<int", fake(kernels=[INT]), output="mine").output == "mine"
    assert not Path("isolated").exists()


def test_in_a_running_program_too(fake: Fake, tmp_path: Path) -> None:
    Session.create(directory=tmp_path / "s").close()
    program = fake(kernels=[{**INT, "calls": 100_000}], pause=0.001)
    ident = profile(fake(kernels=[INT])).kernels[0].id
    environment = {**os.environ, "KERNCAP_SESSION": str(tmp_path / "s")}
    process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE)
    try:
        assert extract_running(ident[:6], tmp_path / "s", timeout=30).output == "isolated/block_sum"
        with pytest.raises(UsageError, match="isolated/block_sum exists already"):
            extract_running("block_s", tmp_path / "s", timeout=30)
    finally:
        process.kill()
        process.wait()
    assert os.listdir("isolated") == ["block_sum"]


def test_default_places() -> None:
    assert str(default_output("void ns::mul<(type)39, 4>(int*)")) == "isolated/mul"
    assert str(default_output("_ZN3red4racyEPf")) == "isolated/racy"
    assert str(default_output("_ZN3red4racyEPf.kd")) == "isolated/racy"
    assert str(default_output("softmax_kernel")) == "isolated/softmax_kernel"
