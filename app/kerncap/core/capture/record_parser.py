"""Takes capture.bin apart, checking every record's length, type and what it points to."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from kerncap.core.capture.records import (
    CHANGE_DTYPE,
    CHECKSUM_BLOCK,
    MAGIC,
    VERSION,
    Capture,
    Changes,
    CodeObject,
    CudaLaunch,
    Device,
    Dispatch,
    DispatchFlags,
    Kernarg,
    Process,
    RecordType,
    Region,
    RegionFlags,
    RegionKind,
    Variable,
)
from kerncap.core.device.memory_files import MAX_FILES, STRIPE_BYTES, MemoryFiles
from kerncap.core.errors import DAMAGED, DamagedCaptureError, unreadable

HEADER = struct.Struct("<8sIIQQQQQII")
RECORD_HEADER = struct.Struct("<II")
PROCESS = struct.Struct("<QIIII")
DEVICE = struct.Struct("<IIIIQQIIII")
DISPATCH = struct.Struct("<64s7QII2Q4I")
KERNARG = struct.Struct("<QQ")
CODE_OBJECT = struct.Struct("<IIQQQQq")
VARIABLE = struct.Struct("<IIQQ")
REGION = struct.Struct("<IIQQQIIII")
CHECKSUMS = struct.Struct("<IIQ")
REPEATS = struct.Struct("<II")
REPEAT = struct.Struct("<QQ")
MOST_REPEATS = 8192
CUDA_LAUNCH = struct.Struct("<3I3I3I5I4iII")
CUDA_PARAMETER = struct.Struct("<II")
CUDA_ATTRIBUTE = struct.Struct("<II64s")


class Parser:
    """Takes the bytes of one capture.bin apart."""

    def __init__(self, path: Path, raw: bytes) -> None:
        self.path, self.raw = path, raw
        self.name = path / "capture.bin"

    def damaged(self, offset: int, what: str) -> DamagedCaptureError:
        return DamagedCaptureError(
            f"{self.name}: at offset {offset}: {what}{DAMAGED}",
            file="capture.bin",
            offset=offset,
        )

    def capture(self) -> Capture:
        raw = self.raw
        if len(raw) < HEADER.size:
            raise self.damaged(len(raw), f"the file ends here; its header alone takes {HEADER.size} bytes")
        fields = HEADER.unpack_from(raw)
        magic, version, header_bytes, file_bytes, pre, post, count, checksum, files, _ = fields
        if magic != MAGIC:
            raise self.damaged(0, "this is not a kerncap capture")
        if version != VERSION:
            raise DamagedCaptureError(
                f"{self.name}: at offset 8: the capture is of version {version}; this kerncap reads version "
                f"{VERSION}. " + ("Use a newer kerncap." if version > VERSION else "Extract it again."),
                file="capture.bin",
                offset=8,
            )
        if header_bytes != HEADER.size:
            raise self.damaged(12, f"a header of {header_bytes} bytes where {HEADER.size} are wanted")
        if len(raw) != file_bytes:
            raise self.damaged(
                min(len(raw), file_bytes), f"the file has {len(raw)} bytes, its header says {file_bytes}"
            )
        found = xxhash.xxh64_intdigest(raw[HEADER.size :])
        if found != checksum:
            raise self.damaged(
                HEADER.size, f"checksum {found:016x} where the header says {checksum:016x}; it was altered"
            )
        if files > min(MAX_FILES, max(1, -(-pre // STRIPE_BYTES))):
            raise self.damaged(56, f"memory.pre of {pre} bytes in {files} files")
        memory = MemoryFiles(self.path / "memory.pre", pre, max(files, 1))
        for number in range(memory.files):
            self._check_size(memory.name(number), memory.length(number))
        self._check_size("memory.post", post)
        capture = self._records(pre, post, count)
        capture.pre_files = memory.files
        return capture

    def _check_size(self, name: str, wanted: int) -> None:
        file = self.path / name
        try:
            size = file.stat().st_size
        except OSError as error:
            if wanted == 0:
                return
            raise unreadable(file, error, DamagedCaptureError, DAMAGED, file=name, offset=0) from error
        if size != wanted:
            raise DamagedCaptureError(
                f"{file}: at offset {min(size, wanted)}: the file has {size} bytes, the capture says "
                f"{wanted}; it was cut short or altered, extract it again",
                file=name,
                offset=min(size, wanted),
            )

    def _records(self, pre: int, post: int, count: int) -> Capture:
        raw, offset, seen = self.raw, HEADER.size, 0
        process: Process | None = None
        dispatch: Dispatch | None = None
        kernarg: Kernarg | None = None
        cuda_launch: CudaLaunch | None = None
        devices: list[Device] = []
        code_objects: list[CodeObject] = []
        variables: list[Variable] = []
        regions: list[Region] = []
        changes: list[Changes] = []
        repeats: dict[int, dict[int, int]] = {0: {}, 1: {}}
        repeats_at = {0: 0, 1: 0}
        sums: dict[int, list[tuple[int, npt.NDArray[np.uint64]]]] = {0: [], 1: []}
        ended = False
        while offset < len(raw):
            if ended:
                raise self.damaged(offset, "records after the end record")
            kind, size = self._header(offset)
            at = offset + RECORD_HEADER.size
            end = offset + size
            if kind == RecordType.CHANGE:
                run = self._change_run(offset)
                changes.append(run)
                offset += run.nbytes
                seen += len(run)
                continue
            if kind == RecordType.PROCESS:
                realtime, pid, *lengths = self._fixed(PROCESS, at, end)
                process = Process(realtime, pid, *self._strings(at + PROCESS.size, end, lengths))
            elif kind == RecordType.DEVICE:
                *numbers, simulated, isa_len, name_len, product_len = self._fixed(DEVICE, at, end)
                isa, name, product = self._strings(at + DEVICE.size, end, [isa_len, name_len, product_len])
                index, units, wave, lds, cache, clock = numbers
                devices.append(
                    Device(index, units, wave, lds, cache, clock, bool(simulated), isa, name, product)
                )
            elif kind == RecordType.DISPATCH:
                dispatch = self._dispatch(at, end)
            elif kind == RecordType.KERNARG:
                address, length = self._fixed(KERNARG, at, end)
                if at + KERNARG.size + length > end:
                    raise self.damaged(at, f"kernargs of {length} bytes do not fit their record")
                start = at + KERNARG.size
                kernarg = Kernarg(address, raw[start : start + length])
            elif kind == RecordType.CUDA_LAUNCH:
                cuda_launch = self._cuda_launch(at, end)
            elif kind == RecordType.CODE_OBJECT:
                ident, uri_length, content, length, base, extent, delta = self._fixed(CODE_OBJECT, at, end)
                (uri,) = self._strings(at + CODE_OBJECT.size, end, [uri_length])
                code_objects.append(CodeObject(ident, uri, content, length, base, extent, delta))
            elif kind == RecordType.VARIABLE:
                code, name_length, address, length = self._fixed(VARIABLE, at, end)
                (name,) = self._strings(at + VARIABLE.size, end, [name_length])
                variables.append(Variable(code, name, address, length))
            elif kind == RecordType.REGION:
                regions.append(self._region(at, end, pre))
            elif kind == RecordType.CHECKSUMS:
                which, n, first = self._fixed(CHECKSUMS, at, end)
                if which not in sums or at + CHECKSUMS.size + 8 * n > end:
                    raise self.damaged(at, f"{n} checksums of file {which} do not fit their record")
                values = np.frombuffer(raw, "<u8", n, at + CHECKSUMS.size)
                sums[which].append((first, values))
            elif kind == RecordType.REPEATS:
                which = self._repeats(at, end, {0: pre, 1: post}, repeats)
                repeats_at[which] = offset
            elif kind == RecordType.END:
                ended = True
            else:
                raise self.damaged(offset, f"a record of type {kind}, which version {VERSION} does not have")
            offset = end
            seen += 1
        if not ended:
            raise self.damaged(len(raw), "there is no end record: the file was cut short")
        if seen != count:
            raise self.damaged(40, f"{seen} records where the header says {count}")
        if process is None or dispatch is None or kernarg is None or not devices:
            raise self.damaged(len(raw), "a process, device, dispatch or kernarg record is missing")
        if dispatch.code_object not in {c.id for c in code_objects}:
            raise self.damaged(len(raw), f"code object {dispatch.code_object} of the dispatch is missing")
        regions.sort(key=lambda r: r.address)
        merged = np.concatenate(changes) if changes else np.zeros(0, CHANGE_DTYPE)
        merged = merged[np.argsort(merged["address"], kind="stable")]
        self._check_changes(merged, regions, post)
        all_sums = {0: self._sums(sums[0], pre, 0), 1: self._sums(sums[1], post, 1)}
        for which, of_file in repeats.items():
            self._check_repeats(repeats_at[which], of_file, all_sums[which])
        return Capture(
            self.path,
            process,
            devices,
            dispatch,
            kernarg,
            code_objects,
            variables,
            regions,
            merged,
            pre,
            post,
            all_sums,
            [r.address for r in regions],
            cuda_launch,
            repeats=repeats,
        )

    def _cuda_launch(self, at: int, end: int) -> CudaLaunch:
        numbers = self._fixed(CUDA_LAUNCH, at, end)
        parameters, attributes = numbers[-2:]
        begin = at + CUDA_LAUNCH.size
        middle = begin + parameters * CUDA_PARAMETER.size
        last = middle + attributes * CUDA_ATTRIBUTE.size
        if last > end:
            what = f"{parameters} parameters and {attributes} attributes do not fit their record"
            raise self.damaged(at, what)
        static, dynamic, flags, registers, local, most_dynamic, carveout, non_portable, policy = numbers[9:18]
        return CudaLaunch(
            numbers[0:3],
            numbers[3:6],
            numbers[6:9],
            static,
            dynamic,
            bool(flags & 1),
            registers,
            local,
            most_dynamic,
            carveout,
            non_portable,
            policy,
            tuple(CUDA_PARAMETER.iter_unpack(self.raw[begin:middle])),
            tuple((key, value) for key, _, value in CUDA_ATTRIBUTE.iter_unpack(self.raw[middle:last])),
        )

    def _header(self, offset: int) -> tuple[int, int]:
        if offset + RECORD_HEADER.size > len(self.raw):
            raise self.damaged(offset, "the file ends within a record")
        kind, size = RECORD_HEADER.unpack_from(self.raw, offset)
        if size < RECORD_HEADER.size or size % 8 or offset + size > len(self.raw):
            raise self.damaged(offset, f"a record of type {kind} with an impossible length of {size} bytes")
        return kind, size

    def _fixed(self, layout: struct.Struct, at: int, end: int) -> tuple[Any, ...]:
        if at + layout.size > end:
            raise self.damaged(at, "a record that is shorter than its fixed part")
        return layout.unpack_from(self.raw, at)

    def _strings(self, at: int, end: int, lengths: list[int]) -> list[str]:
        out = []
        for length in lengths:
            if at + length > end:
                raise self.damaged(at, f"a string of {length} bytes does not fit its record")
            out.append(self.raw[at : at + length].decode("utf-8", "replace"))
            at += length
        return out

    def _dispatch(self, at: int, end: int) -> Dispatch:
        f = self._fixed(DISPATCH, at, end)
        symbol, demangled = self._strings(at + DISPATCH.size, end, [f[13], f[14]])
        return Dispatch(
            packet=f[0],
            kernel_id=f[1],
            nth_of_kernel=f[2],
            nth_overall=f[3],
            queue_id=f[4],
            start_ns=f[5],
            end_ns=f[6],
            descriptor_address=f[7],
            code_object=f[8],
            flags=DispatchFlags(f[9]),
            reachable_bytes=f[10],
            allocated_bytes=f[11],
            memory_mode=f[12],
            symbol=symbol,
            demangled=demangled or symbol,
        )

    def _region(self, at: int, end: int, pre: int) -> Region:
        ident, kind, address, size, pre_offset, flags, code, pool, reason_length = self._fixed(
            REGION, at, end
        )
        (reason,) = self._strings(at + REGION.size, end, [reason_length])
        try:
            kind = RegionKind(kind)
        except ValueError:
            raise self.damaged(at + 4, f"a region of unknown kind {kind}") from None
        if flags & RegionFlags.SAVED and pre_offset + size > pre:
            raise self.damaged(at, f"region {ident} reaches past the end of memory.pre ({pre} bytes)")
        return Region(ident, kind, address, size, pre_offset, RegionFlags(flags), code, pool, reason)

    def _change_run(self, offset: int) -> Changes:
        """The change records that follow one another from `offset` on."""
        size = CHANGE_DTYPE.itemsize
        count = min((len(self.raw) - offset) // size, 1 << 16)
        run = np.frombuffer(self.raw, CHANGE_DTYPE, count, offset)
        good = (run["type"] == RecordType.CHANGE) & (run["record_bytes"] == size)
        length = count if bool(good.all()) else int(np.argmin(good))
        if length == 0:
            raise self.damaged(offset, "a change record with a wrong length")
        return run[:length]

    def _check_changes(self, changes: Changes, regions: list[Region], post: int) -> None:
        if len(changes) == 0:
            return
        saved = sorted((r for r in regions if r.saved), key=lambda r: r.id)
        known = np.array([r.id for r in saved] or [-1], np.int64)
        ids = changes["region"].astype(np.int64)
        at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        strange = known[at] != ids
        if bool(strange.any()):
            ident = int(ids[strange][0])
            raise self.damaged(len(self.raw), f"changes of region {ident}, which is not saved")
        begin = np.array([r.address for r in saved], np.uint64)[at]
        end = np.array([r.end for r in saved], np.uint64)[at]
        outside = (changes["address"] < begin) | (changes["address"] + changes["bytes"] > end)
        if bool(outside.any()):
            raise self.damaged(len(self.raw), f"a change outside of its region {int(ids[outside][0])}")
        if int((changes["post_offset"] + changes["bytes"]).max()) > post:
            raise self.damaged(len(self.raw), f"a change past the end of memory.post ({post} bytes)")

    def _repeats(
        self, at: int, end: int, lengths: dict[int, int], all_repeats: dict[int, dict[int, int]]
    ) -> int:
        """Adds a record's repeats to those of its memory file, and gives that file's number."""
        which: int
        which, count = self._fixed(REPEATS, at, end)
        begin = at + REPEATS.size
        if which not in lengths:
            raise self.damaged(at, f"repeats of file {which}, which there is not")
        repeats, whole = all_repeats[which], lengths[which] // CHECKSUM_BLOCK
        if begin + count * REPEAT.size > end:
            raise self.damaged(at, f"{count} repeats do not fit their record")
        for where in range(begin, begin + count * REPEAT.size, REPEAT.size):
            block, source = REPEAT.unpack_from(self.raw, where)
            what = f"block {block} as a repeat of block {source}"
            if block >= whole or source >= whole:
                raise self.damaged(where, f"{what}, of {whole} whole ones")
            if block in repeats:
                raise self.damaged(where, f"{what}, a second time")
            repeats[block] = source
        if len(repeats) > MOST_REPEATS:
            raise self.damaged(at, f"more than {MOST_REPEATS} repeats")
        return which

    def _check_repeats(self, at: int, repeats: dict[int, int], sums: npt.NDArray[np.uint64]) -> None:
        """What can only be said once all records are read."""
        for block, source in repeats.items():
            what = f"block {block} as a repeat of block {source}"
            if source in repeats:
                raise self.damaged(at, f"{what}, which is one itself")
            if sums[block] != sums[source]:
                raise self.damaged(at, f"{what}, which has another checksum")

    def _sums(
        self, parts: list[tuple[int, npt.NDArray[np.uint64]]], length: int, which: int
    ) -> npt.NDArray[np.uint64]:
        wanted = -(-length // CHECKSUM_BLOCK)
        out = np.zeros(wanted, np.uint64)
        covered = np.zeros(wanted, bool)
        for first, values in parts:
            if first + len(values) > wanted:
                raise self.damaged(len(self.raw), f"more checksums than file {which} has blocks")
            out[first : first + len(values)] = values
            covered[first : first + len(values)] = True
        if not bool(covered.all()):
            raise self.damaged(
                len(self.raw), f"block {int(np.argmin(covered))} of file {which} has no checksum"
            )
        return out
