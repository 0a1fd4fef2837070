"""Probes of units, kept between runs: candidates of a big project are compiled once, not each time."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Protocol

import platformdirs

from kerncap.core.build.compile_command import CompileCommand
from kerncap.core.build.device_compile import Probe
from kerncap.core.build.toolchain import Compiler
from kerncap.core.files import write_atomically

_MAX_ENTRIES = 2000


class Probing(Protocol):
    """A compile that can be asked for a unit's kernels and files."""

    @property
    def command(self) -> CompileCommand: ...
    @property
    def compiler(self) -> Compiler: ...
    def arguments(self) -> list[str]: ...
    def probe(self) -> Probe: ...


def _folder() -> Path:
    return Path(os.environ.get("KERNCAP_CACHE_DIR") or platformdirs.user_cache_dir("kerncap")) / "probes"


def _key(compile_: Probing) -> str:
    parts = [compile_.compiler.identity, str(compile_.command.directory), *compile_.arguments()]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _stamp(directory: Path, name: str) -> list[int] | None:
    try:
        stat = os.stat(directory / name)
    except OSError:
        return None
    return [stat.st_size, stat.st_mtime_ns]


def cached_probe(compile_: Probing) -> Probe:
    """`compile_.probe()`, or the kept result where neither the command nor any file it read has changed."""
    path = _folder() / f"{_key(compile_)}.json"
    directory = compile_.command.directory
    try:
        kept = json.loads(path.read_text("utf-8"))
        if kept["stamps"] and all(_stamp(directory, n) == s for n, s in kept["stamps"].items()):
            return Probe(tuple(kept["kernels"]), tuple(kept["stamps"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    probe = compile_.probe()
    stamps = {name: _stamp(directory, name) for name in probe.dependencies}
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        entries = sorted(path.parent.iterdir(), key=lambda p: p.stat().st_mtime)
        for old in entries[: max(0, len(entries) - _MAX_ENTRIES)]:
            old.unlink(missing_ok=True)
        write_atomically(path, json.dumps({"kernels": probe.kernels, "stamps": stamps}).encode())
    except OSError:
        pass  # a cache that cannot be written only costs time
    return probe
