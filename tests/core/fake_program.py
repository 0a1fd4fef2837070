"""A program that looks to the front end like one with the interposer in it, without any GPU code.

It writes the session's statistics file and answers the control block, as its argument (a JSON document) says:
  kernels   list of {name, calls, ns, symbol?, code?, every?}: dispatched in this order, one after the other;
            of each kernel one in `every` is timed
  loaded    further names in the loaded code, never dispatched
  exit      exit status at the end          kill     signal that it sends itself at the end
  die       state (CaptureState name) in which a capture ends the process with SIGKILL
  fail      message with which every capture fails
  hang      seconds to sleep at the end     wait     seconds to sleep in the middle of a capture
  bytes     bytes in the captured buffer
  rejected, lost   counters       sampling  whether the program says that it does not time every dispatch
  children  list of such documents, each run as a child process
  print     text for stdout                pause    seconds between dispatches
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import xxhash

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "replay"))

import make_capture

from kerncap.core.code import layout, names
from kerncap.core.code.layout import CaptureState, RequestKind
from kerncap.core.program.control import process_start


class Kernel:
    def __init__(self, document: dict) -> None:
        self.name = document["name"]
        self.symbol = document.get("symbol", self.name)
        self.calls = document.get("calls", 1)
        self.ns = document.get("ns", 1000)
        self.every = document.get("every", 1)
        self.code_hash = xxhash.xxh64_intdigest(str(document.get("code", "")).encode())
        self.id = names.id_text(xxhash.xxh64_intdigest(f"{self.symbol}{document.get('code', '')}".encode()))
        self.index = 0
        self.done = 0


class Program:
    def __init__(self, spec: dict) -> None:
        self.spec = spec
        self.session = Path(os.environ["KERNCAP_SESSION"])
        self.kernels = [Kernel(k) for k in spec.get("kernels", ())]
        self.loaded = self.kernels + [Kernel({"name": n, "calls": 0}) for n in spec.get("loaded", ())]
        control = os.open(self.session / "control", os.O_RDWR)
        self.control_map = mmap.mmap(control, layout.CONTROL.itemsize)
        self.control = np.frombuffer(self.control_map, layout.CONTROL, 1)[0:1]
        self.open_live()

    def open_live(self) -> None:
        path = self.session / f"{os.getpid()}-{process_start(os.getpid())}.live"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(fd, layout.NAMES_OFFSET + (1 << 20))
        self.live = mmap.mmap(fd, layout.NAMES_OFFSET + (1 << 20))
        self.header = np.frombuffer(self.live, layout.LIVE_HEADER, 1)
        self.rows = np.frombuffer(self.live, layout.ROW, layout.MAX_ROWS, layout.ROWS_OFFSET)
        self.header["version"] = layout.VERSION
        self.header["row_bytes"] = layout.ROW_BYTES
        self.header["max_rows"] = layout.MAX_ROWS
        self.header["pid"] = os.getpid()
        self.header["parent_pid"] = os.getppid()
        self.header["clock"] = 1
        self.header["start_realtime_ns"] = time.time_ns()
        self.header["executable"] = b"/fake/program"
        self.header["lost"] = self.spec.get("lost", 0)
        self.header["sampling"] = self.spec.get("sampling", 0)
        self.header["rejected"] = self.spec.get("rejected", 0)
        self.header["magic"] = layout.LIVE_MAGIC
        self.name_bytes = 0

    def add_name(self, text: str) -> tuple[int, int]:
        data = text.encode()
        offset = self.name_bytes
        self.live[layout.NAMES_OFFSET + offset : layout.NAMES_OFFSET + offset + len(data)] = data
        self.name_bytes += len(data)
        self.header["name_bytes"] = self.name_bytes
        return offset, len(data)

    def row(self, kernel: Kernel) -> None:
        if kernel.index:
            return
        kernel.index = int(self.header["row_count"][0]) + 1
        row = self.rows[kernel.index : kernel.index + 1]
        row["id"] = int(kernel.id, 16)
        row["name_offset"], row["name_length"] = self.add_name(kernel.symbol)
        row["demangled_offset"], row["demangled_length"] = self.add_name(kernel.name)
        row["kind"] = 1
        row["code_hash"] = kernel.code_hash
        row["min_ns"] = np.iinfo(np.uint64).max
        self.header["row_count"] = kernel.index

    def request(self) -> tuple[str, bool] | None:
        sequence = int(self.control["request_sequence"][0])
        if int(self.control["request"][0]) == RequestKind.CANCEL:
            if sequence != int(self.control["accepted_sequence"][0]):
                self.control["accepted_sequence"] = sequence
                self.control["state"] = int(CaptureState.CANCELLED)
            return None
        if int(self.control["request"][0]) != RequestKind.CAPTURE:
            return None
        if sequence != int(self.control["accepted_sequence"][0]):
            self.control["accepted_sequence"] = sequence
            self.control["state"] = int(CaptureState.ARMED)
            pattern = bytes(self.control["pattern"][0]).decode()
            found = names.matching(pattern, self.loaded)
            if len(found) > 1:
                self.control["message"] = f"{len(found)} loaded kernels".encode()
                self.control["state"] = int(CaptureState.AMBIGUOUS)
        if int(self.control["state"][0]) != CaptureState.ARMED:
            return None
        return bytes(self.control["pattern"][0]).decode(), bool(self.control["pattern_exact"][0])

    def state(self, state: CaptureState) -> None:
        self.control["state"] = int(state)
        if self.spec.get("die") == state.name:
            os.kill(os.getpid(), signal.SIGKILL)

    def dispatch(self, kernel: Kernel) -> None:
        self.row(kernel)
        kernel.done += 1
        wanted = self.request()
        if wanted is not None and kernel in names.matching(wanted[0], self.loaded):
            nth = int(self.control["nth"][0])
            if nth in (0, kernel.done):
                self.capture(kernel)
        row = self.rows[kernel.index : kernel.index + 1]
        row["calls"] += 1
        timed = bool(kernel.ns) and (kernel.done - 1) % kernel.every == 0  # 0: its time is never read
        if timed:
            row["timed"] += 1
            row["total_ns"] += kernel.ns
            row["min_ns"] = np.minimum(row["min_ns"], kernel.ns)
            row["max_ns"] = np.maximum(row["max_ns"], kernel.ns)
        row["grid"] = (256, 1, 1)
        row["block"] = (64, 1, 1)
        row["last_seen_ns"] = time.monotonic_ns()
        self.header["dispatches"] += 1
        self.header["timed"] += timed

    def capture(self, kernel: Kernel) -> None:
        self.control["owner_pid"] = os.getpid()
        self.control["started_ns"] = time.monotonic_ns()
        self.state(CaptureState.DRAINING)
        size = self.spec.get("bytes", 4096)
        self.control["bytes_total"] = size
        output = Path(bytes(self.control["output"][0]).decode())
        if self.spec.get("fail"):
            self.control["message"] = self.spec["fail"].encode()
            self.state(CaptureState.FAILED)
            return
        self.control["bytes_done"] = size // 2
        self.state(CaptureState.SAVING)
        time.sleep(self.spec.get("wait", 0))
        self.state(CaptureState.RUNNING)
        before = np.arange(size, dtype=np.uint8)
        make_capture.write(
            output,
            make_capture.Spec(
                hsaco=b"no code object",
                symbol=kernel.symbol,
                grid=(256, 1, 1),
                workgroup=(64, 1, 1),
                kernargs=bytes(16),
                memory=[make_capture.Memory(0x7E1000000000, before, before + np.uint8(1))],
                demangled=kernel.name,
            ),
        )
        self.control["bytes_done"] = size
        self.control["saved_ns"] = 1_000_000
        self.state(CaptureState.DONE)
        if int(self.control["exit_after"][0]):
            os._exit(0)

    def run(self) -> int:
        children = [
            subprocess.Popen([sys.executable, __file__, json.dumps(child)])
            for child in self.spec.get("children", ())
        ]
        for kernel in self.kernels:
            for _ in range(kernel.calls):
                self.dispatch(kernel)
                time.sleep(self.spec.get("pause", 0))
        for child in children:
            child.wait()
        if self.spec.get("print"):
            print(self.spec["print"], flush=True)
        time.sleep(self.spec.get("hang", 0))
        if self.spec.get("kill"):
            os.kill(os.getpid(), self.spec["kill"])
        self.header["state"] = 1
        return self.spec.get("exit", 0)


if __name__ == "__main__":
    sys.exit(Program(json.loads(sys.argv[1])).run())
