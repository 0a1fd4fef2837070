"""Our declarations of the HSA ABI (native/abi) against AMD's own headers, where those can be had.

Headers are looked for in the folders of KERNCAP_HSA_HEADERS (separated by ':', each holding an hsa.h), in
/opt/rocm/include/hsa and /usr/include/hsa. From our headers a translation unit is made that asserts, for
everything declared there, that AMD's compiler sees the same: values of enumerators, sizes of structures,
offset and size of each member, and for each entry of an API table its offset and the shape of its function
type.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
ABI = NATIVE / "abi"
# Ours alone: the kernel descriptor is LLVM's (AMDGPUUsage), and no header of AMD's declares it.
OWN = re.compile(r"^(amd_kernel_descriptor_t|amd_kernel_code_property_t|AMD_KERNEL_CODE_PROPERTY_\w+)$")
# Entries of AmdExtTable that came after the newest headers this was tried with (6.4.3).
LATER = {"hsa_amd_memory_get_preferred_copy_engine", "hsa_amd_portable_export_dmabuf_v2"}

SHAPE = """
#include <cstddef>
#include <cstdint>
#include <type_traits>
template <typename A, typename B>
constexpr bool same_slot = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
                           std::is_integral_v<A> == std::is_integral_v<B>;
template <typename A, typename B> struct same_shape : std::false_type {};
template <typename RA, typename RB, typename... A, typename... B>
struct same_shape<RA (*)(A...), RB (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) != sizeof...(B)) return false;
    else if constexpr (std::is_void_v<RA> || std::is_void_v<RB>)
      return std::is_void_v<RA> && std::is_void_v<RB> && (same_slot<A, B> && ...);
    else return same_slot<RA, RB> && (same_slot<A, B> && ...);
  }();
};
"""


def header_folders() -> list[Path]:
    named = [Path(p) for p in os.environ.get("KERNCAP_HSA_HEADERS", "").split(":") if p]
    for folder in named:
        assert (folder / "hsa.h").is_file(), f"KERNCAP_HSA_HEADERS: {folder} holds no hsa.h"
    usual = [p for p in (Path("/opt/rocm/include/hsa"), Path("/usr/include/hsa")) if (p / "hsa.h").is_file()]
    return named + usual


FOLDERS = header_folders()


def our_text() -> str:
    text = "\n".join(p.read_text() for p in sorted(ABI.glob("hsa*.h")))
    return re.sub(r"//[^\n]*", "", text)


def enumerators(text: str) -> list[tuple[str, str]]:
    """(enumeration, enumerator) of every enumeration with a fixed type."""
    found = []
    for name, body in re.findall(r"enum (\w+) : std::u?int\d+_t \{([^}]*)\}", text):
        found += [(name, e) for e in re.findall(r"(\w+)\s*=", body)]
    return found


def structures(text: str) -> dict[str, list[str]]:
    """Members of every structure that is written out; table entries come from the lists instead."""
    found: dict[str, list[str]] = {}
    for name, body in re.findall(r"\nstruct (?:alignas\(64\) )?(\w+) \{\n(.*?)\n\};", text, re.S):
        flat = re.sub(r"union \{|\};", "", body)
        members = re.findall(r"(\w+)(?:\[\w+\])?;", re.sub(r"\([^()]*\)(?=;)", "", flat))
        pointers = re.findall(r"\(\*(\w+)\)\(", flat)
        found[name] = [p for p in pointers if p.startswith("hsa_")] if name.endswith("pfn_t") else members
    return found


def entries(text: str, list_name: str) -> list[str]:
    """Functions of a list macro, those of the lists it is made of included."""
    body = re.search(rf"#define {list_name}\(X\)((?:[^\n]*\\\n)*[^\n]*\n)", text)
    assert body, list_name
    own = re.findall(r"\bX\([\w:]+, (\w+),", body[1])
    return own + [e for part in re.findall(r"\b(KERNCAP_\w+)\(X\)", body[1]) for e in entries(text, part)]


def make_unit(text: str, amd: str) -> tuple[str, int, set[str]]:
    """The translation unit, how many assertions it holds, and the names that AMD's headers do not have."""
    checks: list[str] = []
    missing: set[str] = set()
    known = set(re.findall(r"\w+", amd))

    def check(condition: str) -> None:
        checks.append(f'static_assert({condition}, "");')

    def have(name: str) -> bool:
        if OWN.match(name) or name == "HSA_AMD_LAST_EXTENSION":  # the latter grows with each release
            return False
        if name not in known:
            missing.add(name)
        return name in known

    for _, e in enumerators(text):
        if have(e):
            check(f"static_cast<std::uint32_t>(::{e}) == static_cast<std::uint32_t>(kerncap::abi::{e})")
    for name, members in structures(text).items():
        theirs = name if have(name) else {"amd_queue_v2_t": "amd_queue_t"}.get(name, "")
        if not theirs:
            continue
        if theirs == name:
            check(f"sizeof(::{name}) == sizeof(kerncap::abi::{name})") if not name.endswith("Table") else None
        for m in members:
            # reservedN is ours to name; AMD's are numbered otherwise in places.
            if m.startswith("reserved") or not have(m):
                continue
            if theirs != name and not re.search(rf"struct {theirs[:-2]}_s \{{[^}}]*\b{m}\b", amd):
                continue
            check(f"offsetof(::{theirs}, {m}) == offsetof(kerncap::abi::{name}, {m})")
            check(f"sizeof(::{theirs}::{m}) == sizeof(kerncap::abi::{name}::{m})")
    # AmdExtTable took entries in its middle until ROCm 5.6, and only grew at its end since.
    tables = {"CoreApiTable": "KERNCAP_HSA_CORE_FUNCTIONS", "ImageExtTable": "KERNCAP_HSA_IMAGE_FUNCTIONS"}
    if "hsa_amd_vmem_map" in known:
        tables["AmdExtTable"] = "KERNCAP_HSA_AMD_FUNCTIONS"
    for table, list_name in tables.items():
        for f in entries(text, list_name):
            if have(f) and f"{f}_fn" in known:
                check(f"offsetof(::{table}, {f}_fn) == offsetof(kerncap::abi::{table}, {f}_fn)")
                check(
                    f"same_shape<decltype(::{table}::{f}_fn), decltype(kerncap::abi::{table}::{f}_fn)>::value"
                )
    unit = SHAPE + '#include "abi/hsa.h"\n'
    unit += (
        "".join(f'#include "{h}"\n' for h in AMD_HEADERS)
        + '#include "abi/hsa.h"\n'
        + "\n".join(checks)
        + "\n"
    )
    return unit, len(checks), missing


AMD_HEADERS = ["hsa_api_trace.h", "hsa_ven_amd_loader.h", "amd_hsa_queue.h", "amd_hsa_signal.h"]
DEFINES = ["-DAMD_INTERNAL_BUILD", "-DLITTLEENDIAN_CPU"]


def compiler() -> list[str]:
    words = os.environ.get("CXX", "c++").split()
    assert shutil.which(words[0]), f"no C++ compiler: {words[0]}"
    return words


def preprocessed(folder: Path) -> str:
    source = "".join(f'#include "{h}"\n' for h in AMD_HEADERS)
    command = [*compiler(), "-E", "-P", *DEFINES, f"-I{folder}", "-x", "c++", "-"]
    return subprocess.run(
        command, input=source, capture_output=True, text=True, check=True, timeout=60
    ).stdout


def compile_unit(unit: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [
        *compiler(),
        "-std=c++20",
        "-fsyntax-only",
        "-Wno-invalid-offsetof",
        *DEFINES,
        f"-I{NATIVE}",
        f"-I{folder}",
    ]
    return subprocess.run(
        [*command, "-x", "c++", "-"], input=unit, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("folder", FOLDERS or [None], ids=str)
def test_declarations_agree_with_amd(folder: Path | None) -> None:
    if folder is None:
        pytest.skip("AMD's HSA headers are not here: name their folder in KERNCAP_HSA_HEADERS")
    amd = preprocessed(folder)
    unit, checks, missing = make_unit(our_text(), amd)
    done = compile_unit(unit, folder)
    assert done.returncode == 0, done.stderr[:4000]
    print(
        f"\n{folder}: {checks} assertions hold; not in these headers: {len(missing)} {sorted(missing)[:60]}"
    )
    if "hsa_amd_signal_wait_all" in amd:  # 6.4
        assert missing <= LATER, f"names that AMD's headers do not have: {sorted(missing - LATER)}"
        assert checks > 1250


@pytest.mark.parametrize("folder", FOLDERS or [None], ids=str)
def test_a_wrong_declaration_is_seen(folder: Path | None) -> None:
    """The assertions bite: with one enumerator, one offset or one signature changed, compiling fails."""
    if folder is None:
        pytest.skip("AMD's HSA headers are not here: name their folder in KERNCAP_HSA_HEADERS")
    unit, _, _ = make_unit(our_text(), preprocessed(folder))
    for right, wrong in [
        ("kerncap::abi::HSA_AGENT_INFO_NODE)", "kerncap::abi::HSA_AGENT_INFO_NAME)"),
        ("kerncap::abi::hsa_queue_t, size)", "kerncap::abi::hsa_queue_t, id)"),
        (
            "decltype(kerncap::abi::CoreApiTable::hsa_queue_create_fn)",
            "decltype(kerncap::abi::CoreApiTable::hsa_init_fn)",
        ),
    ]:
        assert right in unit
        assert compile_unit(unit.replace(right, wrong, 1), folder).returncode != 0, wrong


def test_every_table_has_all_its_functions() -> None:
    text = our_text()
    assert len(entries(text, "KERNCAP_HSA_CORE_FUNCTIONS")) == 125
    assert len(entries(text, "KERNCAP_HSA_AMD_FUNCTIONS")) == 74
