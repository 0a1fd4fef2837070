"""nvcc's command lines: which units they compile, and the device-only command for one target made from one.

Option names are from `nvcc --help`. Options take their value as the next word, after "=", or, with one
letter, joined; lists are separated by commas. What nvcc does not know it may pass on to the host's compiler
(-forward-unknown-to-host-compiler): such words stay.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kerncap.core.build.compile_command import CompileCommand, split_compiler
from kerncap.core.code.codeobject import Target, sm_runs_on
from kerncap.core.errors import UsageError

# Short name to long name, of options with a value. Those in _DROPPED are left out of a device-only compile of
# one unit: outputs, dependency files, linking, other archs.
_VALUES = {
    "-o": "--output-file", "-include": "--pre-include", "-l": "--library", "-D": "--define-macro",
    "-U": "--undefine-macro", "-I": "--include-path", "-isystem": "--system-include",
    "-L": "--library-path", "-odir": "--output-directory", "-ccbin": "--compiler-bindir",
    "-arbin": "--archiver-binary", "-cudart": "--cudart", "-cudadevrt": "--cudadevrt",
    "-ldir": "--libdevice-directory", "-target-dir": "--target-directory",
    "-opt-info": "--optimization-info", "-O": "--optimize", "-Ofc": "--Ofast-compile", "-dopt": "--dopt",
    "-ftemplate-backtrace-limit": "--ftemplate-backtrace-limit", "-ftemplate-depth": "--ftemplate-depth",
    "-x": "--x", "-std": "--std", "-m": "--machine", "-Xcompiler": "--compiler-options",
    "-Xlinker": "--linker-options", "-Xarchive": "--archive-options", "-Xptxas": "--ptxas-options",
    "-Xnvlink": "--nvlink-options", "-Xcudafe": "--cudafe-options", "-Xcicc": "--cicc-options",
    "-t": "--threads", "-split-compile": "--split-compile",
    "-split-compile-extended": "--split-compile-extended", "-fdevice-time-trace": "--fdevice-time-trace",
    "-keep-dir": "--keep-dir", "-time": "--time", "-run-args": "--run-args", "-idp": "--input-drive-prefix",
    "-ddp": "--dependency-drive-prefix", "-dp": "--drive-prefix", "-MT": "--dependency-target-name",
    "-MF": "--dependency-output", "-arch": "--gpu-architecture", "-code": "--gpu-code",
    "-gencode": "--generate-code", "-rdc": "--relocatable-device-code", "-e": "--entries",
    "-maxrregcount": "--maxrregcount", "-ftz": "--ftz", "-prec-div": "--prec-div",
    "-prec-sqrt": "--prec-sqrt", "-fmad": "--fmad", "-default-stream": "--default-stream",
    "-Werror": "--Werror", "-diag-error": "--diag-error", "-diag-suppress": "--diag-suppress",
    "-diag-warn": "--diag-warn", "-hls": "--host-linker-script", "-brief-diag": "--brief-diagnostics",
    "-jtd": "--jump-table-density", "-device-stack-protector": "--device-stack-protector",
    "-compress-mode": "--compress-mode", "-frandom-seed": "--frandom-seed", "-sanitize": "--sanitize",
    "-optf": "--options-file", "-static-global-template-stub": "--static-global-template-stub",
    "-device-entity-has-hidden-visibility": "--device-entity-has-hidden-visibility",
    "-isysroot": "-isysroot", "-iquote": "-iquote", "-idirafter": "-idirafter", "-imacros": "-imacros",
}  # fmt: skip
_DROPPED = frozenset(
    _VALUES[name]
    for name in (
        "-o", "-l", "-L", "-odir", "-arbin", "-cudart", "-cudadevrt", "-Xlinker", "-Xarchive", "-Xnvlink",
        "-t", "-split-compile", "-split-compile-extended", "-fdevice-time-trace", "-keep-dir", "-time",
        "-run-args", "-idp", "-ddp", "-dp", "-MT", "-MF", "-arch", "-code", "-gencode", "-rdc", "-e",
        "-hls", "-compress-mode",
    )
)  # fmt: skip
_DROPPED_FLAGS = frozenset([
    "-c", "--compile", "-dc", "--device-c", "-dw", "--device-w", "-dlink", "--device-link", "-link",
    "--link", "-lib", "--lib", "-run", "--run", "-cuda", "--cuda", "-cubin", "--cubin", "-fatbin",
    "--fatbin", "-ptx", "--ptx", "-optix-ir", "--optix-ir", "-ltoir", "--ltoir", "-E", "--preprocess", "-M",
    "--generate-dependencies", "-MM", "--generate-nonsystem-dependencies", "-MD",
    "--generate-dependencies-with-compile", "-MMD", "--generate-nonsystem-dependencies-with-compile", "-MP",
    "--generate-dependency-targets", "-shared", "--shared", "-objtemp", "--objdir-as-tempdir", "-v",
    "--verbose", "-dryrun", "--dryrun", "-keep", "--keep", "-save-temps", "--save-temps", "-clean",
    "--clean-targets", "-dlto", "--dlink-time-opt", "-lto", "--lto", "-gen-opt-lto", "--gen-opt-lto",
    "-nodlink", "--no-device-link", "-ewp", "--extensible-whole-program", "-no-compress", "--no-compress",
    "-aug-hls", "--augment-host-linker-script", "-r", "--relocatable-link", "-reloc-ptx",
    "--relocatable-ptx", "-jobserver", "--jobserver", "-fdevice-syntax-only", "--fdevice-syntax-only",
    "-pie", "-no-pie", "-rdynamic", "-static",
])  # fmt: skip
_PATHS = frozenset(_VALUES[n] for n in ("-I", "-isystem", "-include", "-iquote", "-idirafter", "-imacros"))
INCLUDE_FOLDERS = frozenset(_VALUES[n] for n in ("-I", "-isystem", "-iquote", "-idirafter"))
_LONG = frozenset(_VALUES.values())
_JOINED = ("-I", "-D", "-U", "-L", "-l", "-O", "-m", "-o", "-t", "-x")
_NVCC = re.compile(r"nvcc(?:\.exe|[-.][\w.]+)?$")


@dataclass(frozen=True)
class Word:
    """One option with its value, or an input. `name` is the long name of an option with a value, "" of
    anything else; `words` are as they were.
    """

    words: tuple[str, ...]
    name: str = ""
    value: str = ""

    @property
    def text(self) -> str:
        """The first word of it."""
        return self.words[0]


def parse(words: Sequence[str]) -> list[Word]:
    """The words of a command line after the compiler, each option with its value."""
    found = []
    index = 0
    while index < len(words):
        word = words[index]
        name, equals, value = word.partition("=")
        long = _VALUES.get(name) or (name if name in _LONG else "")
        index += 1
        if word in _DROPPED_FLAGS or not word.startswith("-"):
            found.append(Word((word,)))
        elif long and equals:
            found.append(Word((word,), long, value))
        elif long and index < len(words):
            found.append(Word((word, words[index]), long, words[index]))
            index += 1
        else:
            short = next((s for s in _JOINED if word.startswith(s) and len(word) > len(s)), None)
            joined = short is not None and not word.startswith(
                ("-MT", "-MF", "-lineinfo", "-link", "-lib", "-opt")
            )
            if joined and short is not None and not (short == "-m" and word != "-m64"):
                found.append(Word((word,), _VALUES[short], word[len(short) :]))
            else:
                found.append(Word((word,)))
    return found


def expand_options_files(words: Iterable[str], directory: Path, depth: int = 0) -> list[str]:
    """The words with each --options-file (-optf) replaced by what is in it. Raises UsageError where one
    cannot be read: options would be missing.
    """
    result: list[str] = []
    for word in parse(list(words)):
        if word.name != "--options-file":
            result += word.words
            continue
        if depth >= 8:
            raise UsageError(f"The options file {word.value} includes itself.")
        for name in word.value.split(","):
            path = directory / name
            try:
                inner = shlex.split(path.read_text(), comments=False)
            except (OSError, ValueError) as error:
                raise UsageError(f"The options file {path} cannot be read: {error}.") from error
            result += expand_options_files(inner, directory, depth + 1)
    return result


def is_nvcc(command: CompileCommand) -> bool:
    """Whether the command compiles CUDA C++ with nvcc."""
    compiler, rest = split_compiler(command.arguments)
    if not any(_NVCC.match(Path(word).name) for word in compiler):
        return False
    languages = [word.value for word in parse(rest) if word.name == "--x"]
    return languages[-1] == "cu" if languages else command.file.suffix == ".cu"


def virtual_arch(command: CompileCommand, target: Target) -> str:
    """What the target's code was compiled through ("compute_90"): by the command's own options where they
    make code for the target, or PTX that the driver makes it of; else the target's own.
    """
    _, rest = split_compiler(command.arguments)
    pairs: list[tuple[str, list[str]]] = []
    arch, codes = "", []
    for word in parse(rest):
        if word.name == "--generate-code":
            fields = dict(
                part.split("=", 1) for part in re.split(r",(?=code=|arch=)", word.value) if "=" in part
            )
            pairs.append((fields.get("arch", ""), fields.get("code", "").strip("[]\"'").split(",")))
        elif word.name == "--gpu-architecture":
            arch = word.value
        elif word.name == "--gpu-code":
            codes += word.value.split(",")
    if arch.startswith("compute_") or codes:
        pairs.append((arch, codes or [arch]))
    exact = [virtual for virtual, made in pairs if target.arch in made]
    older = [
        virtual
        for virtual, made in pairs
        for code in made
        if code.startswith("compute_") and _number(code) <= _number(target.arch)
    ]
    fits = [virtual for virtual, made in pairs for code in made if sm_runs_on(code, target.arch)]
    ptx = [max(older, key=_number)] if older else []
    chosen = next((v for v in [*exact, *fits, *ptx] if v.startswith("compute_")), None)
    return chosen or target.arch.replace("sm_", "compute_")


def _number(arch: str) -> int:
    return int(re.sub(r"\D", "", arch) or 0)


def device_options(
    command: CompileCommand, target: Target, place: Callable[[Path, bool], list[Path]]
) -> list[str]:
    """The unit's options for compiling only it, only for `target`: neither action, output nor input.

    What was asked for the device (optimisation, defines, warnings) stays as it was; paths are made absolute.
    `place(path, folder)` says which paths stand for one of the command's, in their order.
    """
    _, rest = split_compiler(command.arguments)
    kept: list[str] = []
    for word in parse(rest):
        if word.name in _DROPPED or word.text in _DROPPED_FLAGS or word.text.startswith("-Wl,"):
            continue
        if word.name in _PATHS:
            for path in word.value.split(","):
                folder = word.name in INCLUDE_FOLDERS
                for stand_in in place(command.resolve(path), folder):
                    kept += [_short(word.name), str(stand_in)]
        elif word.name == "--compiler-bindir":
            found = command.resolve(word.value)
            if os.sep not in word.value or found.exists():
                kept += ["-ccbin", word.value if os.sep not in word.value else str(found)]
        elif word.name or word.text.startswith("-"):
            kept += word.words
    virtual = virtual_arch(command, target)
    return [f"-gencode=arch={virtual},code={target.arch}", *kept]


def _short(name: str) -> str:
    return next(short for short, long in _VALUES.items() if long == name)
