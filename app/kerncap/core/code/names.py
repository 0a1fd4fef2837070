"""Kernel names: short forms for a person, safe forms for a file, and which kernel a person means."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

_LEAST_DIGITS = 6  # of an id: fewer are parts of names as a rule (names.cpp of the interposers has it, too)
_OPEN = "<({["
_CLOSE = ">)}]"


class Named(Protocol):
    """What is needed of a kernel to name it."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def symbol(self) -> str: ...


class Coded(Named, Protocol):
    """A kernel of which the code object is known, too."""

    @property
    def code_hash(self) -> str: ...


K = TypeVar("K", bound=Named)
C = TypeVar("C", bound=Coded)


def base_name(demangled: str) -> str:
    """The bare function name: `void ns::mul<(type)39>(int*) [clone .kd]` -> `mul`.

    Names that are no C++ declarations come back unchanged.
    """
    text = demangled.strip().replace("(anonymous namespace)", "{anonymous}")
    if not text:
        return demangled
    depth = 0
    cut = len(text)
    # The parameter list is the first "(" outside of template arguments.
    for index, char in enumerate(text):
        if char in "<{[":
            depth += 1
        elif char in ">}]" and depth > 0:
            depth -= 1
        elif char == "(":
            if depth == 0:
                cut = index
                break
            depth += 1
        elif char == ")" and depth > 0:
            depth -= 1
    head = text[:cut].rstrip()
    # Template arguments at the end, then the return type and the scope before the last name.
    if head.endswith(">"):
        depth = 0
        for position in range(len(head) - 1, -1, -1):
            if head[position] in _CLOSE:
                depth += 1
            elif head[position] in _OPEN:
                depth -= 1
                if depth == 0:
                    head = head[:position]
                    break
    depth = 0
    start = 0
    for position in range(len(head) - 1, -1, -1):
        char = head[position]
        if char in _CLOSE:
            depth += 1
        elif char in _OPEN:
            depth -= 1
        elif depth <= 0 and (char in " \t" or head.startswith("::", position)):
            start = position + (2 if char == ":" else 1)
            break
    return head[start:].lstrip(":") or demangled


def instance_name(demangled: str) -> str:
    """The name with its template arguments, which tell instances apart, and without its parameters:
    `void ns::mul<4, float>(int*) [clone .kd]` -> `mul<4, float>`.
    """
    base = base_name(demangled)
    start = demangled.find(f"{base}<")
    if start < 0:
        return base
    depth = 0
    for position in range(start + len(base), len(demangled)):
        depth += demangled[position] == "<"
        depth -= demangled[position] == ">" and demangled[position - 1] != "-"
        if depth == 0:
            return demangled[start : position + 1]
    return base


def one_line(name: str, width: int = 0) -> str:
    """`name` without control characters, cut in the middle to `width` characters (0: not cut)."""
    clean = "".join(char if char.isprintable() else "?" for char in name)
    if width > 4 and len(clean) > width:
        keep = width - 1
        return clean[: keep - keep // 3] + "…" + clean[len(clean) - keep // 3 :]
    return clean


def safe_filename(name: str, limit: int = 80) -> str:
    """A name for a directory: letters, digits, `_`, `-` and `.`; never empty, hidden or longer than
    `limit`.
    """
    text = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._-")
    return text[:limit].rstrip("._-") or "kernel"


def id_text(value: int) -> str:
    """A kernel's id as it is shown: 16 hex digits."""
    return f"{value:016x}"


def short_ids(ids: Iterable[str], least: int = 6) -> dict[str, str]:
    """For each id its shortest prefix, of at least `least` digits, that no other id shares."""
    ordered = sorted(set(ids))
    result: dict[str, str] = {}
    for index, value in enumerate(ordered):
        need = least
        for other in (
            ordered[index - 1] if index else "",
            ordered[index + 1] if index + 1 < len(ordered) else "",
        ):
            common = 0
            while common < min(len(value), len(other)) and value[common] == other[common]:
                common += 1
            need = max(need, common + 1)
        result[value] = value[:need]
    return result


def is_id(pattern: str) -> bool:
    """Whether `pattern` can be a kernel id or the beginning of one."""
    return re.fullmatch(rf"[0-9a-fA-F]{{{_LEAST_DIGITS},16}}", pattern) is not None


def too_short_an_id(pattern: str, kernels: Sequence[Named]) -> str:
    """What to say where a pattern that fits no kernel begins the id of one, and is too short for an id."""
    if re.fullmatch(rf"[0-9a-fA-F]{{2,{_LEAST_DIGITS - 1}}}", pattern) is None:
        return ""
    meant = [kernel.id for kernel in kernels if kernel.id.startswith(pattern.lower())]
    if not meant:
        return ""
    short = short_ids(kernel.id for kernel in kernels)
    names = " or ".join(short[ident] for ident in meant[:3])
    return f" An id is given with {_LEAST_DIGITS} digits at least: {names}."


def matching(pattern: str, kernels: Sequence[K]) -> list[K]:
    """The kernels that `pattern` can mean, by the first of these rules that fits any.

    An id or its beginning; the mangled or the demangled name; the bare function name; a part of either name
    (by which the runtime's own copy kernels are never meant).
    """
    rules: tuple[Callable[[K], bool], ...] = (
        lambda k: is_id(pattern) and k.id.startswith(pattern.lower()),
        lambda k: pattern in (k.symbol, k.name, k.symbol.removesuffix(".kd")) or pattern == k.symbol + ".kd",
        lambda k: pattern == base_name(k.name),
        lambda k: (pattern in k.name or pattern in k.symbol) and getattr(k, "kind", "") != "runtime",
    )
    for rule in rules:
        found = [kernel for kernel in kernels if rule(kernel)]
        if found:
            return found
    return []


def nearest(pattern: str, kernels: Sequence[K], limit: int = 10) -> list[K]:
    """All `kernels` (at most `limit`), those whose names are most like `pattern` first."""

    def likeness(kernel: K) -> float:
        wanted = pattern.lower()[:200]
        name = base_name(kernel.name).lower()[:200]
        whole = 1.0 if wanted and wanted in kernel.name.lower() else 0.0
        return whole + difflib.SequenceMatcher(None, wanted, name).ratio()

    return sorted(kernels, key=likeness, reverse=True)[:limit]
