"""Reading captures: what is there is read exactly; damage is named by file and offset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from make_capture import DEVICE, HOST, Memory, Spec, write

from kerncap.cli import inspect_command
from kerncap.core.capture import manifest, record_parser
from kerncap.core.capture.reading import read_capture
from kerncap.core.errors import DamagedCaptureError, UsageError


@pytest.fixture
def spec() -> Spec:
    rng = np.random.default_rng(1)
    before = rng.integers(0, 256, 3 << 20, np.uint8)
    after = before.copy()
    after[1000:1004] ^= 0xFF
    after[2_000_000:2_000_100] ^= 1
    return Spec(
        hsaco=b"\x7fELF" + bytes(100),
        symbol="_Z4vaddPKfS0_Pfi",
        demangled="vadd(float const*, float const*, float*, int)",
        grid=(1024, 2, 1),
        workgroup=(256, 1, 1),
        kernargs=bytes(range(40)),
        memory=[
            Memory(0x7E1000000000, before, after, DEVICE),
            Memory(0x7E2000000100, np.arange(10, dtype=np.int32), None, HOST),
            Memory(0x7E3000000000, np.zeros(4096, np.uint8), None, DEVICE, saved=False, reason="IPC memory"),
        ],
        variables=[("table", 0x7D0000000100, 64)],
    )


def test_everything_is_read(tmp_path: Path, spec: Spec) -> None:
    capture = read_capture(write(tmp_path / "capture", spec))
    assert capture.dispatch.symbol == spec.symbol
    assert capture.dispatch.demangled == spec.demangled
    assert capture.dispatch.grid == (1024, 2, 1)
    assert capture.dispatch.workgroup == (256, 1, 1)
    assert capture.dispatch.kernarg_address == spec.kernarg_address
    assert capture.kernarg.data == spec.kernargs
    assert capture.device.name == "gfx942"
    assert capture.device.simulated
    assert capture.code_path().read_bytes() == spec.hsaco
    assert [r.address for r in capture.regions] == [m.address for m in spec.memory]
    assert capture.regions[2].reason == "IPC memory"
    assert not capture.regions[2].saved
    assert capture.variables[0].name == "table"
    assert capture.changed_bytes() == 104
    capture.verify()


def test_before_and_after(tmp_path: Path, spec: Spec) -> None:
    capture = read_capture(write(tmp_path / "x" / "capture", spec).parent)
    memory = spec.memory[0]
    assert np.array_equal(capture.before(memory.address, 3 << 20), memory.bytes_before)
    assert np.array_equal(capture.after(memory.address, 3 << 20), memory.bytes_after)
    assert np.array_equal(capture.after(memory.address + 1002, 5), memory.bytes_after[1002:1007])
    with pytest.raises(KeyError):
        capture.before(0x7E3000000000, 1)


def test_regions_are_found_by_address(tmp_path: Path, spec: Spec) -> None:
    capture = read_capture(write(tmp_path / "capture", spec))
    assert capture.region_at(0x7E1000000000 - 1) is None
    assert capture.region_at(0x7E1000000000).id == 1
    assert capture.region_at(0x7E2000000100 + 39).id == 2
    assert capture.region_at(0x7E2000000100 + 40) is None
    region, distance = capture.nearest_region(0x7E2000000100 + 40)
    assert (region.id, distance) == (2, 1)


@pytest.mark.parametrize(("name", "offset"), [("memory.pre", 1_500_000), ("memory.post", 3)])
def test_a_flipped_byte_is_found(tmp_path: Path, spec: Spec, name: str, offset: int) -> None:
    path = write(tmp_path / "capture", spec)
    data = bytearray((path / name).read_bytes())
    data[offset] ^= 4
    (path / name).write_bytes(data)
    capture = read_capture(path)
    with pytest.raises(DamagedCaptureError) as error:
        capture.verify()
    assert name in str(error.value)
    assert f"offset {offset >> 20 << 20}" in str(error.value)


@pytest.mark.parametrize("name", ["memory.pre", "memory.post", "capture.bin"])
def test_a_file_cut_short_is_found(tmp_path: Path, spec: Spec, name: str) -> None:
    path = write(tmp_path / "capture", spec)
    data = (path / name).read_bytes()
    (path / name).write_bytes(data[:-5])
    with pytest.raises(DamagedCaptureError) as error:
        read_capture(path)
    assert name in str(error.value)
    assert f"offset {len(data) - 5}" in str(error.value)


def test_every_flipped_byte_of_capture_bin_is_found(tmp_path: Path, spec: Spec) -> None:
    path = write(tmp_path / "capture", spec)
    good = (path / "capture.bin").read_bytes()
    assert len(good) < 5000
    for offset in range(60):  # the header but its reserved word
        data = bytearray(good)
        data[offset] ^= 2
        (path / "capture.bin").write_bytes(data)
        with pytest.raises(DamagedCaptureError):
            read_capture(path)
    for offset in range(64, len(good), 7):
        data = bytearray(good)
        data[offset] ^= 1
        (path / "capture.bin").write_bytes(data)
        with pytest.raises(DamagedCaptureError, match=r"capture\.bin"):
            read_capture(path)


def test_a_newer_version_is_refused(tmp_path: Path, spec: Spec) -> None:
    spec.version = 2
    path = write(tmp_path / "capture", spec)
    with pytest.raises(DamagedCaptureError, match=r"version 2.*newer kerncap"):
        read_capture(path)


def test_an_altered_code_object_is_found(tmp_path: Path, spec: Spec) -> None:
    path = write(tmp_path / "capture", spec)
    file = next((path / "code").iterdir())
    file.write_bytes(b"\x7fELG" + bytes(100))
    with pytest.raises(DamagedCaptureError, match=r"\.hsaco"):
        read_capture(path).verify()


def test_no_capture(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no capture here"):
        read_capture(tmp_path)


@pytest.fixture
def striped(tmp_path: Path, spec: Spec) -> Path:
    """A capture of 103 MiB in three files."""
    large = np.random.default_rng(2).integers(0, 256, 100 << 20, np.uint8)
    changed = large.copy()
    changed[-1] ^= 1
    spec.memory.append(Memory(0x7E4000000000, large, changed))
    spec.files = 3
    return write(tmp_path / "striped", spec)


def test_memory_in_several_files_is_read_as_one(striped: Path, spec: Spec) -> None:
    capture = read_capture(striped)
    assert [
        (striped / name).stat().st_size >> 20 for name in ("memory.pre", "memory.pre.1", "memory.pre.2")
    ] == [
        39,
        32,
        32,
    ]
    capture.verify()
    for memory in (spec.memory[0], spec.memory[-1]):
        size = len(memory.bytes_before)
        assert np.array_equal(capture.before(memory.address, size), memory.bytes_before)
        assert np.array_equal(capture.after(memory.address, size), memory.bytes_after)
    assert capture.changed_bytes() == 105
    files = manifest.build(capture)["files"]
    assert [files[name]["bytes"] for name in ("memory.pre", "memory.pre.1", "memory.pre.2")] == [
        (striped / name).stat().st_size for name in ("memory.pre", "memory.pre.1", "memory.pre.2")
    ]


def test_damage_in_one_of_several_files_is_found_there(striped: Path) -> None:
    name = striped / "memory.pre.1"
    data = bytearray(name.read_bytes())
    data[5 << 20] ^= 4
    name.write_bytes(data)
    with pytest.raises(DamagedCaptureError, match=rf"memory\.pre\.1: the block .* offset {5 << 20} "):
        read_capture(striped).verify()
    done = CliRunner().invoke(inspect_command.command, [str(name)])
    assert isinstance(done.exception, UsageError)
    assert "is a part of a capture" in str(done.exception)
    name.write_bytes(data[:-1])
    with pytest.raises(DamagedCaptureError, match=r"memory\.pre\.1: at offset"):
        read_capture(striped)
    name.unlink()
    with pytest.raises(
        DamagedCaptureError, match=r"memory\.pre\.1 is missing; the capture is damaged, extract it again"
    ):
        read_capture(striped)


@pytest.fixture
def repeating(spec: Spec) -> Spec:
    """3 MiB, and 25 times the same 4 MiB, but for block 70, of zeros. Four blocks of them are written."""
    same = np.tile(np.random.default_rng(3).integers(0, 256, 4 << 20, np.uint8), 25)
    same[67 << 20 : 68 << 20] = 0
    spec.memory = [spec.memory[0], Memory(0x7E4000000000, same)]
    # Some have their bytes behind them, some before; the last three of each four in another file than the
    # first where there are three.
    written = range(31, 35)
    spec.repeats = [
        (block, written[(block - 3) % 4]) for block in range(3, 103) if block not in (*written, 70)
    ]
    return spec


@pytest.mark.parametrize("filler", [0, 0xA5])
@pytest.mark.parametrize("files", [1, 3])
def test_a_repeated_block_is_read_from_where_its_bytes_are(
    tmp_path: Path, repeating: Spec, files: int, filler: int
) -> None:
    repeating.files, repeating.filler = files, filler
    path = write(tmp_path / "capture", repeating)
    capture = read_capture(path)
    capture.verify()
    for memory in repeating.memory:
        assert np.array_equal(capture.before(memory.address, len(memory.bytes_before)), memory.bytes_before)
    assert capture.changed_bytes() == 104
    names = ["memory.pre", "memory.pre.1", "memory.pre.2"][:files]
    if filler == 0:
        assert sum((path / name).stat().st_blocks for name in names) * 512 <= (8 << 20)
    document = manifest.build(capture)
    assert document["memory"]["repeated_bytes"] == 95 << 20
    manifest.write(path, {**document, "state": manifest.COMPLETE})
    done = CliRunner().invoke(inspect_command.command, [str(path)])
    assert "2 regions, 108.0 MB (reachable); 104 B changed; 99.6 MB repeat other blocks" in done.output


def test_a_repeated_block_of_what_the_kernel_wrote_is_read_from_where_its_bytes_are(
    tmp_path: Path, spec: Spec
) -> None:
    block = np.random.default_rng(4).integers(1, 256, 1 << 20, np.uint8)
    after = np.concatenate([np.tile(block, 5), block[:1000]])
    spec.memory = [Memory(0x7E4000000000, np.zeros_like(after), after)]
    spec.post_repeats, spec.filler = [(0, 2), (1, 2), (4, 2)], 0xA5
    path = write(tmp_path / "capture", spec)
    capture = read_capture(path)
    capture.verify()
    assert np.array_equal(capture.after(0x7E4000000000, len(after)), after)
    assert manifest.build(capture)["memory"]["repeated_bytes"] == 3 << 20
    data = bytearray((path / "memory.post").read_bytes())
    data[(2 << 20) + 5] ^= 4
    (path / "memory.post").write_bytes(data)
    with pytest.raises(DamagedCaptureError) as error:
        read_capture(path).verify()
    assert (error.value.details["file"], error.value.details["offset"]) == ("memory.post", 2 << 20)
    spec.post_repeats = [(5, 0)]
    with pytest.raises(DamagedCaptureError, match="block 5 as a repeat of block 0, of 5 whole ones"):
        read_capture(write(tmp_path / "other", spec))


@pytest.mark.parametrize("files", [1, 3])
def test_damage_of_a_repeated_block_is_found_where_its_bytes_are(
    tmp_path: Path, repeating: Spec, files: int
) -> None:
    repeating.files = files
    path = write(tmp_path / "capture", repeating)
    name, offset = (path / "memory.pre", 33 << 20) if files == 1 else (path / "memory.pre.1", 1 << 20)
    data = bytearray(name.read_bytes())
    data[offset + 5] ^= 4
    name.write_bytes(data)
    with pytest.raises(DamagedCaptureError) as error:
        read_capture(path).verify()
    assert (error.value.details["file"], error.value.details["offset"]) == (name.name, offset)


@pytest.mark.parametrize(
    ("repeats", "text"),
    [
        ([(3, 4), (103, 3)], "block 103 as a repeat of block 3, of 103 whole ones"),
        ([(4, 103)], "block 4 as a repeat of block 103, of 103 whole ones"),
        ([(4, 1 << 60)], "block 4 as a repeat of block 1152921504606846976, of 103 whole ones"),
        ([(4, 3), (5, 3), (4, 5)], "block 4 as a repeat of block 5, a second time"),
        ([(4, 5), (5, 3)], "block 4 as a repeat of block 5, which is one itself"),
        ([(4, 4)], "block 4 as a repeat of block 4, which is one itself"),
        ([(4, 2)], "block 4 as a repeat of block 2, which has another checksum"),
        ([(4, 3)] * 8193, "a second time"),
    ],
)
def test_repeats_that_cannot_be_are_refused(
    tmp_path: Path, repeating: Spec, repeats: list[tuple[int, int]], text: str
) -> None:
    repeating.memory.append(Memory(0x7E5000000000, np.ones(1000, np.uint8)))  # block 103, a short one
    repeating.repeats = repeats
    with pytest.raises(DamagedCaptureError, match=rf"capture\.bin: at offset \d+: .*{text}"):
        read_capture(write(tmp_path / "capture", repeating))


def test_more_repeats_than_a_reader_can_map_are_refused(
    tmp_path: Path, repeating: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "capture", repeating)
    monkeypatch.setattr(record_parser, "MOST_REPEATS", 95)
    read_capture(path)
    monkeypatch.setattr(record_parser, "MOST_REPEATS", 94)
    with pytest.raises(DamagedCaptureError, match=r"at offset .*more than 94 repeats"):
        read_capture(path)


def test_more_files_than_a_capture_has_are_refused(tmp_path: Path, spec: Spec) -> None:
    spec.files = 65
    with pytest.raises(DamagedCaptureError, match="in 65 files"):
        read_capture(write(tmp_path / "capture", spec))
