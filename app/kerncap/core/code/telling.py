"""What tells kernels of one name apart, for a person: how they were compiled, else their code objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kerncap.core.code.names import C, short_ids

_LONGEST = 24  # of a value that is shown beside a name


@dataclass(frozen=True, slots=True)
class Described:
    """How a kernel was compiled: `text` for a person, in one line; `values` of its configuration and `types`
    of its arguments by name.
    """

    text: str
    values: Mapping[str, str]
    types: Mapping[str, str] = field(default_factory=dict)


_UNKNOWN = Described("", {})


def code_marks(kernels: Iterable[C]) -> dict[str, str]:
    """By id, for kernels whose name another code object has as well: "code 3f2a91", the beginning of the hash
    of their own that tells them apart (`kerncap inspect FILE` shows it).
    """
    marks = {}
    for same in _of_one_name(kernels):
        short = short_ids(kernel.code_hash for kernel in same)
        marks.update({kernel.id: f"code {short[kernel.code_hash]}" for kernel in same})
    return marks


def told_apart(
    kernels: Sequence[C], described: Mapping[str, Described], brief: bool = False
) -> dict[str, str]:
    """The same with what differs in how they were compiled where that is known, "BLOCK=128 num_warps=8"; and
    the code object's hash where that does not tell them apart. `brief`: no more of it than that takes.
    """
    codes = code_marks(kernels)
    marks: dict[str, str] = {}
    for same in _of_one_name(kernels):
        told = _differences([described.get(kernel.id, _UNKNOWN) for kernel in same], brief)
        for kernel, text in zip(same, told, strict=True):
            unique = bool(text) and told.count(text) == 1
            marks[kernel.id] = text if unique else f"{text} {codes[kernel.id]}".lstrip()
    return marks


def _of_one_name(kernels: Iterable[C]) -> list[list[C]]:
    """Those whose name is also that of a kernel of another code object, together."""
    by_name: dict[str, list[C]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel.name, []).append(kernel)
    return [same for same in by_name.values() if len({kernel.code_hash for kernel in same}) > 1]


def _differences(known: Sequence[Described], brief: bool) -> list[str]:
    """Of each what the others have otherwise: all of its configuration, and no more types than it takes."""
    words = [list[str]() for _ in known]
    values, types = [one.values for one in known], [one.types for one in known]
    for its, all_of_it in ((values, not brief), (types, False)):
        for name in _differing(its):
            if all_of_it or len({tuple(one) for one in words}) < len(known):
                for one, has in zip(words, its, strict=True):
                    one += [f"{name}={has[name]}"] if name in has else []
    return [" ".join(one) for one in words]


def _differing(known: Sequence[Mapping[str, str]]) -> list[str]:
    """The names whose values are not the same of all of which there are any, in the order of the first."""
    some = [values for values in known if values]
    names = dict.fromkeys(name for values in some for name in values)
    found = []
    for name in names:
        values = {one.get(name) for one in some}
        if len(values) > 1 and all(value is None or len(value) <= _LONGEST for value in values):
            found.append(name)
    return found
