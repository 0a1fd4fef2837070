"""Code objects of every container, made by a compiler; and damaged ones."""

from __future__ import annotations

import hashlib
import random
import struct
import subprocess
import time
import zlib
from pathlib import Path

import pytest
import zstandard

from kerncap.cli.entry import run
from kerncap.core.build.toolchain import zig
from kerncap.core.code.arguments import named_kernel
from kerncap.core.code.bundle import write_bundle
from kerncap.core.code.codeobject import CodeObject, CodeObjectError, Target
from kerncap.core.code.dwarf import kernel_debug, parameters_by_kernel, variable_types
from kerncap.core.code.inlining import called_at
from kerncap.core.code.reading import find_kernel, read_code_object, read_file, select
from kerncap.core.errors import KerncapError

SOURCE = """
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
struct Block { _Float16 d; signed char qs[32]; float scale[2]; Block* next; };
struct Pair { float* p; int n; };
typedef float float4_t __attribute__((ext_vector_type(4)));
__constant__ int table[16];
__device__ float counter = 1;
namespace ns {
template <typename T>
__global__ void __attribute__((amdgpu_flat_work_group_size(64, 128)))
first(const Block* __restrict__ b, T* out, void* raw, float4_t* v, int n, Pair pair) {
  __shared__ T lds[256];
  int i = __builtin_amdgcn_workitem_id_x();
  lds[i] = b->d + n;
  __builtin_amdgcn_s_barrier();
  out[i] = lds[i ^ 1] + table[i & 15] + counter + pair.p[pair.n];
  v[1] = v[0];
}
template __global__ void first<double>(const Block*, double*, void*, float4_t*, int, Pair);
}
extern "C" __global__ void second(float* p) { p[__builtin_amdgcn_workgroup_id_x()] = 1; }
"""
FIRST = "_ZN2ns5firstIdEEvPK5BlockPT_PvPDv4_fi4Pair"


def build(folder: Path, arch: str, *flags: str) -> Path:
    program = zig()
    assert program, "the tests need the ziglang package: pip install 'kerncap[sim]'"
    source, made, linked = folder / "two.hip", folder / f"{arch}.o", folder / f"{arch}{len(flags)}.hsaco"
    source.write_text(SOURCE)
    options = ["-x", "hip", "--cuda-device-only", f"--offload-arch={arch}", "-nogpuinc", "-nogpulib", "-O3"]
    action = ["-S", "-Xclang", "-emit-obj", *flags, str(source), "-o", str(made)]
    subprocess.run([program, "clang", *options, *action], check=True, timeout=60)
    subprocess.run([program, "ld.lld", "-shared", str(made), "-o", str(linked)], check=True, timeout=60)
    return linked


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("objects")
    made = {arch: build(folder, arch) for arch in ("gfx942", "gfx90a", "gfx1100")}
    made["xnack"] = build(folder, "gfx942:xnack-")
    made["debug"] = build(folder, "gfx942", "-g")
    made["v4"] = build(folder, "gfx942", "-mcode-object-version=4", "-DV4")
    return made


def bundle_of(objects: dict[str, Path], align: int = 4096) -> bytes:
    rows = [("host-x86_64-unknown-linux--", b"")]
    rows += [
        (f"hipv4-amdgcn-amd-amdhsa--{a}", objects[a].read_bytes()) for a in ("gfx942", "gfx90a", "gfx1100")
    ]
    return write_bundle(rows, align)


def compressed(content: bytes, version: int, method: int, damage: int = 0) -> bytes:
    """A "CCOB" blob by the table of LLVM's documentation, written here a second time on purpose."""
    stream = zlib.compress(content) if method == 0 else zstandard.ZstdCompressor().compress(content)
    digest = hashlib.md5(content).digest()[8:]
    if version == 1:
        return b"CCOB" + struct.pack("<HHI", 1, method, len(content) + damage) + digest + stream
    total = len(stream) + (24 if version == 2 else 32)
    sizes = struct.pack("<II" if version == 2 else "<QQ", total, len(content) + damage)
    return b"CCOB" + struct.pack("<HH", version, method) + sizes + digest + stream


def elf_with(section: str, content: bytes, folder: Path) -> Path:
    """A host library with that section."""
    program = zig()
    assert program
    payload, assembly, made = folder / "payload", folder / "payload.s", folder / "libprogram.so"
    payload.write_bytes(content)
    assembly.write_text(f'.section {section},"a",@progbits\n.p2align 12\n.incbin "{payload}"\n')
    words = [program, "clang", "-target", "x86_64-linux-gnu", "-c", str(assembly), "-o", str(folder / "p.o")]
    subprocess.run(words, check=True, timeout=60)
    subprocess.run(
        [program, "ld.lld", "-shared", str(folder / "p.o"), "-o", str(made)], check=True, timeout=60
    )
    return made


def test_kernel_arguments_and_resources(objects: dict[str, Path]) -> None:
    made = read_code_object(objects["gfx942"])
    assert (str(made.target), made.version, made.relocatable) == ("amdgcn-amd-amdhsa--gfx942", 6, False)
    assert sorted(made.kernel_names) == sorted([FIRST, "second"])
    kernel = made.kernel(FIRST)
    assert [(a.offset, a.size, a.value_kind) for a in kernel.explicit_arguments] == [
        (0, 8, "global_buffer"),
        (8, 8, "global_buffer"),
        (16, 8, "global_buffer"),
        (24, 8, "global_buffer"),
        (32, 4, "by_value"),
        (40, 16, "by_value"),
    ]
    assert kernel.lds_bytes == 256 * 8
    assert kernel.wavefront == 64
    assert (kernel.required_workgroup, kernel.max_workgroup) == (None, 128)
    assert kernel.vgprs > 0
    assert kernel.sgprs > 0
    assert kernel.kernarg_bytes >= 56
    assert made.kernel("second").explicit_arguments[0].address_space == "global"
    assert {(v.name, v.size) for v in made.variables} == {("table", 64), ("counter", 4)}


def test_descriptor_agrees_with_the_metadata(objects: dict[str, Path]) -> None:
    made = read_code_object(objects["gfx90a"])
    descriptor = made.descriptor("second")
    entry = next(s for s in made.elf.symbols if s.name == "second")
    assert descriptor.address + descriptor.entry_offset == entry.value
    assert descriptor.accum_offset % 4 == 0
    assert read_code_object(objects["gfx1100"]).descriptor("second").wave32


def test_code_object_version_4(objects: dict[str, Path]) -> None:
    made = read_code_object(objects["v4"])
    assert made.version == 4
    assert made.kernel("second").explicit_arguments[0].size == 8


def test_a_library_linked_of_several_objects_has_the_kernels_of_all(tmp_path: Path) -> None:
    program = zig()
    assert program
    parts = []
    for name in ("one", "two", "three"):  # as Tensile's libraries are made: a metadata note an object
        source = tmp_path / f"{name}.hip"
        text = f'extern "C" __attribute__((global)) void {name}(int* p, long n) {{ p[n] = 1; }}'
        source.write_text(text)
        parts.append(source.with_suffix(".o"))
        words = [program, "clang", "-x", "hip", "--cuda-device-only", "--offload-arch=gfx90a", "-nogpulib"]
        words += ["-nogpuinc", "-O2", "-mcode-object-version=4", "-S", "-Xclang", "-emit-obj"]
        subprocess.run([*words, str(source), "-o", str(parts[-1])], check=True, timeout=120)
    library = tmp_path / "library.co"
    subprocess.run(
        [program, "ld.lld", "-shared", *map(str, parts), "-o", str(library)], check=True, timeout=60
    )
    found = read_code_object(library)
    assert found.kernel_names == ["one", "two", "three"]
    assert all(found.describes(name) and found.kernel(name).arguments for name in found.kernel_names)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("amdgpu9.42-amd-amdhsa-unknown-gfx942", ("amdgcn-amd-amdhsa", "gfx942", {})),
        ("amdgcn-amd-amdhsa--gfx942:xnack-", ("amdgcn-amd-amdhsa", "gfx942", {"xnack": False})),
        ("amdgcn-amd-amdhsa--gfx9-4-generic", ("amdgcn-amd-amdhsa", "gfx9-4-generic", {})),
        ("gfx9-4-generic", ("amdgcn-amd-amdhsa", "gfx9-4-generic", {})),
        ("nvptx64-nvidia-cuda--sm_90", ("nvptx64-nvidia-cuda", "sm_90", {})),
    ],
)
def test_target_ids_of_all_compilers(text: str, parts: tuple[str, str, dict[str, bool]]) -> None:
    target = Target.parse(text)
    assert (target.triple, target.arch, dict(target.features)) == parts


def test_target_features(objects: dict[str, Path]) -> None:
    target = read_code_object(objects["xnack"]).target
    assert (target.arch, target.features, target.offload_arch) == (
        "gfx942",
        {"xnack": False},
        "gfx942:xnack-",
    )
    assert target.runs_on(Target.parse("amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"))
    assert not target.runs_on(Target.parse("gfx942:xnack+"))
    assert not target.runs_on(Target.parse("gfx90a:xnack-"))


@pytest.mark.parametrize("align", [1, 8, 4096])
def test_uncompressed_bundle(objects: dict[str, Path], tmp_path: Path, align: int) -> None:
    path = tmp_path / "fat"
    path.write_bytes(bundle_of(objects, align))
    found = list(read_file(path))
    assert [c.target.arch for c in found] == ["gfx942", "gfx90a", "gfx1100"]
    for code_object in found:
        assert bytes(code_object.data) == objects[code_object.target.arch].read_bytes()
        assert path.read_bytes()[code_object.offset :].startswith(b"\x7fELF")


@pytest.mark.parametrize("method", [0, 1])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_compressed_bundle(objects: dict[str, Path], tmp_path: Path, version: int, method: int) -> None:
    path = tmp_path / "fat"
    path.write_bytes(compressed(bundle_of(objects), version, method))
    assert [c.kernel("second").name for c in read_file(path)] == ["second"] * 3
    assert all(c.compressed for c in read_file(path))


def test_program_with_several_fat_binaries(objects: dict[str, Path], tmp_path: Path) -> None:
    one = bundle_of(objects)
    pieces = [one, compressed(one, 1, 0), compressed(one, 2, 1), compressed(one, 3, 0), one]
    content = b"".join(p + bytes(-len(p) % 4096) for p in pieces)
    path = elf_with(".hip_fatbin", content, tmp_path)
    assert [c.target.arch for c in read_file(path)] == ["gfx942", "gfx90a", "gfx1100"] * len(pieces)
    assert len(list(find_kernel(path, FIRST, Target.parse("gfx90a:sramecc+:xnack-")))) == len(pieces)
    assert list(find_kernel(path, "thir")) == []


def test_program_with_a_lone_code_object(objects: dict[str, Path], tmp_path: Path) -> None:
    """clang's -fcuda-include-gpubinary embeds what it is given: a .hsaco then lies there without a bundle."""
    path = elf_with(".hip_fatbin", objects["gfx942"].read_bytes(), tmp_path)
    assert [c.target.arch for c in read_file(path)] == ["gfx942"]


def test_selection_prefers_the_closest_target(objects: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "fat"
    rows = [
        ("hipv4-amdgcn-amd-amdhsa--gfx942", "gfx942"),
        ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack-", "xnack"),
    ]
    path.write_bytes(write_bundle([(i, objects[k].read_bytes()) for i, k in rows]))
    assert select(path, Target.parse("gfx942:sramecc+:xnack-")).target.features == {"xnack": False}
    assert select(path, Target.parse("gfx942:sramecc+:xnack+")).target.features == {}
    with pytest.raises(CodeObjectError, match=r"no code for gfx1100; it has gfx942, gfx942:xnack-"):
        select(path, Target.parse("gfx1100"))


def test_what_is_no_code_object_is_told(tmp_path: Path, objects: dict[str, Path]) -> None:
    text, host, empty = tmp_path / "a.txt", elf_with(".nothing", b"x", tmp_path), tmp_path / "empty"
    text.write_text("hello")
    empty.write_bytes(b"")
    for path, message in (
        (text, "no code object"),
        (host, "without code for a GPU"),
        (empty, "empty"),
        (tmp_path, "is a directory"),
        (tmp_path / ("n" * 300), "cannot be read"),
    ):
        with pytest.raises(CodeObjectError, match=message):
            list(read_file(path))
    with pytest.raises(CodeObjectError, match=r"has no kernel third; it has .*second"):
        read_code_object(objects["gfx942"]).kernel("third")


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [0, 1])
def test_damaged_compressed_bundles(
    objects: dict[str, Path], tmp_path: Path, version: int, method: int
) -> None:
    good = compressed(bundle_of(objects), version, method)
    bad = [good[: len(good) // 2], compressed(bundle_of(objects), version, method, damage=5)]
    bad += [good[:4] + struct.pack("<H", 9) + good[6:], good[:6] + struct.pack("<H", 7) + good[8:], good[:10]]
    for content in bad:
        path = tmp_path / "fat"
        path.write_bytes(content)
        with pytest.raises(CodeObjectError):
            list(read_file(path))


@pytest.mark.parametrize("method", [0, 1])
def test_flipped_bits_are_never_taken_for_the_code(
    objects: dict[str, Path], tmp_path: Path, method: int
) -> None:
    """A bit of the stream may be without effect (a match moved within zeros); anything else is an error."""
    good, wanted = compressed(bundle_of(objects), 3, method), objects["gfx942"].read_bytes()
    refused = 0
    for position in range(40, len(good) - 8, len(good) // 60):
        flipped = bytearray(good)
        flipped[position] ^= 0x10
        path = tmp_path / f"fat{position}"
        path.write_bytes(flipped)
        try:
            assert bytes(next(read_file(path)).data) == wanted
        except CodeObjectError:
            refused += 1
    assert refused > 40


def test_damage_never_escapes_as_another_error(objects: dict[str, Path], tmp_path: Path) -> None:
    rng = random.Random(11)
    whole = {"object": objects["gfx942"].read_bytes(), "bundle": bundle_of(objects, 8)}
    path, failures = tmp_path / "damaged", 0
    for content in whole.values():
        for _ in range(400):
            data = bytearray(content[: rng.randrange(1, len(content))] if rng.random() < 0.5 else content)
            for _ in range(rng.randrange(4)):
                data[rng.randrange(min(len(data), 2048))] = rng.randrange(256)
            path.unlink(missing_ok=True)
            path.write_bytes(data)
            try:
                for code_object in read_file(path):
                    _ = list(code_object.kernels()), code_object.target, code_object.variables
                    code_object.descriptor("second")
            except KerncapError:
                failures += 1
    assert failures > 200


def test_debug_information(objects: dict[str, Path]) -> None:
    assert kernel_debug(read_code_object(objects["gfx942"]), FIRST) is None
    made = read_code_object(objects["debug"])
    debug = kernel_debug(made, FIRST)
    assert debug
    source = objects["debug"].parent / "two.hip"
    assert (debug.file, debug.unit) == (str(source), str(source))
    assert "first(" in source.read_text().splitlines()[debug.line - 1]
    block, out, raw, vector, count, pair = debug.parameters
    assert block.element
    assert (block.element.name, block.element.size) == ("const Block", 56)
    assert [(s.offset, s.encoding, s.size, s.count) for s in block.element.scalars] == [
        (0, "float", 2, 1),
        (2, "signed", 1, 32),
        (36, "float", 4, 2),
        (48, "pointer", 8, 1),
    ]
    assert out.element
    assert [(s.encoding, s.size) for s in out.element.scalars] == [("float", 8)]
    assert raw.element
    assert raw.element.scalars == ()
    assert vector.element
    assert [(s.encoding, s.size, s.count) for s in vector.element.scalars] == [("float", 4, 4)]
    assert count.element is None
    assert (pair.name, pair.type_name) == ("pair", "Pair")
    other = kernel_debug(made, "second")
    assert other
    assert "second" in source.read_text().splitlines()[other.line - 1]


def test_debug_information_that_is_damaged_is_as_none(
    objects: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """pyelftools asserts, overflows and recurses on it: never anything but a CodeObjectError."""
    rng, unread = random.Random(8), set()
    good = objects["debug"].read_bytes()
    sections = [s for s in read_code_object(objects["debug"]).elf.sections if s.name.startswith(".debug_")]
    path = tmp_path / "damaged.hsaco"
    for _ in range(150):
        data, section = bytearray(good), rng.choice(sections)
        for _ in range(rng.randrange(1, 4)):
            data[section.offset + rng.randrange(rng.choice((24, section.size)))] = rng.randrange(256)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        made = read_code_object(path)
        for read in (
            lambda made=made: kernel_debug(made, FIRST),
            lambda made=made: parameters_by_kernel(made),
            lambda made=made: variable_types(made, {"counter"}),
        ):
            try:
                read()
            except CodeObjectError as error:
                unread.add(type(error.__cause__))
        called_at(made, FIRST, 8)
        assert named_kernel(made, "second").explicit_arguments[0].size == 8
    assert len(unread) > 2
    unit = next(s for s in sections if s.name == ".debug_info").offset
    path.unlink()
    path.write_bytes(good[: unit + 7] + b"\x03" + good[unit + 8 :])  # addresses of three bytes
    with pytest.raises(CodeObjectError, match="debug information cannot be read") as caught:
        parameters_by_kernel(read_code_object(path))
    assert isinstance(caught.value.__cause__, AssertionError)
    assert run(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "its debug information cannot be read" in shown
    assert "second" in shown


def test_one_kernel_of_a_large_library_is_found_quickly(
    objects: dict[str, Path], tmp_path: Path
) -> None:  # C8
    """Hundreds of code objects, of which only the wanted one's metadata is unpacked."""
    filler, wanted = objects["gfx90a"].read_bytes(), objects["gfx942"].read_bytes()
    bundles = [write_bundle([("hipv4-amdgcn-amd-amdhsa--gfx90a", filler)])] * 600
    bundles.append(write_bundle([("hipv4-amdgcn-amd-amdhsa--gfx942", wanted)]))
    path = elf_with(".hip_fatbin", b"".join(b + bytes(-len(b) % 4096) for b in bundles), tmp_path)
    unpacked: list[CodeObject] = []
    started = time.perf_counter()
    for code_object in read_file(path):
        if code_object.entry_target.endswith("gfx942") and code_object.has_kernel("second"):
            unpacked.append(code_object)
    seconds = time.perf_counter() - started
    assert [c.kernel("second").name for c in unpacked] == ["second"]
    assert seconds < 2
