"""What is shown of a launch is in the words of the device's users, and they stand in one place."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import kerncap
from kerncap.core.extract.templates import templates_dir
from kerncap.core.program.device_words import AMD, CUDA, words_of, words_of_devices
from support.texts import shown_strings

DISPATCH = {"grid": [500, 1, 1], "block": [64, 1, 1], "lds_bytes": 2048}
LAUNCH = {
    "cluster": [2, 1, 1],
    "cooperative": True,
    "static_shared_bytes": 1000,
    "dynamic_shared_bytes": 0,
    "registers": 40,
    "local_bytes": 16,
}


@pytest.mark.parametrize(("arch", "words"), [("sm_90", CUDA), ("gfx942", AMD), ("", AMD), (None, AMD)])
def test_an_architecture_has_its_words(arch: str | None, words: object) -> None:
    assert words_of(arch) is words


def test_the_devices_of_programs_have_their_words() -> None:
    assert words_of_devices(["0\tsm_90\tnvptx64-nvidia-cuda--sm_90\tNVIDIA H200"]) is CUDA
    assert words_of_devices(["0\tgfx942\tamdgcn-amd-amdhsa--gfx942\ta product called sm_90"]) is AMD
    assert words_of_devices([]) is AMD


def test_a_launch_on_an_amd_gpu() -> None:
    assert AMD.launch((500, 2, 1), (64, 1, 1)) == "500x2x1 work-items in 16 workgroups of 64x1x1"
    assert AMD.launch((64, 1, 1), (64, 1, 1), " x ") == "64 x 1 x 1 work-items in 1 workgroup of 64 x 1 x 1"
    document = {"dispatch": DISPATCH, "kernel": {"vgprs": 8, "sgprs": 4, "agprs": 0}}
    assert AMD.launch_lines(document) == [
        ("grid", "500x1x1 work-items in 8 workgroups of 64x1x1"),
        ("LDS", "2.0 KB a workgroup"),
        ("registers", "8 VGPRs, 4 SGPRs used"),
    ]
    assert len(AMD.launch_lines({"dispatch": DISPATCH, "kernel": {}})) == 2


def test_registers_say_whether_they_are_used_or_allocated() -> None:
    """A running program's descriptor has them rounded up, the code object exactly."""
    kernel = SimpleNamespace(vgprs=40, sgprs=32, lds_bytes=0, dynamic_lds_bytes=0, scratch_bytes=16)
    assert AMD.needs(kernel) == "40 VGPRs and 32 SGPRs allocated, LDS 0 B, scratch 16 B"  # type: ignore[arg-type]
    assert [heading for heading, _ in AMD.columns][:2] == ["vgprs used", "sgprs used"]


def test_a_launch_on_an_nvidia_gpu_is_in_blocks_with_the_threads_beside() -> None:
    assert CUDA.launch((1024, 4, 1), (256, 2, 1)) == "4x2x1 blocks of 256x2x1 threads (4096 in all)"
    document = {"dispatch": {**DISPATCH, "grid": [512, 1, 1]}, "cuda": LAUNCH}
    assert CUDA.launch_lines(document, " x ") == [
        (
            "grid",
            "8 x 1 x 1 blocks of 64 x 1 x 1 threads (512 in all), "
            "in clusters of 2 x 1 x 1 blocks, cooperative",
        ),
        ("shared", "1.0 KB static, 0 B dynamic a block"),
        ("registers", "40 a thread; 16 B of local memory"),
    ]


# What speaks of AMD GPUs alone; and the front ends' option for a grid, which names both.
OF_AMD = {
    "device_words.py",
    "hsaco_launch.py",
    "codeobject.py",
    "extract_command.py",
    "costs.py",
    "faults.py",
}
WORDS = re.compile(r"\b(work-?items?|workgroups?|wavefronts?|[VSA]GPRs?|LDS)\b")


def test_no_other_module_says_it_in_words_of_one_device() -> None:
    package = Path(kerncap.__file__).parent
    found = [
        (path.name, text)
        for path in package.rglob("*.py")
        if path.name not in OF_AMD and "demo" not in path.parts
        for text in shown_strings(path)
        if " " in text  # the keys of documents are the same for all devices
    ]
    found += [(path.name, path.read_text()) for path in templates_dir().rglob("*.j2")]
    assert [(name, text) for name, text in found if WORDS.search(text)] == []
