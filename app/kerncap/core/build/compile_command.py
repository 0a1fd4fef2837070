"""A translation unit's compile command, and the device-only command for one target that is made from it.

A command is an argument list and the directory it runs in, as in compile_commands.json. Nothing here goes
through a shell. Option names are clang's (`clang --help`, "Offload" and the HIP support document).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from kerncap.core.code.codeobject import Target
from kerncap.core.errors import UsageError

# Programs that run the compiler given after them, and are of no use for one device compile.
LAUNCHERS = frozenset(
    {"ccache", "sccache", "distcc", "icecc", "buildcache", "fastbuild", "nice", "time", "env", "gomacc"}
)
GUESSED = "guessed"  # the origin of a command that nobody gave
_COMPILER_NAME = re.compile(
    r"(?:amd)?clang(?:\+\+|-cl)?(?:-\d+)?$|hipcc(?:\.bin|\.pl|\.exe)?$|(?:python-)?zig$|nvcc$"
)

# Left out of a device-only compile of one unit, with the word that follows.
_DROP_WITH_VALUE = frozenset(
    [
        "-o",
        "-MF",
        "-MT",
        "-MQ",
        "-MJ",
        "-L",
        "-l",
        "-framework",
        "-T",
        "-u",
        "-z",
        "-e",
        "-Xlinker",
        "-Xassembler",
        "-Xarch_host",
        "-Xoffload-linker",
        "-rpath",
        "--offload-arch",
        "--cuda-gpu-arch",
        "--no-offload-arch",
        "-serialize-diagnostics",
        "--serialize-diagnostics",
        "-index-store-path",
        "-dumpdir",
        "-include-pch",
    ]
)
# Options whose value is the next word.
_TAKES_VALUE = _DROP_WITH_VALUE | frozenset(
    [
        "-I",
        "-isystem",
        "-iquote",
        "-idirafter",
        "-isysroot",
        "-include",
        "-imacros",
        "-D",
        "-U",
        "-x",
        "-Xclang",
        "-mllvm",
        "-Xarch_device",
        "-target",
        "--target",
        "-arch",
        "-F",
        "-B",
        "-b",
        "-Xpreprocessor",
        "-Xcuda-ptxas",
        "-Xcuda-fatbinary",
        "-working-directory",
        "-ivfsoverlay",
        "-iprefix",
        "-iwithprefix",
        "-iwithprefixbefore",
        "-iwithsysroot",
        "-imultilib",
        "-resource-dir",
        "--sysroot",
        "--param",
        "-cxx-isystem",
        "--gcc-toolchain",
        "--rocm-path",
        "--hip-path",
        "-fmodules-cache-path",
    ]
)
# Options whose value is a path that the compile reads, joined or separate.
_PATH_OPTIONS = (
    "-isystem", "-iquote", "-idirafter", "-isysroot", "-include", "-imacros", "-cxx-isystem", "-I", "-F",
    "-B", "-ivfsoverlay", "--sysroot=", "--sysroot", "--rocm-path=", "--rocm-device-lib-path=", "--hip-path=",
    "--hip-device-lib-path=", "--hip-version-file=", "--gcc-toolchain=", "-fmodule-map-file=",
    "-fprofile-use=", "-fsanitize-ignorelist=", "-resource-dir=", "-resource-dir",
)  # fmt: skip
# Left out of a device-only compile of one unit: outputs, dependency files, linking, the host's side, other
# archs.
_DROP = frozenset(
    [
        "-c",
        "-S",
        "-E",
        "-M",
        "-MM",
        "-MD",
        "-MMD",
        "-MG",
        "-MP",
        "-MV",
        "-v",
        "-###",
        "-shared",
        "-static",
        "-pie",
        "-no-pie",
        "-rdynamic",
        "-pipe",
        "-s",
        "-fsyntax-only",
        "-emit-llvm",
        "-gsplit-dwarf",
        "--genco",
        "--hip-link",
        "-fgpu-rdc",
        "-fno-gpu-rdc",
        "--cuda-device-only",
        "--cuda-host-only",
        "--cuda-compile-host-device",
        "--offload-device-only",
        "--offload-host-only",
        "--offload-host-device",
        "--gpu-bundle-output",
        "--no-gpu-bundle-output",
        "--offload-compress",
        "--no-offload-compress",
        "--offload-new-driver",
        "--no-offload-new-driver",
        "-foffload-lto",
        "-fno-offload-lto",
        "-flto",
        "-fno-lto",
        "-fcolor-diagnostics",
        "-fdiagnostics-color",
        "-fansi-escape-codes",
        "-save-temps",
        "--save-temps",
    ]
)
_DROP_PREFIX = (
    "-o", "-MF", "-MT", "-MQ", "-L", "-l", "-Wl,", "-Wa,", "-fuse-ld=", "--offload-arch=", "--cuda-gpu-arch=",
    "--no-offload-arch=", "--amdgpu-target=", "--offload-targets=", "--offload=", "-flto=", "-foffload-lto=",
    "-save-temps=", "--save-temps=", "-fdiagnostics-color=", "-parallel-jobs=", "-cuid=", "-fuse-cuid=",
    "-Xoffload-linker-", "--offload-jobs=",
)  # fmt: skip
# Options of the frontend itself (after -Xclang) that say what to make, or where else to write.
_DROP_FRONTEND = frozenset(
    [
        "-emit-obj",
        "-emit-llvm",
        "-emit-llvm-bc",
        "-emit-llvm-only",
        "-emit-codegen-only",
        "-emit-pch",
        "-S",
        "-E",
        "-fsyntax-only",
        "-disable-llvm-passes",
        "-sys-header-deps",
    ]
)
_DROP_FRONTEND_WITH_VALUE = frozenset(["-include-pch", "-dependency-file", "-MT", "-fmodule-file", "-o"])
_PREFIX_EXCEPTIONS = ("-object",)  # begin with a dropped prefix by chance
_SOURCE_SUFFIXES = frozenset({".hip", ".cu", ".cpp", ".cc", ".cxx", ".c++", ".C", ".c"})


@dataclass(frozen=True)
class CompileCommand:
    """How one translation unit is compiled. `file` and `output` are absolute; arguments[0] is the compiler or
    a launcher.
    """

    directory: Path
    arguments: tuple[str, ...]
    file: Path
    output: Path | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        if not self.arguments:
            raise UsageError(
                f"The compile command of {self.file} is empty ({self.origin or 'no origin known'})."
            )

    def resolve(self, path: str) -> Path:
        """A path as the command means it: absolute, "." and ".." folded, symbolic links left alone.

        Only a directory that ".." leaves by another way than it was entered, being a link, is replaced by its
        real name: of lib/gcc/../../include, where lib is a link to usr/lib, the compiler reads usr/include.
        """
        joined = os.path.join(self.directory, path)
        folded = os.path.normpath(joined)
        if ".." in Path(path).parts and not _same_file(joined, folded):
            folder, name = os.path.split(joined)
            return Path(os.path.realpath(folder)) / name
        return Path(folded)


def _same_file(path: str, folded: str) -> bool:
    """Whether folding ".." left a path's meaning as it was; also where there is no such file to tell by."""
    try:
        return os.path.samefile(path, folded)
    except OSError:
        return not os.path.exists(path)


def make_command(
    directory: Path, arguments: Sequence[str], file: str, output: str | None = None, origin: str = ""
) -> CompileCommand:
    """A command with its response files read in and its paths made absolute.

    Raises UsageError naming a response file that cannot be read.
    """
    expanded = tuple(expand_response_files(arguments, directory))
    if output is None:
        output = next((b for a, b in pairwise(expanded) if a == "-o"), None)
    base = CompileCommand(directory, expanded, directory)
    return CompileCommand(
        directory, expanded, base.resolve(file), base.resolve(output) if output else None, origin
    )


def expand_response_files(arguments: Iterable[str], directory: Path, depth: int = 0) -> list[str]:
    """Arguments with every @FILE replaced by the words in it (GNU quoting, as clang reads them on Unix).

    Raises UsageError on one that is not there or cannot be read: options would be missing.
    """
    words: list[str] = []
    for argument in arguments:
        path = directory / argument[1:]
        if not argument.startswith("@") or len(argument) == 1:
            words.append(argument)
            continue
        if depth >= 8:
            raise UsageError(f"The response file {path} includes itself.")
        try:
            inner = shlex.split(path.read_text(), comments=False)
        except (OSError, ValueError, UnicodeDecodeError) as error:
            raise UsageError(f"The response file {path} cannot be read: {error}.") from error
        words += expand_response_files(inner, directory, depth + 1)
    return words


def split_compiler(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """(compiler words, the rest), with launchers such as ccache left out.

    The compiler is several words for `zig clang` and `python -m ziglang clang`. A wrapper script that is not
    known is kept as the compiler: it may add options that matter.
    """
    words = list(arguments)
    while len(words) > 1 and Path(words[0]).name in LAUNCHERS:
        del words[0]
        # `env A=B`, `nice -n 10`, `ccache compiler_check=content`: their own words come before the
        # compiler's.
        while len(words) > 1 and (words[0].startswith("-") or "=" in words[0] or words[0].isdigit()):
            del words[0]
    name = Path(words[0]).name
    if re.match(r"python[\d.]*$", name) and words[1:3] == ["-m", "ziglang"]:
        return words[:4], words[4:]
    if name in ("zig", "python-zig"):
        return words[:2], words[2:]
    if not _COMPILER_NAME.match(name) and len(words) > 1 and is_compiler(words[1]):
        # `wrapper.sh clang++ -c ...`: a launcher of the project's own, or one that picks the options.
        return words[:2], words[2:]
    return words[:1], words[1:]


def is_compiler(word: str) -> bool:
    """Whether a word is the path of a compiler for GPUs, by its name."""
    return not word.startswith("-") and bool(_COMPILER_NAME.match(Path(word).name))


def is_hip(command: CompileCommand) -> bool:
    """Whether the command compiles HIP: by language, suffix, compiler or offload options."""
    compiler, rest = split_compiler(command.arguments)
    if command.file.suffix not in _SOURCE_SUFFIXES:
        return "hip" in _languages(rest)
    if command.file.suffix == ".hip" or "hip" in _languages(rest):
        return True
    name = Path(compiler[-1]).name
    if name.startswith("hipcc"):
        return True
    return any(
        a.startswith(("--offload-arch=gfx", "--offload-arch=native", "--hip-", "--amdgpu-target"))
        for a in rest
    )


def _languages(arguments: Sequence[str]) -> set[str]:
    found = {a[2:] for a in arguments if a.startswith("-x") and len(a) > 2 and not a.startswith("-xnack")}
    return found | {b for a, b in pairwise(arguments) if a == "-x"}


def device_arguments(command: CompileCommand, target: Target) -> list[str]:
    """The unit's options for compiling only it, only for `target`: no output, action or compiler words.

    What was asked for the device (optimisation, defines, includes, warnings, debug information) stays as it
    was.
    """
    _, words = split_compiler(command.arguments)
    kept: list[str] = []
    has_input = False
    index = 0
    only_inputs = False
    while index < len(words):
        word = words[index]
        value = words[index + 1] if index + 1 < len(words) else None
        if only_inputs or not word.startswith("-") or word == "-":
            if command.resolve(word) == command.file and not has_input:
                kept.append(word)
                has_input = True
            index += 1
        elif word == "--":
            only_inputs = True
            index += 1
        elif word == "-Xclang" and value in _DROP_FRONTEND_WITH_VALUE:
            index += 4
        elif word == "-Xclang" and value in _DROP_FRONTEND:
            index += 2
        elif word in _TAKES_VALUE and value is not None:
            if word not in _DROP_WITH_VALUE:
                kept += [word, value]
            index += 2
        elif (
            word in _DROP
            or word in _DROP_WITH_VALUE
            or (word.startswith(_DROP_PREFIX) and not word.startswith(_PREFIX_EXCEPTIONS))
        ):
            index += 1
        else:
            kept.append(word)
            index += 1
    if not has_input:
        kept.append(str(command.file))
    return ["--cuda-device-only", f"--offload-arch={target.offload_arch}", *kept]


def input_index(arguments: Sequence[str], command: CompileCommand) -> int:
    """Where the unit itself stands among `device_arguments`."""
    skip = False
    for index, word in enumerate(arguments):
        if skip:
            skip = False
        elif word in _TAKES_VALUE:
            skip = True
        elif not word.startswith("-") and command.resolve(word) == command.file:
            return index
    raise UsageError(f"The compile command of {command.file} does not name it.")


def absolute_arguments(arguments: Sequence[str], directory: Path) -> list[str]:
    """The same options with their paths made absolute, for a command that cannot run in its own directory any
    more.
    """
    result: list[str] = []
    index = 0
    while index < len(arguments):
        word = arguments[index]
        value = arguments[index + 1] if index + 1 < len(arguments) else None
        if word in _PATH_OPTIONS and value is not None and not word.endswith("="):
            result += [word, _absolute(value, directory)]
            index += 2
            continue
        if word in _TAKES_VALUE and value is not None:
            result += [word, value]
            index += 2
            continue
        prefix = next((p for p in _PATH_OPTIONS if word.startswith(p) and len(word) > len(p)), None)
        if prefix in ("-include", "-isysroot", "-F", "-B") and prefix != word:
            prefix = None if word.startswith(("-include-", "-B=", "-F=")) else prefix
        result.append(prefix + _absolute(word[len(prefix) :], directory) if prefix else word)
        index += 1
    return result


def _absolute(value: str, directory: Path) -> str:
    return value if value.startswith("=") else os.path.normpath(os.path.join(directory, value))


def with_defines(command: CompileCommand, defines: Sequence[str]) -> CompileCommand:
    """The command with -D options of the user's added, after its own."""
    if not defines:
        return command
    return replace(command, arguments=(*command.arguments, *(f"-D{d}" for d in defines)))
