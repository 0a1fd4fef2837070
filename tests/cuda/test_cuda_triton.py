"""Kernels of Triton and of torch.compile on `--device cuda`, end to end: packages of ours stand for both, the
fake driver for the GPU.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from driving import STANDIN
from fake_machine import FakeGpu

import kerncap
from kerncap.cli.entry import run as command_line
from kerncap.core.build.diagnostics import parse
from kerncap.core.build.recompile import recompile
from kerncap.core.build.toolchain import CompileError
from kerncap.core.capture.reading import read_capture
from kerncap.core.code.layout import CaptureState
from kerncap.core.device.devices import Device, full_environment
from kerncap.core.errors import DamagedCaptureError, UsageError
from kerncap.core.loop.candidates import candidates
from kerncap.core.program.control import CaptureRequest, Session
from kerncap.core.triton import triton_record

CHOSEN = "VARIANT=1, num_warps=8"
pytestmark = pytest.mark.usefixtures("triton_standin")


def program(name: str, *arguments: str) -> list[str]:
    return [sys.executable, str(STANDIN / f"{name}.py"), *arguments]


def extract(kernel: str, out: Path, *words: str, dispatch: int = 1) -> Any:
    return kerncap.extract(kernel, list(words), device="cuda", dispatch=dispatch, output=out, stdout=2)


@pytest.mark.parametrize("hooked", [True, False])
@pytest.mark.parametrize(
    ("words", "kernel", "kind"),
    [
        (program("tuned"), "tuned", "triton"),
        (program("compiled", "static"), "triton_poi_tuned", "inductor"),
    ],
)
def test_each_configuration_is_a_kernel_of_its_kind(
    words: list[str],
    kernel: str,
    kind: str,
    hooked: bool,
    gpu: FakeGpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first one was launched when no other kernel had its name: it is told apart all the same."""
    for name, value in (gpu.environment if hooked else gpu.unhookable).items():
        monkeypatch.setenv(name, value)
    report = kerncap.profile(words, device="cuda", stdout=2)
    assert [(k.name, k.kind) for k in report.kernels] == [(kernel, kind)] * 3
    assert sorted(k.calls for k in report.kernels) == [1, 1, 5]


def test_configurations_stand_beside_their_common_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        command_line(["profile", "--device", "cuda", "-o", str(tmp_path / "p"), "--", *program("tuned")]) == 0
    )
    rows = [line for line in capsys.readouterr().out.splitlines() if " tuned  (" in line]
    told = [line.partition("  (")[2] for line in rows]
    assert sorted(told) == [
        "VARIANT=0 num_warps=8 num_stages=4 num_ctas=1)",
        "VARIANT=1 num_warps=8 num_stages=3 num_ctas=1)",
        "VARIANT=2 num_warps=4 num_stages=3 num_ctas=2)",
    ]
    kernels = json.loads((tmp_path / "p").read_text())["kernels"]
    assert kernels[0]["configuration"].startswith(CHOSEN)  # most time
    assert f"{kernels[0]['configuration'].replace(', ', ' ')} num_ctas=1)" == told[0]
    assert "mark" not in kernels[0]


@pytest.mark.parametrize(
    ("words", "kernel"),
    [
        (program("tuned"), "tuned"),
        (program("compiled", "static"), "triton_poi_tuned"),
        (program("compiled", "plain"), "triton_poi_tuned"),
    ],
)
def test_a_plain_name_means_what_the_autotuner_chose(words: list[str], kernel: str, tmp_path: Path) -> None:
    made = extract(kernel, tmp_path / "o", *words)
    assert made.dispatch == 2  # the first one timed it
    assert any(f"the autotuner tried 3 configurations of {kernel}" in w for w in made.warnings)
    assert any(CHOSEN in w for w in made.warnings)
    assert (made.source.variant, made.source.rebuilt) == ("kernel_variant.py", "identical")
    assert made.source.language == ("triton" if kernel == "tuned" else "inductor")
    assert "'VARIANT': 1," in (tmp_path / "o" / "kernel_variant.py").read_text()
    record = triton_record.read(tmp_path / "o" / "capture")
    assert record is not None
    assert record.id == made.id
    assert record.tuned
    (captured,) = (tmp_path / "o" / "capture" / "code").glob("*")
    built = recompile(tmp_path / "o").object
    assert built.name == "optimized.cubin"
    assert built.read_bytes() == captured.read_bytes()


def test_launches_are_counted_from_the_choice_on(tmp_path: Path) -> None:
    assert extract("tuned", tmp_path / "o", *program("tuned"), dispatch=3).dispatch == 4


def test_the_next_launch_is_none_of_the_autotuners(tmp_path: Path) -> None:
    """As from the leaderboard of a program that runs: whichever comes next, by name."""
    with Session.create() as session:
        session.request_capture(CaptureRequest("tuned", tmp_path / "capture", nth=0))
        environment = full_environment(Device("cuda", "sm_90"), session.directory)
        subprocess.run(program("tuned"), env=environment, timeout=60, capture_output=True, check=False)
        assert session.status().state == CaptureState.DONE
    assert read_capture(tmp_path / "capture").dispatch.nth_of_kernel == 2


@pytest.mark.parametrize(
    ("words", "kernel"),
    [(program("tuned"), "tuned"), (program("compiled", "static"), "triton_poi_tuned")],
)
def test_an_id_means_what_it_says(words: list[str], kernel: str, tmp_path: Path) -> None:
    """Also a launch that only timed it, of which it warns with the ways out."""
    report = kerncap.profile(words, device="cuda", stdout=2)
    chosen = max((k for k in report.kernels if k.name == kernel), key=lambda k: k.calls)
    made = extract(chosen.id, tmp_path / "o", *words)
    assert (made.id, made.dispatch) == (chosen.id, 1)
    (warning,) = (w for w in made.warnings if "configurations" in w)
    assert "dispatch 1 was captured before kerncap saw the autotuner choose among the 3" in warning
    assert f"--dispatch N takes a later one; the plain name, {kernel}, takes the first" in warning
    made = extract(chosen.id, tmp_path / "later", *words, dispatch=3)
    assert not any("autotuner" in w for w in made.warnings)


def test_an_id_says_where_the_choice_was_another_or_came_while_the_program_ran_on(tmp_path: Path) -> None:
    report = kerncap.profile(program("tuned"), device="cuda", stdout=2)
    chosen = max(report.kernels, key=lambda k: k.calls)
    third = next(k for k in report.kernels if k.block[0] == 128)
    for kernel, said in (
        (third, f"the autotuner chose {CHOSEN}"),
        (chosen, "dispatch 1 may be one by which the autotuner timed"),
    ):
        made = kerncap.extract(
            kernel.id,
            program("tuned"),
            device="cuda",
            output=tmp_path / kernel.id,
            stdout=2,
            keep_running=True,
        )
        assert any(said in w for w in made.warnings), made.warnings


def test_the_candidates_are_launched_as_they_were_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extract("tuned", tmp_path / "o", *program("tuned"))
    log = tmp_path / "launches"
    monkeypatch.setenv("FAKE_CUDA_LAUNCHES", str(log))
    rows = candidates(tmp_path / "o", device="cuda", iterations=3).rows
    assert [(r.program_ms, r.grid, r.chosen, r.captured) for r in rows] == [
        (3.0, (1, 1, 1), False, False),
        (1.0, (1, 1, 1), True, True),
        (2.0, (1, 1, 1), False, False),
    ]
    assert [r.verdict == "FAIL" for r in rows] == [False, False, True]
    assert rows[2].changed_share is not None
    assert 0 < rows[2].changed_share < 1
    launches = list(dict.fromkeys(log.read_text().splitlines()))  # blocks, threads, shared bytes, cluster
    assert launches == ["1 256 192 0", "1 256 256 0", "2 128 192 2"]


@pytest.mark.parametrize("as_json", [False, True])
def test_candidates_of_which_none_could_be_tried_are_an_error(
    as_json: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    extract("tuned", tmp_path / "o", *program("tuned"))
    variant = tmp_path / "o" / "kernel_variant.py"
    variant.write_text(variant.read_text().replace("def pinned", "def unpinned"))
    capfd.readouterr()
    words = ["replay", str(tmp_path / "o"), "--candidates", "--device", "cuda"]
    code = command_line([*words, *(["--json"] if as_json else [])])
    out, err = capfd.readouterr()
    assert code == 2
    assert "none of the 3 configurations could be tried; VARIANT=0, num_warps=8" in err
    assert "Triton could not compile kernel_variant.py" in err
    if as_json:
        rows = json.loads(out)["candidates"]
        assert [row["verdict"] for row in rows] == [None] * 3
        assert "failure" not in json.loads(out)


def test_some_candidates_that_fail_are_no_error(tmp_path: Path) -> None:
    extract("tuned", tmp_path / "o", *program("tuned"))
    path = tmp_path / "o" / "capture" / "triton.json"
    record = json.loads(path.read_text())
    record["candidates"] = record["candidates"][:2]
    record["candidates"][0]["grid"] = None
    path.write_text(json.dumps(record))
    result = candidates(tmp_path / "o", device="cuda", iterations=3)
    assert [row.verdict is None for row in result.rows] == [True, False]
    assert result.failure is None
    record["candidates"][1]["grid"] = [0, 1, 1]
    path.write_text(json.dumps(record))
    failure = candidates(tmp_path / "o", device="cuda", iterations=3).failure
    assert failure is not None
    assert failure.exit_code == 2
    assert "the grid that the program would launch it with is not known" in failure.message


def test_a_cluster_of_blocks_is_one_program(tmp_path: Path) -> None:
    """The third configuration, by its id; it is launched again without its cluster."""
    report = kerncap.profile(program("tuned"), device="cuda", stdout=2)
    third = next(k for k in report.kernels if k.block[0] == 128)
    extract(third.id, tmp_path / "o", *program("tuned"))
    variant = tmp_path / "o" / "kernel_variant.py"
    text = variant.read_text()
    assert '"grid": (1, 1, 1),' in text
    assert '"num_ctas": 2,' in text
    variant.write_text(text.replace('"num_ctas": 2,', '"num_ctas": 1,'))
    built = recompile(tmp_path / "o").object
    judged = kerncap.validate(tmp_path / "o", built, device="cuda")
    assert (
        "launched as 1x1x1 programs of 128 threads in 1 blocks; captured were 1x1x1 programs of 128 "
        "threads in 2 blocks" in judged.warnings
    )


def test_what_nothing_takes_in_pinned_is_refused_by_name(tmp_path: Path) -> None:
    """Triton would compile with its defaults, and the result would be IDENTICAL."""
    extract("tuned", tmp_path / "o", *program("tuned"))
    variant = tmp_path / "o" / "kernel_variant.py"
    text = variant.read_text()
    line = text[: text.index('"num_warps": 8')].count("\n") + 1
    for old, new, said in (
        ('"num_warps": 8', '"num_wraps": 8', f"kernel_variant.py:{line}:9: error: pinned() has 'num_wraps'"),
        ('"grid": (1, 1, 1)', '"grid": (0, 1, 1)', "error: 'grid' in pinned() is (0, 1, 1)"),
    ):
        assert old in text
        variant.write_text(text.replace(old, new))
        with pytest.raises(CompileError) as caught:
            recompile(tmp_path / "o")
        assert said in caught.value.output
        assert not (tmp_path / "o" / "optimized.cubin").exists()


def test_an_option_that_pinned_no_longer_has_is_told_with_what_is_used_instead(tmp_path: Path) -> None:
    """And only where Triton's default is another: num_stages=3 is what it takes anyway."""
    extract("tuned", tmp_path / "o", *program("tuned"))
    variant = tmp_path / "o" / "kernel_variant.py"
    text = variant.read_text()
    assert recompile(tmp_path / "o").warnings == ""
    for line in ('        "num_warps": 8,\n', '        "num_stages": 3,\n'):
        assert line in text
        text = text.replace(line, "")
    variant.write_text(text)
    at = text[: text.index("def pinned(")].count("\n") + 1
    (told,) = parse(recompile(tmp_path / "o").warnings)
    assert (told.severity, told.line) == ("warning", at)
    assert told.message == (
        "pinned() no longer has 'num_warps'; captured was num_warps=8, and it is compiled with Triton's "
        "default, num_warps=4"
    )
    variant.write_text(text.replace("'VARIANT': 1,", ""))
    with pytest.raises(CompileError) as caught:
        recompile(tmp_path / "o")
    assert "'constexprs' in pinned() no longer has 'VARIANT'; captured was VARIANT=1" in caught.value.output


def test_more_scratch_memory_than_was_captured_is_refused(tmp_path: Path) -> None:
    extract("tuned", tmp_path / "o", *program("tuned"))
    built = recompile(tmp_path / "o").object
    beside = Path(f"{built}.launch.json")
    beside.write_text(json.dumps({**json.loads(beside.read_text()), "grid": [2, 1, 1], "scratch": 256}))
    with pytest.raises(UsageError, match=r"takes 256 bytes of scratch memory .*; the captured launch had 0"):
        kerncap.validate(tmp_path / "o", built, device="cuda")


def test_a_damaged_record_is_no_compilers_error(tmp_path: Path) -> None:
    extract("tuned", tmp_path / "o", *program("tuned"))
    (tmp_path / "o" / "capture" / "triton.json").write_text("{")
    with pytest.raises(DamagedCaptureError, match=r"triton\.json: it cannot be read"):
        recompile(tmp_path / "o")


def test_a_choice_that_is_only_written_down_is_taken_in_a_second_run(tmp_path: Path) -> None:
    made = extract("tuned", tmp_path / "o", *program("tuned", "_bench"), dispatch=2)
    assert any("the autotuner chose" in w and "run again" in w for w in made.warnings)
    assert "'VARIANT': 1," in (tmp_path / "o" / "kernel_variant.py").read_text()


def test_without_a_choice_the_configurations_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        extract("tuned", tmp_path / "o", *program("tuned", "_bench", "prune_configs", "run"), dispatch=2)
    lines = caught.value.message.splitlines()
    assert lines[0] == "tuned fits 3 kernels; name one by its id:"
    assert any(f": {CHOSEN}" in line for line in lines)


def test_inductors_kernels_are_rebuilt_by_torchs_own_ptxas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)
    extract("triton_poi_tuned", tmp_path / "o", *program("compiled", "ptxas"))
    record = triton_record.read(tmp_path / "o" / "capture")
    assert record is not None
    assert Path(record.environment["TRITON_PTXAS_PATH"]).parts[-2:] == ("bin", "ptxas")
    extract("triton_poi_tuned", tmp_path / "plain", *program("compiled", "static"))
    record = triton_record.read(tmp_path / "plain" / "capture")
    assert record is not None
    assert "TRITON_PTXAS_PATH" not in record.environment


def test_where_inductor_keeps_no_source_it_says_so(tmp_path: Path) -> None:
    made = extract("triton_poi_tuned", tmp_path / "o", *program("compiled", "lost"))
    assert made.baseline["verdict"] == "IDENTICAL"
    assert made.source.variant is None
    assert "it was made by Inductor in another process" in str(made.source.reason)
