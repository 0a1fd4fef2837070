"""Builds the single-source programs of tests/rocm/programs with the prefix' hipcc, as a project would: an
object for each unit, linked into a program, with the compile commands beside them. Kept by content and place.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rocm.prefix import Prefix

PROGRAMS = Path(__file__).resolve().parent / "programs"
ARCHES = ("gfx942", "gfx90a")
_CACHE = Path(tempfile.gettempdir()) / f"kerncap-test-hip-{os.getuid()}"
_OPTIONS = ("-std=c++17", "-O2", "-Wall", "-fPIC")
_LIBRARIES = ("plugin",)  # shared libraries
_CODE_OBJECTS = ("module",)  # device code alone, for hipModuleLoad


@dataclass(frozen=True)
class Built:
    """A program and the folder with it, its objects and compile_commands.json."""

    name: str
    path: Path

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def source(self) -> Path:
        return PROGRAMS / f"{self.name}.hip"


class Builder:
    """Makes programs with one prefix. What does not compile is an AssertionError with what hipcc said."""

    def __init__(self, prefix: Prefix) -> None:
        self.prefix = prefix
        self.environment = {**os.environ, **prefix.environment()}

    def build(self, name: str, extra: Sequence[str] = ()) -> Built:
        """The program, shared library or code object made of programs/NAME.hip, with `extra` options."""
        source = PROGRAMS / f"{name}.hip"
        folder = _CACHE / self._key(source, extra) / name
        suffix = ".so" if name in _LIBRARIES else ".hsaco" if name in _CODE_OBJECTS else ""
        built = Built(name, folder / f"{name}{suffix}")
        if built.path.exists():
            return built
        _CACHE.mkdir(mode=0o700, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=_CACHE))
        try:
            self._make(scratch / name, built, source, list(extra))
            try:
                scratch.rename(folder.parent)
            except OSError:  # another process was first
                assert built.path.exists(), f"{folder} is incomplete: remove it"
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return built

    def _key(self, source: Path, extra: Sequence[str]) -> str:
        """Of the sources, what compiles them, and where they are: debug information names their folder, and
        one that has gone, of another checkout, holds no source of the program's kernels.
        """
        digest = hashlib.sha256(Path(__file__).read_bytes())
        for part in (
            source.read_bytes(),
            (source.parent / "check.h").read_bytes(),
            str(source.parent).encode(),
            str(self.prefix.root).encode(),
            self.prefix.mark.read_bytes(),
            *_encoded(extra),
        ):
            digest.update(part + b"\0")
        return digest.hexdigest()[:20]

    def _make(self, into: Path, built: Built, source: Path, extra: list[str]) -> None:
        into.mkdir()
        hipcc = str(self.prefix.hipcc)
        arches = [f"--offload-arch={arch}" for arch in ARCHES]
        compiling = [option for option in extra if not option.startswith("-l")]
        options = [*_OPTIONS, *arches, f"--sysroot={self.prefix.root}", *compiling]
        made = into / built.path.name
        if built.name in _CODE_OBJECTS:
            words = [hipcc, "--genco", *options, str(source), "-o", str(made)]
            self.run(words)
        else:
            compiled = into / f"{built.name}.o"
            words = [hipcc, *options, "-c", str(source), "-o", str(compiled)]
            self.run(words)
            shared = ["-shared"] if built.name in _LIBRARIES else []
            linked = [option for option in extra if option == "-fgpu-rdc" or option.startswith("-l")]
            linking = [*arches, *self.prefix.link_options(), "-fuse-ld=lld", *shared, *linked]
            self.run([hipcc, *linking, str(compiled), "-o", str(made)])
        final = [word.replace(str(into), str(built.folder)) for word in words]
        entry = {"directory": str(PROGRAMS), "file": str(source), "arguments": final}
        (into / "compile_commands.json").write_text(json.dumps([entry], indent=1))

    def run(self, words: Sequence[str], directory: Path = PROGRAMS) -> None:
        """A compiler or linker command; its whole output is in the message where it fails."""
        done = subprocess.run(
            words, cwd=directory, env=self.environment, capture_output=True, text=True, timeout=280
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"


def _encoded(words: Sequence[str]) -> list[bytes]:
    return [word.encode() for word in words]
