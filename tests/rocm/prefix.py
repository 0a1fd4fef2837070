"""Debian's HIP, its compiler and its libraries, unpacked into a folder of their own: nothing is installed.

    python tests/rocm/prefix.py            # makes it and prints where it is

Packages come by the machine's own apt: its mirror and its keys, with lists and a cache of our own, so that no
root is needed. Programs of the folder start with the folder's own dynamic linker, since its libc is newer
than most machines'. AMD's libhsa-runtime64 is put aside in it: what a program finds is the simulated one.

KERNCAP_TEST_ROCM names the folder (default: in the user's cache), KERNCAP_TEST_ROCM_SUITE the Debian suite.
A folder that is complete is used as it is, without the network.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("hipcc", "libamdhip64-dev", "patchelf")
ROCBLAS = ("librocblas-dev",)
LLAMA = ("llama.cpp-tools", "libggml0-backend-hip")
_VERSION = 2  # of the layout: a folder of another one is made anew
_LIB = "usr/lib/x86_64-linux-gnu"
_LOADER = f"{_LIB}/ld-linux-x86-64.so.2"
_ASIDE = "usr/lib/rocr"
_MARK = "kerncap-prefix.json"
_KEYRINGS = (
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
)
# Never run here, only named as dependencies of what is: their trees cost room.
_NOT_NEEDED = re.compile(r"(python3|libpython3|perl|debconf|kmod|pciutils|pci\.ids|tzdata)")


class Unavailable(Exception):
    """The packages cannot be had here; the text says why."""


@dataclass(frozen=True)
class _Package:
    """One of Debian's packages, as apt names its archive."""

    name: str
    version: str
    arch: str

    @property
    def file(self) -> str:
        return f"{self.name}_{self.version.replace(':', '%3a')}_{self.arch}.deb"


@dataclass(frozen=True)
class Prefix:
    """A complete folder. `lib` holds its shared libraries, `loader` is its dynamic linker."""

    root: Path

    @property
    def lib(self) -> Path:
        return self.root / _LIB

    @property
    def loader(self) -> Path:
        return self.root / _LOADER

    @property
    def mark(self) -> Path:
        """The file that says what the folder holds."""
        return self.root / _MARK

    @property
    def hipcc(self) -> Path:
        return self.root / "usr/bin/hipcc"

    def has_rocblas(self) -> bool:
        """Whether its packages hold rocBLAS."""
        return any(self.lib.glob("librocblas.so.*"))

    def link_options(self) -> list[str]:
        """Options of the compiler driver for a program that starts by itself, outside any chroot.

        DT_RPATH, not DT_RUNPATH: the libraries of the folder find one another by it too. libhsa-runtime64 is
        not where it points, so that LD_LIBRARY_PATH decides on that.
        """
        return [
            f"--sysroot={self.root}",
            f"-Wl,--dynamic-linker={self.loader}",
            f"-Wl,--disable-new-dtags,-rpath,{self.lib}",
        ]

    def environment(self) -> dict[str, str]:
        """Variables for the folder's hipcc, which would take CUDA's compiler where there is one, and for its
        programs: what HIP compiles for itself when a program starts is kept away from the user's cache.
        """
        cache = Path(tempfile.gettempdir()) / f"kerncap-test-comgr-{os.getuid()}"
        return {"HIP_PLATFORM": "amd", "AMD_COMGR_CACHE_DIR": str(cache)}


def _default_root() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "kerncap-tests" / "rocm"


def find_prefix(packages: Sequence[str] = (*PACKAGES, *ROCBLAS, *LLAMA)) -> Prefix:
    """The folder with `packages` and all that they depend on; made where it is not there yet.

    Raises Unavailable: not x86-64, no apt, no Debian mirror in its configuration, not reachable, not enough
    disk.
    """
    root = Path(os.environ.get("KERNCAP_TEST_ROCM") or _default_root()).absolute()
    suite = os.environ.get("KERNCAP_TEST_ROCM_SUITE", "forky")
    wanted = {"version": _VERSION, "suite": suite, "packages": sorted(packages)}
    if _complete(root, wanted):
        return Prefix(root)
    if platform.machine() != "x86_64":
        raise Unavailable(f"its packages are for x86-64; this machine is {platform.machine()}")
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not here: the packages come by apt")
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        with _locked(root.parent / f".{root.name}.lock"):
            if not _complete(root, wanted):
                _make(root, wanted)
    except OSError as error:
        raise Unavailable(f"{error.filename or root}: {error.strerror}") from error
    return Prefix(root)


def _complete(root: Path, wanted: dict[str, object]) -> bool:
    try:
        mark = json.loads((root / _MARK).read_text())
    except (OSError, ValueError):
        return False
    same = all(mark.get(key) == wanted[key] for key in ("version", "suite"))
    # The dynamic linker's path is in its programs: a folder that was moved does not work.
    return same and mark.get("root") == str(root) and set(wanted["packages"]) <= set(mark["packages"])  # type: ignore[call-overload]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(words: Sequence[str], directory: Path | None = None, timeout_s: float = 900) -> str:
    try:
        done = subprocess.run(
            words, cwd=directory, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{words[0]} did not finish within {timeout_s:g} s") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        raise Unavailable(f"{words[0]} ended with exit code {done.returncode}: {lines[-1]}")
    return done.stdout


def mirror() -> str:
    """The Debian archive that this machine's apt uses. Raises Unavailable where it names none."""
    targets = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
    for line in targets.splitlines():
        if re.search(r"/debian/?$", line):
            return line
    raise Unavailable("apt's configuration here names no Debian archive")


def _apt(root: Path, suite: str) -> list[str]:
    """apt-get with lists, cache and state below `root`, and one suite of the machine's own mirror."""
    keyring = next((path for path in _KEYRINGS if Path(path).exists()), None)
    if keyring is None:
        raise Unavailable("the keys of the Debian archive are not here (package debian-archive-keyring)")
    for folder in ("lists/partial", "archives/partial", "none"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
    (root / "sources.list").write_text(f"deb [arch=amd64 signed-by={keyring}] {mirror()} {suite} main\n")
    options = {
        "Dir::Etc::sourcelist": root / "sources.list",
        "Dir::Etc::sourceparts": root / "none",
        "Dir::Etc::preferencesparts": root / "none",
        "Dir::State": root,
        "Dir::State::status": root / "status",
        "Dir::State::lists": root / "lists",
        "Dir::Cache": root,
        "Dir::Cache::archives": root / "archives",
        "APT::Architecture": "amd64",
        "APT::Architectures": "amd64",
        "APT::Sandbox::User": "",
        "APT::Install-Recommends": "false",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "30",
        "Debug::NoLocking": "true",
    }
    return ["apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]


def _make(root: Path, wanted: dict[str, object]) -> None:
    packages = [str(package) for package in wanted["packages"]]  # type: ignore[attr-defined]
    room = shutil.disk_usage(root.parent).free
    if room < 10 << 30:
        raise Unavailable(f"{root.parent}: {room >> 30} GiB are free, and 10 are needed")
    # The archives stay beside it: they serve again where only the layout changes, or a package is added.
    apt_root = root.parent / f"{root.name}-packages"
    apt = _apt(apt_root, str(wanted["suite"]))
    _run([*apt, "update"])
    plan = _run([*apt, "install", "--simulate", "-y", *packages])
    found = re.findall(r"^Inst (\S+) \((\S+) .*\[(\w+)\]\)", plan, re.M)
    needed = [_Package(*one) for one in found if not _NOT_NEEDED.match(one[0])]
    archives = apt_root / "archives"
    missing = [one for one in needed if not (archives / one.file).is_file()]
    if missing:
        # `download` verifies against the signed lists, as `install` would, but takes only what is named.
        _run([*apt, "download", *(f"{one.name}={one.version}" for one in missing)], archives)
    scratch = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=root.parent))
    try:
        for one in needed:
            _run(["dpkg-deb", "-x", str(archives / one.file), str(scratch)])
        _arrange(scratch, root)
        mark = {**wanted, "root": str(root), "archives": sorted(one.file for one in needed)}
        (scratch / _MARK).write_text(json.dumps(mark, indent=1))
        old = root.with_name(f".{root.name}-old-{os.getpid()}")
        if root.exists():
            root.rename(old)
        scratch.rename(root)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _arrange(tree: Path, root: Path) -> None:
    """Makes programs of the unpacked `tree` start where it will be, at `root`."""
    for name in ("bin", "sbin", "lib", "lib64"):
        if not (tree / name).exists():
            (tree / name).symlink_to(f"usr/{name}")
    # llama.cpp looks for its backends in a folder of the system's, and beside the program.
    for backend in (tree / _LIB).glob("ggml/backends*/*.so"):
        (tree / "usr/bin" / backend.name).symlink_to(root / backend.relative_to(tree))
    # Where the dynamic linker stands under its usual name, as the libc package has it.
    (tree / "usr/lib64").mkdir(exist_ok=True)
    aside = tree / _ASIDE
    aside.mkdir(parents=True)
    runtimes = list((tree / _LIB).glob("libhsa-runtime64.so*"))
    for runtime in runtimes:
        runtime.rename(aside / runtime.name)
    if not runtimes or not (tree / _LOADER).is_file() or not (tree / "usr/bin/hipcc").is_file():
        raise Unavailable("the packages of this suite are laid out otherwise than these tests expect")
    programs = [path for path in _programs(tree) if _has_interpreter(path)]
    loader = [str(tree / _LOADER), "--library-path", str(tree / _LIB)]
    rpath = ":".join(str(root / path.relative_to(tree)) for path in _library_folders(tree))
    change = ["--set-interpreter", str(root / _LOADER), "--force-rpath", "--set-rpath", rpath]
    patchelf = [*loader, str(tree / "usr/bin/patchelf")]
    _run([*patchelf, *change, *map(str, programs)])
    # A library with a DT_RUNPATH does not look where the program's DT_RPATH says (ld.so(8)).
    lib = tree / _LIB
    patterns = (
        "libLLVM*.so*",
        "libclang*.so*",
        "lib*llama*.so*",
        "libggml*.so*",
        "llama/*.so*",
        "ggml/*/*.so*",
    )
    own_path = [path for pattern in patterns for path in lib.glob(pattern) if not path.is_symlink()]
    _run([*patchelf, "--remove-rpath", *map(str, own_path)])


def _library_folders(tree: Path) -> list[Path]:
    places = [tree / _LIB, tree / _LIB / "llama", *tree.glob("usr/lib/llvm-*/lib")]
    return [place for place in places if place.is_dir()]


def _programs(tree: Path) -> Iterator[Path]:
    for folder in (tree / "usr/bin", *tree.glob("usr/lib/llvm-*/bin")):
        for path in sorted(folder.iterdir()):
            if path.is_file() and not path.is_symlink() and path.name != "patchelf":
                yield path


def _has_interpreter(path: Path) -> bool:
    """Whether a file is an ELF program that a dynamic linker starts (ELF specification, PT_INTERP)."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF" and b"/ld-linux-x86-64.so.2\0" in file.read(4096)


def main() -> int:
    try:
        print(find_prefix().root)
    except Unavailable as error:
        print(f"Debian's HIP cannot be had: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
