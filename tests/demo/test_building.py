"""The demonstration program's tree: put somewhere, built, run on the simulated GPU, and its own check."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from kerncap.core.errors import KerncapError, UsageError
from kerncap.demo import building
from kerncap.demo.building import BuiltDemo, build
from kerncap.demo.edits import HOIST, WRONG


def run(demo: BuiltDemo, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The program's run on the simulated GPU, without the interposer."""
    environment = {**os.environ, **demo.env, **variables}
    words = [demo.command[0], *arguments]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=200)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> BuiltDemo:
    # A space in the path: commands are argument lists, so it must not matter.
    return build(tmp_path_factory.mktemp("demo") / "a decoder", "sim:gfx942")


def test_the_default_run_passes_its_own_check_with_two_thousand_dispatches(demo: BuiltDemo) -> None:
    done = run(demo, *demo.command[1:])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2034 kernel launches" in done.stdout
    assert done.stdout.endswith(": ok\n")


def test_an_expert_that_is_as_good_is_no_error(demo: BuiltDemo) -> None:
    # Within these tokens the device and the host choose differently between two nearly equal router logits.
    done = run(demo, "--tokens", "80")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_result_is_the_same_whatever_the_threads(demo: BuiltDemo) -> None:
    outputs = {
        run(demo, "--tokens", "3", **variables).stdout
        for variables in ({}, {"KERNCAP_SIM_DETERMINISTIC": "1"}, {"KERNCAP_SIM_THREADS": "4"})
    }
    assert len(outputs) == 1


def test_arguments_scale_it(demo: BuiltDemo) -> None:
    assert "113 kernel launches" in run(demo, "--tokens", "1", "--no-check").stdout
    assert run(demo, "--tokens", "2", "--seed", "9").stdout != run(demo, "--tokens", "2").stdout
    wrong = run(demo, "--tokens", "none")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "usage: decode" in wrong.stderr


def test_every_unit_has_the_command_that_built_it(demo: BuiltDemo) -> None:
    entries = json.loads((demo.source_dir / "compile_commands.json").read_text())
    sources = {Path(entry["file"]) for entry in entries}
    assert sources == {*demo.source_dir.glob("src/*.cpp"), *demo.source_dir.glob("src/kernels/*.hip")}
    for entry in entries:
        output = Path(entry["output"])
        before = output.read_bytes()
        output.unlink()
        subprocess.run(entry["arguments"], cwd=entry["directory"], check=True, timeout=120)
        assert output.read_bytes() == before, f"{entry['file']} is built by another command"


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        # An eighth of every product left out; positions ignored; one expert for both slots.
        ("mul_mat_vec_q", "i < QK / 4; ++i", "i < QK / 4 - 1; ++i"),
        ("experts", "x = matrices[ids[slot]]", "x = matrices[ids[0]]"),
        # The first expert, whatever the router says.
        ("experts", "__ffs((int)__ballot(v == best)) - 1", "slot"),
        ("attention", "angle = position * frequency;", "angle = frequency;"),
    ],
)
def test_its_check_notices_a_wrong_kernel(demo: BuiltDemo, source: str, old: str, new: str) -> None:
    kernel = demo.source_dir / f"src/kernels/{source}.hip"
    obj = demo.source_dir / f"build/kernels/{source}.o"
    right = kernel.read_text()
    entries = json.loads((demo.source_dir / "compile_commands.json").read_text())
    [compile_words] = [entry["arguments"] for entry in entries if entry["file"] == str(kernel)]
    link_words = [compile_words[0], "ld.lld", "-shared", str(obj), "-o", str(obj.with_suffix(".hsaco"))]

    def rebuild(text: str) -> None:
        kernel.write_text(text)
        for words in (compile_words, link_words):
            subprocess.run(words, cwd=demo.source_dir, check=True, timeout=120)

    assert right.count(old) == 1
    try:
        rebuild(right.replace(old, new))
        done = run(demo, "--tokens", "6")
    finally:
        rebuild(right)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.endswith(": WRONG\n")


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("text")
    with pytest.raises(UsageError, match="is not empty"):
        build(tmp_path, "sim:gfx942")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(UsageError, match="is a file"):
        build(tmp_path / "mine", "sim:gfx942")


def test_building_again_over_an_older_demonstration(demo: BuiltDemo) -> None:
    kernel = demo.source_dir / "src/kernels/norm.hip"
    kernel.write_text("broken")
    again = build(demo.source_dir, "sim:gfx942")
    assert run(again, "--tokens", "1").returncode == 0


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(KerncapError, match=r"does not build: `false .* ended with exit code 1"):
        build(tmp_path / "demo", "sim:gfx942")


def test_with_rocm_its_own_compiler_links_each_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    clang = tmp_path / "bin/amdclang++"
    clang.write_text("")
    clang.chmod(0o755)
    (tmp_path / "include/hip").mkdir(parents=True)
    (tmp_path / "include/hip/hip_runtime_api.h").write_text("")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    entries, links = building._device_steps(building.TREE, "gfx90a", rocm=True)
    assert links == []
    for entry in entries:
        assert entry.arguments[0] == str(clang)
        assert "--offload-arch=gfx90a" in entry.arguments
        assert entry.output.suffix == ".hsaco"
        assert "-Icompat" not in entry.arguments
    hosts, link = building._host_steps(building.TREE, rocm=True)
    assert all(f"-I{tmp_path}/include" in entry.arguments for entry in hosts)
    assert "-lamdhip64" in link


def test_edits_fit_the_kernel_and_can_be_taken_back(tmp_path: Path) -> None:
    source = building.TREE / "src/kernels/mul_mat_vec_q.hip"
    variant = tmp_path / "kernel_variant.cpp"
    variant.write_text(source.read_text())
    for edit in (HOIST, WRONG):
        edit.apply(variant)
        assert variant.read_text() != source.read_text()
        with pytest.raises(KerncapError, match="is there 0 times, not once"):
            edit.apply(variant)
        edit.undo(variant)
        assert variant.read_text() == source.read_text()
